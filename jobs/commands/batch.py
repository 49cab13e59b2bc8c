"""Batch jobs ``run``, ``ingest`` and ``audit``: checked first, planned, run, and summed up."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import chain

from rebalance_core.english import count

from ..audit import audit
from ..config.choices import LAST_RUN, SPARK
from ..config.known_issues import load_known_issues
from ..config.settings import Settings, flat
from ..config.window import Window, asked_window, now
from ..console.arguments import Options
from ..console.output import say
from ..console.progress import Progress, complain
from ..engines.engine import Engine
from ..engines.files import check_apart, list_local_files, no_dumps
from ..errors import AuditError, InputError, LeaseError, QuarantineError
from ..pipeline.ingest import ingest
from ..pipeline.inputs import Inputs, require_tables, window_of_last
from ..publish.run import Run, Task
from ..reports.commands import option
from ..reports.tables import PublishedTables
from ..schemas import HEARTBEATS, SNAPSHOT_TABLES
from ..shell.closing import closing_lines
from ..storage import Location, PublishedRun, Reports, Snapshots, SnapshotWriter, new_run_id
from ..storage.retention import Retention, prune_reports
from ..texts.failures import sentence_of
from ..texts.shown import in_utc, iso, json_text, visible
from . import common
from .engine_choice import Choice, choose_engine, open_engine

_INGEST = ("records", "snapshot tables", "check of the tables")
_AUDIT = ("groups", "findings", "report tables", "check of the reports")
#: The steps of each command as its progress counts them, in their order.
STEPS = {"ingest": _INGEST, "audit": _AUDIT, "run": _INGEST + _AUDIT}
#: The most dumps that are named before a run; the sizes of all are summed.
_NAMED_FILES = 10
_to_second = partial(iso, timespec="seconds")
_NOT_CLEARED = "the run is published, but older reports were not removed; the next run tries again"


def run(args: Options) -> int:
    """Ingests, audits, or both; returns the exit code."""
    return Job.of(args, common.settings_of(args)).run()


@dataclass(frozen=True)
class Job:
    """The job of one of the commands. ``dumps``: what is ingested; None: only an audit.

    ``task``: the audit; None: only an ingest.
    """

    args: Options
    settings: Settings
    dumps: Sequence[str] | None
    snapshots: Location
    task: Task | None

    @classmethod
    def of(cls, args: Options, settings: Settings) -> "Job":
        """Makes the job that the options ask for; SettingsError where they do not fit."""
        window = None if args.command == "ingest" else _window(args, settings)
        dumps = None if args.command == "audit" else common.path_of("dumps", args, settings)
        # A URI may have options at its end, which stay behind the name.
        output = Location(args.output) if args.command == "run" else None
        named = common.folder_of
        snapshots = output / "snapshots" if output else named("snapshots", args, settings)
        if window is None:
            check_apart(dumps or (), [snapshots])
            return cls(args, settings, dumps, snapshots, None)
        reports = output / "reports" if output else named("reports", args, settings)
        check_apart(dumps or (), [snapshots, reports])
        known_issues = load_known_issues(args.known_issues)
        begins = now()
        run = Run(new_run_id(begins), begins)
        since_last, sources = args.since == LAST_RUN, common.sources_of(args)
        task = Task(run, snapshots, reports, window, settings, known_issues, since_last, sources)
        return cls(args, settings, dumps, snapshots, task)

    def run(self) -> int:
        """Does it, or says what it would do; returns the exit code."""
        args, source = self.args, (self.dumps, self.snapshots)
        if args.dry_run:
            for line in [*self._plan(), "dry run: nothing was written"]:
                say(line)
            return 0
        # With --verbose Java writes to the terminal as well.
        progress = Progress(quiet=args.quiet, is_moving=not args.verbose)
        try:
            choice = choose_engine(args.engine, *source, master=args.master, workers=args.workers)
            progress.say(choice.sentence)
            progress.plan(STEPS[args.command])
            opened = open_engine(choice, args.command, *source, args.master, progress, args.verbose)
            with opened as engine, self._ingested(engine, progress) as late:
                published = self._audited(engine, progress, late)
            if late is not None:
                complain(str(late))
            if published is not None and self.task is not None:
                _conclude(published, self.task, progress)
        except BaseException as error:
            if self.task is not None:
                error.add_note(_what_stands(self.task, error))
            raise
        if late is not None:
            return late.exit_code
        if published is None:
            return 0
        return int(is_closed(published, chain.from_iterable(args.fail_on)))

    def _plan(self) -> Iterator[str]:
        if self.dumps is not None:
            yield from _plan_ingest(self.dumps, self.snapshots, self.args.master)
        if self.task is not None:
            yield from _plan_audit(self.task, ingested_before=self.dumps is None)
        # The settings in force, one a line, under their hash.
        yield f"settings {self.settings.fingerprint()}"
        for key, value in flat(self.settings.model_dump(mode="json", exclude_none=True)):
            yield f"  {key}={json_text(value)}"

    @contextmanager
    def _ingested(self, engine: Engine, progress: Progress) -> Iterator[QuarantineError | None]:
        """Ingests the dumps; within the block no other ingest replaces the tables.

        Gives the error where too much was not understood: what was understood is audited.
        """
        if self.dumps is None:
            yield None
            return
        run_id, wait = new_run_id(now()), self.settings.publishing.wait_seconds
        with SnapshotWriter.open(self.snapshots, run_id, wait, progress.say) as writer:
            late = None
            try:
                done = ingest(engine, self.dumps, writer, self.settings, progress)
            except QuarantineError as error:
                if self.task is None:
                    raise
                late = error
            yield late
        if self.task is None:
            say(
                f"ingested {count(done.lines, 'line')} of {count(done.files, 'file')} into "
                f"{self.snapshots}, {done.quarantined:,} not understood"
            )

    def _audited(
        self, engine: Engine, progress: Progress, late: QuarantineError | None
    ) -> PublishedRun | None:
        if self.task is None:
            return None
        try:
            return audit(engine, self.task, progress)
        except InputError as error:
            window, known = self.task.window, error
            if window.since or window.until:
                with suppress(AuditError):
                    known = _with_times_there(error, self.snapshots, window)
            common.remember_run(None, None if late is None else self.snapshots)
            if late is None:
                raise known from error
            late.add_note("rebalance-audit show quarantine lists them")
            raise late from error  # it is why there is nothing to audit


def _window(args: Options, settings: Settings) -> Window:
    is_last = args.since == LAST_RUN
    since = None if is_last else common.time_of_option("since", args, settings, f", or {LAST_RUN}")
    until = common.time_of_option("until", args, settings)
    day = date.fromisoformat(args.date) if args.date else None
    return asked_window(day, since, until, common.future(settings), "--")


def _conclude(published: PublishedRun, task: Task, progress: Progress) -> None:
    """Says how it went, and removes what is too old; the run has succeeded in any case."""
    common.remember_run(task.reports)
    shown = f"{option('reports', str(task.reports))} {option('date', published.date)}"
    try:
        tables = PublishedTables(Reports(task.reports), published)
        missing, lines = closing_lines(tables, task.settings, common.text_width(), task.reports)
    except (AuditError, OSError) as error:
        complain(
            f"the report of {published.date} is published, but what it says could not be read "
            f"({sentence_of(error)}); rebalance-audit report {shown}"
        )
    else:
        for text in (*expired_known_issues(published), *missing):
            complain(text)
        for line in lines:
            say(line)
        progress.say(f"the page: rebalance-audit report {shown}")
    _clear_away(published, task, progress)


def _clear_away(published: PublishedRun, task: Task, progress: Progress) -> None:
    """Removes what is too old by the settings, or left over."""
    keep_days = task.settings.retention.keep_days
    retention = Retention(keep_days, now(), spared=frozenset({published.date}))
    try:
        pruned = prune_reports(Reports(task.reports), retention)
    except Exception as error:
        complain(f"{_NOT_CLEARED} ({sentence_of(error)})")
        return
    for line in pruned.lines(dry_run=False):
        progress.say(line)
    for line in pruned.failed:
        complain(f"{_NOT_CLEARED} ({line})")


def _what_stands(task: Task, error: BaseException) -> str:
    """The state of the reports after a run that failed."""
    if not isinstance(error, Exception) and not task.reports.is_local:
        # Whoever stops a command does not wait for a server.
        return "what was published before is unchanged"
    date = task.window.last_date
    try:
        reports = Reports(task.reports)
        published = reports.find(date) if date else reports.last(task.window.newest_date)
    except Exception as unread:
        return f"what is published at {task.reports} cannot be read ({sentence_of(unread)})"
    if published is None:
        return f"there is no published report{f' of {date}' if date else ''} at {task.reports}"
    if published.run_id == task.run.run_id:
        return f"the report of {published.date} was published before this failed"
    if isinstance(error, LeaseError):
        return f"the report of {published.date} that counts now is that of run {published.run_id}"
    return f"the report of {published.date} that was published before is unchanged"


def is_closed(published: PublishedRun, gates: Iterable[str]) -> bool:
    """True if the run closes one of the gates of ``--fail-on``: a severity by findings of it or
    worse that are not known issues, INCOMPLETE by what was not read or not audited.
    """
    return any(published.summary["verdict"]["gates"][gate] for gate in gates)


def expired_known_issues(published: PublishedRun) -> list[str]:
    """A line for each known issue that has expired, so that its findings count again."""
    return [
        f"a known issue expired on {issue['expires']}, its findings count again: "
        f"{visible(issue['reason'])}"
        for issue in published.summary["known_issues"]
        if issue["expired"]
    ]


def _plan_ingest(dumps: Sequence[str], snapshots: Location, master: str | None) -> Iterator[str]:
    """The lines about what ``ingest`` would read and write.

    Spark is started only where it alone can list the dumps: on file systems other than the local
    one. Raises InputError where ``ingest`` would, for dumps that are missing.
    """
    files = list_local_files(dumps)
    if files is None:
        choice, quiet = Choice(SPARK, ""), Progress(quiet=True)
        with open_engine(choice, "dry run", dumps, snapshots, master, quiet) as engine:
            files = engine.list_files(dumps)
    if not files:
        raise no_dumps(dumps)
    yield "ingest"
    sizes = f"{sum(file.size for file in files):,} bytes"
    text = f"about {sum(file.unpacked_size for file in files):,} bytes of text"
    yield f"  reads    {count(len(files), 'file')}, {sizes}, {text}"
    for file in sorted(files, key=lambda file: -file.size)[:_NAMED_FILES]:
        yield f"           {file.size:>15,}  {visible(file.path)}"
    if len(files) > _NAMED_FILES:
        yield f"           and {len(files) - _NAMED_FILES:,} smaller ones"
    tables = ", ".join(table.name for table in SNAPSHOT_TABLES)
    yield f"  replaces {tables} below {snapshots}"


def _plan_audit(task: Task, *, ingested_before: bool) -> Iterator[str]:
    """The lines about what ``audit`` would read and write.

    Without ``ingested_before`` the snapshots are those that ``ingest`` is yet to make, and nothing
    about them is shown. Raises InputError where ``audit`` would, for tables that are missing.
    """
    folder = Reports(task.reports)
    last = folder.last(task.window.newest_date) if task.since_last else None
    window = window_of_last(last, task.window)
    date = window.last_date
    yield "audit"
    if ingested_before:
        there = Snapshots.open(task.snapshots)
        require_tables(there)
        in_window = Inputs(there, task.settings).count(window)
        yield f"  reads    {task.snapshots}"
        for name in (table.name for table in SNAPSHOT_TABLES):
            yield f"           {name:<15}{_table_line(there, name, in_window.get(name))}"
        if date is None and (times := there.times(HEARTBEATS.name)):
            date = in_utc(times[1]).date().isoformat()
    else:
        yield f"  reads    {task.snapshots}, as ingest makes it"
    yield f"  window   {window.words}"
    at = f"dt={date}" if date else "dt=<date of the last snapshot>"
    yield f"  writes   {task.reports}/<table>/{at}/run=<run id>"
    if date is not None:
        in_force, before = folder.find(date), folder.before(date)
        yield f"  replaces {f'run {in_force.run_id}' if in_force else 'no run: the date has none'}"
        yield f"  compared with {f'run {before.run_id} of {before.date}' if before else 'no run'}"


def _table_line(snapshots: Snapshots, name: str, in_window: int | None) -> str:
    files = snapshots.files(name)
    if not files:
        return "not there, and not needed"
    size = sum(file.size for file in files)
    line = f"{count(len(files), 'file')}, {size:,} bytes, {snapshots.count(name):,} rows"
    if in_window is not None:
        line += f", {in_window:,} of them in the window"
    times = snapshots.times(name)
    return line if times is None else f"{line}, {_to_second(times[0])} to {_to_second(times[1])}"


def _with_times_there(error: InputError, snapshots: Location, window: Window) -> InputError:
    """The error with the times of the snapshots, where their files say them.

    It is another one where no snapshot is in the window: then that is all that is wrong.
    """
    tables = Snapshots.open(snapshots)
    times = tables.times(HEARTBEATS.name) if tables.has(HEARTBEATS.name) else None
    if times is None:
        return error
    first, last = map(in_utc, times)
    there = f"the snapshots go from {_to_second(first)} to {_to_second(last)}"
    is_before = window.until is not None and window.until <= first
    if is_before or (window.since is not None and window.since > last):
        text = f"no snapshot from {window.words}: {there} at {snapshots}"
        return InputError(text, ", so name another --date, --since or --until")
    error.add_note(there)
    return error

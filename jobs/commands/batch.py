"""Batch jobs ``run``, ``ingest`` and ``audit``: checked first, run, and summed up."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date
from itertools import chain

from rebalance_core.english import agreeing, count, list_of

from ..audit import audit
from ..config.choices import LAST_RUN
from ..config.known_issues import load_known_issues
from ..config.settings import Settings
from ..config.window import Window, asked_window
from ..console.arguments import Options
from ..console.failures import sentence_of
from ..console.output import say
from ..console.progress import Progress, complain
from ..declared.kinds import QUEUE_FINDINGS
from ..dumps.files import check_apart
from ..engines.engine import Engine
from ..errors import AuditError, InputError, LeaseError, QuarantineError
from ..languages.language import Language
from ..pipeline.engine_choice import choose_engine, open_engine
from ..pipeline.ingest import ingest
from ..pipeline.plan import plan_audit, plan_ingest, plan_settings, with_times_there
from ..pipeline.steps import STEPS
from ..publish.run import Run, Task
from ..reports.commands import option
from ..reports.problem_lines import ending_lines
from ..reports.problems import read_problems
from ..reports.run_findings import leading_events
from ..reports.tables import PublishedTables, Tables
from ..reports.words import sentences
from ..storage import Location, PublishedRun, Reports, SnapshotWriter, new_run_id
from ..storage.retention import Retention, prune_reports
from ..texts.shown import folded, visible
from ..verdict.gaps import ROUNDS_TOO_SHORT
from ..verdict.verdict import RunVerdict, read_verdict
from . import common
from .clock import now

#: The most sentences on what is missing that are shown after a run.
_MOST_MISSING = 5
_MOST_EVENTS = 3
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
        began = now()
        run = Run(new_run_id(began), began)
        since_last, sources = args.since == LAST_RUN, common.sources_of(args)
        task = Task(run, snapshots, reports, window, settings, known_issues, since_last, sources)
        return cls(args, settings, dumps, snapshots, task)

    def run(self) -> int:
        """Does it, or says what it would do; returns the exit code."""
        if self.args.dry_run:
            for line in [*self._plan(), "dry run: nothing was written"]:
                say(line)
            return 0
        # With --verbose Java writes to the terminal as well.
        progress = Progress(quiet=self.args.quiet, is_moving=not self.args.verbose)
        try:
            with self._engine(progress) as engine, self._ingested(engine, progress) as late:
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
        return int(is_closed(published, chain.from_iterable(self.args.fail_on)))

    def _plan(self) -> Iterator[str]:
        if self.dumps is not None:
            yield from plan_ingest(self.dumps, self.snapshots, self.args.master)
        if self.task is not None:
            yield from plan_audit(self.task, ingested_before=self.dumps is None)
        yield from plan_settings(self.settings)

    def _engine(self, progress: Progress) -> AbstractContextManager[Engine]:
        args, source = self.args, (self.dumps, self.snapshots)
        choice = choose_engine(args.engine, *source, master=args.master, workers=args.workers)
        progress.say(choice.sentence)
        progress.plan(STEPS[args.command])
        return open_engine(choice, args.command, *source, args.master, progress, args.verbose)

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
                    known = with_times_there(error, self.snapshots, window)
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


def closing_lines(
    tables: PublishedTables, settings: Settings, width: int, reports: Location | None = None
) -> tuple[list[str], list[str]]:
    """The lines on what is missing, and the last lines of a run, of so many columns."""
    published, problems, verdict = tables.published, read_problems(tables), read_verdict(tables)
    is_short = any(gap.kind == ROUNDS_TOO_SHORT for gap in verdict.gaps)
    language = settings.console_language
    return what_is_missing(verdict, language), [
        *([] if language.zone is UTC else [f"times: {language.zone}"]),
        *what_happened(tables, language),
        *ending_lines(problems, width, language, is_short=is_short),
        *none_lasts(published, settings),
        sum_up(published, verdict, reports),
        *folded(visible(language.of(sentences([verdict.sentence, *verdict.remarks]))), width),
    ]


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


def what_happened(tables: Tables, language: Language) -> list[str]:
    """A line for each event that leads, and one for the others."""
    events, others = leading_events(tables, _MOST_EVENTS)
    lines = [visible(language.of(event.headline)) for event in events]
    if lines and others:
        lines.append(f"and {count(others, 'more event')}: rebalance-audit show events")
    return lines


#: The words for findings, by table.
_FOUND = dict(zip(QUEUE_FINDINGS, ("orphaned", "duplicated", "stalled queues"), strict=True))


def sum_up(published: PublishedRun, verdict: RunVerdict, reports: Location | None) -> str:
    """The one line for people on how it went; machines read summary.json."""
    rows, findings = published.summary["rows"], published.summary["findings"]
    figures = [
        f"{findings[name]['persistent']} persistent of {findings[name]['total']} {words}"
        for name, words in _FOUND.items()
    ]
    known_issues = sum(findings[name]["known"]["persistent"] for name in QUEUE_FINDINGS)
    if known_issues:
        figures[-1] += f" ({known_issues} of all these are known issues)"
    assumed = published.summary["assumptions"]
    wide = published.summary["rounds"]["groups_too_wide"]
    parts = [
        f"rebalance audit of {published.date}: {', '.join(figures)}, "
        f"{count(rows['stacked_client_ids'], 'shared client id')}, in "
        f"{count(rows['group_health'], 'group and topic', 'groups and topics')}"
    ]
    if not_audited := sum(len(unaudited.places) for unaudited in verdict.not_audited):
        parts[-1] += f", {not_audited:,} not audited"
    resting = "{number:,} [group rests|groups rest] on an assumption: "
    for number, advice in (
        (assumed["groups"] - assumed["asked"], "collect running infos"),
        (assumed["asked"], "members asked for running infos did not answer, or name no strategy"),
    ):
        if number:
            parts.append(agreeing(number, resting + advice, number=number))
    if wide:
        asked = "{number:,} [group was|groups were] asked in rounds that are too wide to compare"
        parts.append(agreeing(wide, f"{asked} brokers", number=wide))
    if reports is not None:
        parts.append(f"reports at {reports}")
    return "; ".join(parts)


def none_lasts(published: PublishedRun, settings: Settings) -> list[str]:
    """The line with the reason why no finding of a queue lasts, where there are findings."""
    findings = published.summary["findings"]
    found = {name: findings[name]["total"] for name in QUEUE_FINDINGS if findings[name]["total"]}
    if not found or any(findings[name]["persistent"] for name in found):
        return []
    figures = [
        f"{number:,} {_FOUND[name].removesuffix(' queues')}" for name, number in found.items()
    ]
    queues, do_count = ("queue", "counts") if sum(found.values()) == 1 else ("queues", "count")
    return [
        f"{list_of(figures)} {queues} lasted less than persistence_seconds = "
        f"{settings.persistence_seconds} and {do_count} as passing: "
        f"rebalance-audit {list_of([f'show {name}' for name in found])}"
    ]


def is_closed(published: PublishedRun, gates: Iterable[str]) -> bool:
    """True if the run closes one of the gates of ``--fail-on``: a severity by findings of it or
    worse that are not known issues, INCOMPLETE by what was not read or not audited.
    """
    return any(published.summary["verdict"]["gates"][gate] for gate in gates)


def what_is_missing(verdict: RunVerdict, language: Language) -> list[str]:
    """A line for each thing that was not read or not audited; of many the first ones."""
    lines = [
        f"not complete: {visible(language.of(text))}" for text in verdict.missing[:_MOST_MISSING]
    ]
    more = len(verdict.missing) - _MOST_MISSING
    return [*lines, f"and {more} more: see the page"] if more > 0 else lines


def expired_known_issues(published: PublishedRun) -> list[str]:
    """A line for each known issue that has expired, so that its findings count again."""
    return [
        f"a known issue expired on {each['expires']}, its findings count again: "
        f"{visible(each['reason'])}"
        for each in published.summary["known_issues"]
        if each["expired"]
    ]

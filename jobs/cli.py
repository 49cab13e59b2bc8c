"""The command line: ``rebalance-audit`` and, with the same arguments, the spark-submit entries.

The only place that reads the clock and (by ``arguments.py``) argv, and that decides the exit code:
0 ran, findings or not; 1 findings at or above --fail-on, or a change (what-if) that is not safe;
2 usage or settings; 3 input missing or too much of it quarantined; 4 anything else; 130 stopped by
Ctrl-C; 143 stopped by SIGTERM.

A failure is one line on standard error: what happened, what is unchanged, what to do. The stack
comes with --verbose, else it is in a file that the line names.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, date, datetime
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any, NoReturn

from jobs.arguments import LAST_RUN, parse_arguments
from jobs.errors import AuditError, DamagedError, InputError, QuarantineError, SettingsError
from jobs.failures import is_of_the_machine, sentence_of
from jobs.incomplete import INCOMPLETE, sentences_of
from jobs.instants import to_instant
from jobs.kinds import QUEUE_FINDINGS
from jobs.known_issues import (
    DEFAULT_KNOWN_ISSUES,
    KnownIssues,
    find_known_issues,
    load_known_issues,
)
from jobs.languages.language import language
from jobs.leading_events import leading_events
from jobs.masking import Masking
from jobs.output import STANDARD_OUTPUT, give, say, text_file_at, write_in_pages
from jobs.pipeline.engine import LOCAL, SPARK, Choice, check_input, choose_engine, open_engine
from jobs.pipeline.steps import steps_of
from jobs.progress import Progress, complain
from jobs.publish.run import Run, Task
from jobs.settings import (
    DEFAULT_SETTINGS,
    SEVERITIES,
    Settings,
    find_settings,
    load_settings,
    source_of,
)
from jobs.storage import Location, Published, Reports, SnapshotWriter, local_bytes, new_run_id
from jobs.terminal import Terminal
from jobs.text import json_text, visible
from jobs.window import Window, future_after
from rebalance_core import Change, ChangeError
from rebalance_core.english import count, noun

if TYPE_CHECKING:
    from jobs.pipeline.ingested import Ingested


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code. --help and --version raise SystemExit."""
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what may follow on its line
        from jobs.completion import complete  # noqa: PLC0415 - only what is used

        complete()
    try:
        with _terminated_by_an_exception():
            return _reported(arguments)
    except KeyboardInterrupt as error:
        complain(_with_notes("interrupted", error))
        return 130
    except _TerminatedError as error:
        complain(_with_notes("terminated by SIGTERM", error))
        return 143


class _TerminatedError(BaseException):
    """SIGTERM came: like Ctrl-C it ends whatever runs, by way of every ``finally``."""


@contextmanager
def _terminated_by_an_exception() -> Iterator[None]:
    def terminate(*_: object) -> NoReturn:
        raise _TerminatedError

    # Whoever set another handler, or ignores the signal, has a reason.
    is_default = signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if is_default:
        # Signals reach the main thread alone.
        with suppress(ValueError):
            signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        if is_default:
            with suppress(ValueError):
                signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _reported(arguments: Sequence[str] | None) -> int:
    """Runs one command; of whatever fails one line is written. Returns the exit code."""
    verbose = False
    _LOGGER.addHandler(_COMPLAINTS)
    try:
        args = parse_arguments(arguments)
        verbose = args.verbose
        return _run(args)
    except Exception as error:
        _raise_what_stopped(error)
        if verbose:
            complain(f"failed:\n{indent(traceback.format_exc(), '  ', lambda _: True).rstrip()}")
        if isinstance(error, AuditError):
            text, code = str(error), error.exit_code
        else:
            text, code = sentence_of(error), 4
            if not verbose and not is_of_the_machine(error):
                text += f"; {_keep_stack()}"
        complain(_with_notes(text, error))
        return code


class _Complaints(logging.Handler):
    """What the jobs warn of is a line like every other."""

    def emit(self, record: logging.LogRecord) -> None:
        complain(record.getMessage())


_LOGGER = logging.getLogger("jobs")
_COMPLAINTS = _Complaints()


def _raise_what_stopped(error: BaseException) -> None:
    """Raises the Ctrl-C or SIGTERM in whose midst an error was raised: Java may be stopped too."""
    before = error.__context__
    while before is not None:
        if isinstance(before, KeyboardInterrupt | _TerminatedError):
            before.__notes__ = getattr(error, "__notes__", [])
            raise before
        before = before.__context__


def _keep_stack() -> str:
    """Keeps the stack of the exception that is handled in a file; gives where that is."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="rebalance-audit-", suffix=".log", delete=False, errors="backslashreplace"
        ) as file:
            file.write(Masking().mask(traceback.format_exc()))
    except OSError as error:
        return f"--verbose shows the stack ({sentence_of(error)})"
    return f"this is a defect of the audit: report it with its stack, which is in {file.name}"


def _with_notes(text: str, error: BaseException) -> str:
    return "; ".join([text, *getattr(error, "__notes__", ())])


def entry(command: str) -> NoReturn:
    """What the spark-submit entries call: the command with the arguments of the process."""
    sys.exit(main([command, *sys.argv[1:]]))


def _run(args: argparse.Namespace) -> int:
    if args.command == "completion":
        return _complete(args)
    if args.command == "collect":
        return _collect(args)
    settings = load_settings(args.settings, args.set) if args.settings else find_settings(args.set)
    if getattr(args, "language", None):
        settings = settings.model_copy(update={"language": args.language})
    # The key of the masking is read where something is masked: at the end of a run.
    settings.masking.to_masking()
    _name_sources(args)
    return _WITHOUT_SESSION.get(args.command, _run_jobs)(args, settings)


def _sources(args: argparse.Namespace) -> dict[str, str | None]:
    """The files of settings and known issues that a command reads; None where there is none."""
    sources = {"settings": source_of(args.settings, DEFAULT_SETTINGS)}
    if "known_issues" in args:
        sources["known_issues"] = source_of(args.known_issues, DEFAULT_KNOWN_ISSUES)
    return sources


def _name_sources(args: argparse.Namespace) -> None:
    """Prints which files are read: those of the current directory are read without being named."""
    words = {"settings": "settings", "known_issues": "known issues"}
    read = [f"{words[each]} of {path}" for each, path in _sources(args).items() if path]
    if args.set:
        read.append(f"{len(args.set)} --set")
    if read:
        Progress(quiet=args.quiet).say(f"reads {', '.join(read)}")


def _run_jobs(args: argparse.Namespace, settings: Settings) -> int:
    # With --verbose Java writes to the terminal as well.
    progress = Progress(quiet=args.quiet, moves=not args.verbose)
    window = None if args.command == "ingest" else _window(args, settings)
    dumps = getattr(args, "dumps", None) or settings.paths.dumps
    if args.command in ("ingest", "run") and not dumps:
        raise SettingsError("expected --dumps, or paths.dumps in the settings, came neither")
    snapshots, reports = _places(args, settings)
    known_issues = None if args.command == "ingest" else _known_issues(args)
    if args.dry_run:
        return _dry_run(args, settings, dumps, snapshots, reports, window)

    task = None
    if args.command != "ingest":
        assert window is not None  # noqa: S101 - set above
        assert reports is not None  # noqa: S101 - _places checked
        assert known_issues is not None  # noqa: S101 - set above
        since_last = args.since == LAST_RUN
        run = _new_run()
        task = Task(
            run, snapshots, reports, window, settings, known_issues, since_last, _sources(args)
        )
    choice = choose_engine(
        args.engine,
        dumps if args.command != "audit" else None,
        snapshots,
        master=args.master,
        is_submitted="PYSPARK_GATEWAY_PORT" in os.environ,
        workers=args.workers,
    )
    progress.say(choice.sentence)
    progress.plan(steps_of(args.command))
    try:
        ingested, published, late_error = _run_with(
            choice, args, dumps, snapshots, settings, task, progress
        )
        if late_error is not None:
            complain(str(late_error))
        if published is not None:
            for text in (*expired_known_issues(published), *what_is_missing(published)):
                complain(text)
            for line in (*what_happened(published), sum_up(published, reports)):
                say(line)
            _clear_away(published, _needed(task), progress)
        elif ingested is not None:
            say(
                f"ingested {ingested.lines:,} lines of {ingested.files} files into {snapshots}, "
                f"{ingested.quarantined:,} quarantined"
            )
    except BaseException as error:
        if task is not None:
            error.add_note(_what_stands(task, error))
        raise
    if late_error is not None:
        return late_error.exit_code
    return 1 if published is not None and fails(published, args.fail_on) else 0


_NOT_CLEARED = "the run is published, but older reports were not removed; the next run tries again"


def _clear_away(published: Published, task: Task, progress: Progress) -> None:
    """Removes what is too old by the settings, or left over; the run has succeeded in any case."""
    from jobs.storage.retention import Retention, prune_reports  # noqa: PLC0415 - once a run

    now = datetime.now(UTC)
    keep_days = task.settings.retention.keep_days
    retention = Retention(keep_days, now, new_run_id(now), spared=frozenset({published.date}))
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
    """What readers find after a run that failed."""
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
    return f"the report of {published.date} that was published before is unchanged"


_Outcome = tuple["Ingested | None", Published | None, QuarantineError | None]


def _run_with(
    choice: Choice,
    args: argparse.Namespace,
    dumps: Sequence[str],
    snapshots: Location,
    settings: Settings,
    task: Task | None,
    progress: Progress,
) -> _Outcome:
    from jobs.pipeline.audit import audit  # noqa: PLC0415 - only what is used
    from jobs.pipeline.ingest import ingest  # noqa: PLC0415

    is_here = "PYSPARK_GATEWAY_PORT" not in os.environ and (args.master or "local")[:5] == "local"
    if choice.engine == SPARK and is_here:
        check_input(None if args.command == "audit" else dumps, snapshots)
    size = local_bytes([snapshots.uri] if args.command == "audit" else dumps)
    with open_engine(
        choice, args.command, args.master, progress, input_bytes=size, verbose=args.verbose
    ) as engine:
        return _ingest_and_audit(
            args,
            _writing(snapshots, settings, progress),
            lambda writer: ingest(engine, dumps, writer, settings, progress),
            lambda: audit(engine, _needed(task), progress),
        )


def _needed(task: Task | None) -> Task:
    assert task is not None  # noqa: S101 - whoever audits has one
    return task


def _writing(
    snapshots: Location, settings: Settings, progress: Progress
) -> AbstractContextManager[SnapshotWriter]:
    wait = settings.publishing.wait_seconds
    return SnapshotWriter.open(snapshots, new_run_id(datetime.now(UTC)), wait, progress.say)


def _ingest_and_audit(
    args: argparse.Namespace,
    writing: AbstractContextManager[SnapshotWriter],
    ingest: Callable[[SnapshotWriter], Ingested],
    audit: Callable[[], Published],
) -> _Outcome:
    """What the command asks for, by the engine's two jobs.

    What was understood is audited even where too much was not; the exit code shows it. No other
    ingest replaces the tables before they are audited.
    """
    if args.command == "audit":
        return None, audit(), None
    late_error = None
    with writing as writer:
        try:
            ingested = ingest(writer)
        except QuarantineError as error:
            if args.command == "ingest":
                raise
            ingested, late_error = None, error
        try:
            return ingested, audit() if args.command == "run" else None, late_error
        except AuditError as error:
            if late_error is not None:  # it is why there is nothing to audit, as likely as not
                error.add_note(str(late_error))
            raise


def _dry_run(
    args: argparse.Namespace,
    settings: Settings,
    dumps: Sequence[str],
    snapshots: Location,
    reports: Location | None,
    window: Window | None,
) -> int:
    from jobs.pipeline.plan import plan_audit, plan_ingest, plan_settings  # noqa: PLC0415

    lines: list[str] = []
    if args.command in ("ingest", "run"):
        lines += plan_ingest(dumps, snapshots, args.master)
    if reports is not None and window is not None:
        lines += plan_audit(
            snapshots,
            reports,
            window,
            settings,
            since_last=args.since == LAST_RUN,
            ingested_before=args.command == "audit",
        )
    for line in [*lines, *plan_settings(settings), "dry run: nothing was written"]:
        say(line)
    return 0


def _places(args: argparse.Namespace, settings: Settings) -> tuple[Location, Location | None]:
    if args.command == "run":
        output = Location(args.output)
        return output / "snapshots", output / "reports"
    snapshots = args.snapshots or settings.paths.snapshots
    if snapshots is None:
        raise SettingsError(
            "expected --snapshots, or paths.snapshots in the settings, came neither"
        )
    if args.command == "ingest":
        return Location(snapshots), None
    return Location(snapshots), _reports_location(args, settings)


def _reports_location(args: argparse.Namespace, settings: Settings) -> Location:
    reports = args.reports or settings.paths.reports
    if reports is None:
        raise SettingsError("expected --reports, or paths.reports in the settings, came neither")
    return Location(reports)


def _known_issues(args: argparse.Namespace) -> KnownIssues:
    return load_known_issues(args.known_issues) if args.known_issues else find_known_issues()


def _window(args: argparse.Namespace, settings: Settings) -> Window:
    since_text = None if args.since == LAST_RUN else args.since
    if args.date and (since_text or args.until):
        raise SettingsError("expected --date or --since/--until, came both")
    if args.date:
        return Window.of_date(date.fromisoformat(args.date))
    since = _time("--since", since_text, f", or {LAST_RUN}")
    until = _time("--until", args.until)
    if since and until and since >= until:
        raise SettingsError(f"expected --since before --until, came {args.since} and {args.until}")
    return Window(since, until, _future(settings))


def _newest_date(settings: Settings) -> str:
    """The date after which reports count only where they are asked for by their date."""
    return _future(settings).date().isoformat()


def _future(settings: Settings) -> datetime:
    return future_after(datetime.now(UTC), settings.bounds.future_days)


def _time(option: str, text: str | None, otherwise: str = "") -> datetime | None:
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise SettingsError(
            f"{option}: expected a time as ISO 8601{otherwise}, came {text!r}"
        ) from error
    try:
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except OverflowError as error:
        raise SettingsError(
            f"{option}: expected a time of the years 1 to 9999 in UTC, came {text!r}"
        ) from error


def _new_run() -> Run:
    now = datetime.now(UTC)
    return Run(new_run_id(now), now)


#: So many sentences on what is missing are shown after a run.
_MOST_MISSING = 5
_MOST_EVENTS = 3


def what_happened(published: Published) -> list[str]:
    """A line for each event that leads, and one for the others."""
    events, others = leading_events(published.summary, _MOST_EVENTS)
    lines = [visible(each.headline) for each in events]
    if lines and others:
        lines.append(f"and {count(others, 'more event')}: rebalance-audit show events")
    return lines


def sum_up(published: Published, reports: Location | None) -> str:
    """The one line for people on how it went; machines read summary.json."""
    rows, findings = published.summary["rows"], published.summary["findings"]
    figures = [
        f"{findings[name]['persistent']} persistent of {findings[name]['total']} {words}"
        for name, words in (
            ("orphaned_queues", "orphaned"),
            ("duplicate_queues", "duplicated"),
            ("stalled_queues", "stalled queues"),
        )
    ]
    known_issues = sum(findings[name]["known"]["persistent"] for name in QUEUE_FINDINGS)
    if known_issues:
        figures[-1] += f" ({known_issues} of all these are known issues)"
    assumed = published.summary["assumptions"]["groups"]
    rests = (
        f"{count(assumed, 'group')} {noun(assumed, 'rests', 'rest')} on an assumption: collect "
        "running infos; "
    )
    wide = published.summary["rounds"]["groups_too_wide"]
    too_wide = (
        f"{count(wide, 'group')} {noun(wide, 'was', 'were')} asked in rounds that are too wide to "
        "compare brokers; "
    )
    return (
        f"rebalance audit of {published.date}: {', '.join(figures)}, "
        f"{rows['stacked_client_ids']} stacked client ids, in {rows['group_health']} groups and "
        f"topics; {rests if assumed else ''}{too_wide if wide else ''}reports at {reports}"
    )


def fails(published: Published, fail_on: str | None) -> bool:
    """Whether the run has findings that are so severe or worse, and no known issues.

    Of INCOMPLETE: whether something is missing of its input.
    """
    if fail_on in (None, INCOMPLETE):
        return fail_on is not None and bool(sentences_of(published.summary))
    severe = SEVERITIES[SEVERITIES.index(fail_on) :]
    findings = published.summary["findings"].values()
    return any(
        counts[severity] > counts["known"][severity] for counts in findings for severity in severe
    )


def what_is_missing(published: Published) -> list[str]:
    """A line for each thing that is missing of the input; of many the first ones."""
    texts = sentences_of(published.summary)
    lines = [f"the input is not complete: {visible(each)}" for each in texts[:_MOST_MISSING]]
    more = len(texts) - _MOST_MISSING
    return [*lines, f"and {more} more, which the page has"] if more > 0 else lines


def expired_known_issues(published: Published) -> list[str]:
    """A line for each known issue that has expired, so that its findings count again."""
    return [
        f"a known issue expired on {each['expires']}, its findings count again: "
        f"{visible(each['reason'])}"
        for each in published.summary["known_issues"]
        if each["expired"]
    ]


def _complete(args: argparse.Namespace) -> int:
    from jobs.completion import script  # noqa: PLC0415 - only what is used

    give(script(args.shell))
    return 0


def _collect(args: argparse.Namespace) -> int:
    given = {
        "dumps": args.dumps,
        "every_seconds": args.every,
        "for_seconds": args.for_,
        "metrics": args.metrics,
    }
    _collect_from(args, {name: value for name, value in given.items() if value is not None})
    return 0


def _collect_from(args: argparse.Namespace, given: dict[str, Any]) -> None:
    """Collects from the servers that the arguments name; ``given`` goes before a file's options."""
    import asyncio  # noqa: PLC0415 - only what is used

    from jobs.collect.collector import collect  # noqa: PLC0415
    from jobs.collect.options import load_options  # noqa: PLC0415

    asked = {"timeout_seconds": args.timeout, "parallel": args.parallel, "rate": args.rate}
    cluster = {
        "namesrv": args.namesrv,
        "name": args.name,
        "clusters": args.cluster,
        "groups": args.group,
        "topics": args.topic,
        "without": args.without,
        "account_file": args.account,
        "tls": {} if args.tls else None,
    }
    options = load_options(
        args.config,
        {**given, **{name: value for name, value in asked.items() if value is not None}},
        {name: value for name, value in cluster.items() if value is not None},
    )
    say = Progress(quiet=args.quiet).say
    asyncio.run(collect(options, os.environ, lambda: to_instant(datetime.now(UTC)), say, complain))


#: So many rounds are collected while ``live`` watches, each so many seconds after the one before:
#: clients commit their offsets every 5 s, so that what is asked sooner seems not to move.
_LIVE_ROUNDS, _LIVE_APART = 6, 10.0


#: The highest exit code of a command that was not stopped.
_LAST_OF_A_COMMAND = 4


def _live(args: argparse.Namespace, settings: Settings) -> int:
    place = f"{args.output}/{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
    seconds = settings.persistence_seconds if args.watch is None else args.watch
    every = max(_LIVE_APART, seconds / _LIVE_ROUNDS)
    given = {
        "dumps": f"{place}/dumps",
        "every_seconds": None,
        "for_seconds": None,
        "running_infos_seconds": int(every) // 2,
    }
    began = time.monotonic()
    _collect_from(args, given)
    say("first verdict, from one round: nothing can be seen to last yet")
    code = _judge(args, place)
    if not seconds or code > _LAST_OF_A_COMMAND:
        return code
    seconds = max(seconds, every)
    say(f"watching for {seconds:g} s, a round every {every:g} s")
    time.sleep(max(0.0, began + every - time.monotonic()))
    _collect_from(args, {**given, "every_seconds": every, "for_seconds": seconds - every / 2})
    say(f"second verdict, from {seconds:g} s")
    return _judge(args, place)


def _judge(args: argparse.Namespace, place: str) -> int:
    """Audits the dumps of a place and writes the page: what two commands do."""
    # What one odd member sends must not take the page away, which says what was not understood.
    settings = [f"--set={each}" for each in ("allowed_quarantine_share=1", *args.set)]
    settings += [f"--settings={args.settings}"] if args.settings else []
    in_language = [f"--language={args.language}"] if args.language else []
    settings += ["--quiet", *(["--verbose"] if args.verbose else [])]
    fail_on = [f"--fail-on={args.fail_on}"] if args.fail_on else []
    run = ["run", "--dumps", f"{place}/dumps", "--output", place, "--engine", LOCAL]
    code = main([*run, *settings, *fail_on])
    if code > 1:
        return code
    report = ["report", "--reports", f"{place}/reports", "--output", f"{place}/report.html"]
    return max(code, main([*report, *in_language, *settings]))


def _show(args: argparse.Namespace, settings: Settings) -> int:
    from jobs.reports.show import (  # noqa: PLC0415
        format_data,
        format_table,
        read_table,
        select_columns,
        why_no_rows,
        worst_first,
    )

    reports = Reports(_reports_location(args, settings), _newest_date(settings))
    terminal = Terminal.of(sys.stdout, os.environ)
    if args.table == "summary":
        given = [f"--{each}" for each in ("group", "topic", "columns") if getattr(args, each)]
        if left_out := given + ["--format csv"] * (args.format == "csv"):
            complain(f"summary is one JSON document: left out {', '.join(left_out)}")
        text = json_text(reports.resolve(args.date).summary, indent=2)
        _give_lines(text.split("\n"), terminal, args)
        return 0

    def read(published: Published) -> tuple[Any, str]:
        asked = (reports, published, args.table, args.group, args.topic)
        rows = read_table(*asked)
        return rows, "" if rows.num_rows else why_no_rows(*asked)

    table, reason = reports.read(args.date, read)
    if args.format == "table":
        table = worst_first(table)
    if args.columns:
        table = select_columns(table, args.columns)
    if args.format == "table":
        lines = format_table(table, terminal, whole=bool(args.columns), is_wide=args.wide)
        write_in_pages(lines, terminal, pages=not args.no_pager, is_wide=args.wide)
    else:
        _give_lines(format_data(table, args.format), terminal, args)
    if reason:
        Progress(quiet=args.quiet).say(f"0 rows: {reason}")
    return 0


def _give_lines(lines: Iterable[str], terminal: Terminal, args: argparse.Namespace) -> None:
    """Writes data; in pages on a terminal, where it is to be read by a person."""
    if terminal.width is not None:
        # A line feed within a cell is no end of a line.
        write_in_pages(map(visible, lines), terminal, pages=not args.no_pager)
        return
    for line in lines:
        give(line)


def _say_beside(args: argparse.Namespace, output: str | None) -> Callable[[str], None]:
    """Where lines about a result go: to standard error, where standard output has the result."""
    return Progress(quiet=args.quiet).say if output == STANDARD_OUTPUT else say


def _alert(args: argparse.Namespace, settings: Settings) -> int:
    from jobs.alerts.alert import alert  # noqa: PLC0415 - the other commands need no such library

    reports = Reports(_reports_location(args, settings), _newest_date(settings))
    metrics = text_file_at(args.metrics) if args.metrics else None
    say_what = _say_beside(args, args.metrics)
    for line in alert(
        reports,
        args.date,
        settings.alerts,
        os.environ,
        datetime.now(UTC),
        complain,
        metrics,
        webhook=args.webhook,
        language=language(settings.language),
    ):
        say_what(line)
    return 0


def _report(args: argparse.Namespace, settings: Settings) -> int:
    from jobs.rendering.write import write_report  # noqa: PLC0415

    reports = Reports(_reports_location(args, settings), _newest_date(settings))
    written = reports.read(
        args.date,
        lambda published: write_report(
            reports,
            published,
            args.format,
            args.output,
            args.top,
            settings.paths.finding_pages,
            language=language(settings.language),
        ),
    )
    say_what = _say_beside(args, args.output)
    say_what(f"report of {written.date}: {written.verdict} {written.output}")
    return 0


def _site(args: argparse.Namespace, settings: Settings) -> int:
    from jobs.rendering.site import write_site  # noqa: PLC0415 - only what is used

    reports = Reports(_reports_location(args, settings), _newest_date(settings))
    last = reports.resolve(args.date).date
    pages = settings.paths.finding_pages
    site = write_site(
        reports, last, args.nights, args.output, args.top, pages, language(settings.language)
    )
    say(f"site: {count(len(site.pages), 'page')} up to {last}, and their index {site.index}")
    for line in site.failed:
        complain(line)
    if site.failed:
        raise AuditError("not every night has a page: see the lines before")
    return 0


def _export(args: argparse.Namespace, settings: Settings) -> int:
    from jobs.lakes.delta import DeltaLake  # noqa: PLC0415 - only what is used
    from jobs.lakes.export import export  # noqa: PLC0415
    from jobs.lakes.iceberg import IcebergLake  # noqa: PLC0415

    folder = _reports_location(args, settings)
    if args.delta and folder.holds(Location(args.delta)):
        raise SettingsError(
            f"expected --delta to name a folder outside of the reports at {folder}, came "
            f"{Location(args.delta)}: whoever reads the reports would count each row twice"
        )
    reports = Reports(folder, _newest_date(settings))
    every = reports.published() if args.all_dates else [reports.resolve(args.date)]
    dates = [each.date for each in every]
    lake = DeltaLake(args.delta) if args.delta is not None else IcebergLake(args.iceberg)
    damaged = 0
    for each in dates:
        try:
            done = export(reports, each, lake)
        except DamagedError as error:
            if not args.all_dates:
                raise
            complain(f"{each} was not exported: {error}")
            damaged += 1
            continue
        say(f"exported {each}, run {done.run_id}: {count(done.rows, 'row')} into {lake}")
    if damaged:
        raise AuditError(
            f"{damaged} of {count(len(dates), 'date')} not exported: see the lines before"
        )
    return 0


def _prune(args: argparse.Namespace, settings: Settings) -> int:
    from jobs.collect.retention import prune_dumps  # noqa: PLC0415 - only what is used
    from jobs.storage.retention import (  # noqa: PLC0415
        Pruned,
        Retention,
        prune_reports,
        prune_snapshots,
    )

    keep_days = args.keep or settings.retention.keep_days
    if keep_days is None:
        raise SettingsError("expected --keep, or retention.keep_days in the settings, came neither")
    now = datetime.now(UTC)
    retention = Retention(keep_days, now, new_run_id(now), args.dry_run)
    pruned: dict[str, Pruned] = {}
    if args.reports or not (args.snapshots or args.dumps):
        reports = _reports_location(args, settings)
        pruned[str(reports)] = prune_reports(Reports(_there(reports)), retention)
    if args.snapshots:
        snapshots = Location(args.snapshots)
        pruned[str(snapshots)] = prune_snapshots(_there(snapshots), retention)
    if args.dumps:
        pruned[args.dumps] = prune_dumps(Path(args.dumps), retention)
    for place, of_place in pruned.items():
        say(f"{place}:")
        for line in [*of_place.lines(dry_run=args.dry_run)] or ["nothing to remove"]:
            say(f"  {line}")
        for line in of_place.failed:
            complain(line)
    if args.dry_run:
        say("dry run: nothing was removed")
    if any(each.failed for each in pruned.values()):
        raise AuditError("not all was removed: see the lines before; the next prune goes on")
    return 0


def _there(folder: Location) -> Location:
    if not folder.is_folder():
        raise InputError(f"expected a folder, there is none: {folder}")
    return folder


def _answer(args: argparse.Namespace, settings: Settings) -> int:
    from jobs.pipeline.explain import explain_moment, predict_moments  # noqa: PLC0415
    from jobs.pipeline.moments import (  # noqa: PLC0415
        Question,
        moments_of_dumps,
        moments_of_tables,
    )

    changes: list[Change] = getattr(args, "changes", None) or []
    if args.command == "what-if" and not changes:
        raise SettingsError("expected a change, such as --leave ID; see what-if --help")
    question = Question(args.group, args.topic, _time("--at", args.at), args.cluster)
    if args.dumps:
        moments = moments_of_dumps(args.dumps, question, settings)
    else:
        moments = moments_of_tables(Location(args.snapshots), question, settings)
    if args.command == "explain":
        say(explain_moment(moments[0], settings))
        return 0
    try:
        predicted = predict_moments(moments, changes, settings)
    except ChangeError as error:
        raise SettingsError(visible(str(error))) from error
    if args.format == "json":
        give(json_text(predicted.values, indent=2))
    else:
        say(predicted.text)
    return 0 if predicted.safe else 1


#: The commands that start no session; the others are jobs.
_WITHOUT_SESSION = {
    "live": _live,
    "show": _show,
    "alert": _alert,
    "report": _report,
    "site": _site,
    "export": _export,
    "prune": _prune,
    "explain": _answer,
    "what-if": _answer,
}

if __name__ == "__main__":
    sys.exit(main())

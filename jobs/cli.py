"""The command line: ``rebalance-audit`` and, with the same arguments, the spark-submit entries.

The only place that reads the clock and (by ``arguments.py``) argv, and that decides the exit code:
0 ran, findings or not; 1 findings at or above --fail-on, or a change (what-if) that is not safe;
2 usage or settings; 3 input missing or too much of it quarantined; 4 anything else.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import traceback
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, NoReturn

from jobs.arguments import LAST_RUN, build_parser
from jobs.errors import AuditError, QuarantineError, SettingsError
from jobs.instants import to_instant
from jobs.kinds import QUEUE_FINDINGS
from jobs.known_issues import KnownIssues, find_known_issues, load_known_issues
from jobs.masking import Masking
from jobs.pipeline.engine import LOCAL, check_input, choose_engine
from jobs.progress import Progress
from jobs.publish.run import Run, Task
from jobs.settings import SEVERITIES, Settings, find_settings, load_settings
from jobs.storage import Location, Published, Reports, local_bytes
from jobs.text import visible
from jobs.window import Window
from rebalance_core import Change, ChangeError
from rebalance_core.english import count, noun

if TYPE_CHECKING:
    from jobs.pipeline.ingested import Ingested


#: Up to so many bytes on the disk, some 5 million heartbeats in Parquet, a command is short.
_SHORT_BYTES = 64 << 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    try:
        return _run(build_parser().parse_args(arguments))
    except AuditError as error:
        _complain(str(error))
        return error.exit_code
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        _complain("interrupted")
        return 4
    except Exception:
        _complain(f"failed:\n{traceback.format_exc()}")
        return 4


def entry(command: str) -> NoReturn:
    """What the spark-submit entries call: the command with the arguments of the process."""
    sys.exit(main([command, *sys.argv[1:]]))


def _complain(text: str) -> None:
    # An error may name the client ids that are there; the settings may be what is wrong.
    sys.stderr.write(f"rebalance-audit: {Masking().mask(text)}\n")


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _run(args: argparse.Namespace) -> int:
    settings = load_settings(args.settings, args.set) if args.settings else find_settings(args.set)
    return _WITHOUT_SESSION.get(args.command, _run_jobs)(args, settings)


def _run_jobs(args: argparse.Namespace, settings: Settings) -> int:
    progress = Progress(quiet=args.quiet)
    window = None if args.command == "ingest" else _window(args)
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
        task = Task(run, snapshots, reports, window, settings, known_issues, since_last)
    choice = choose_engine(
        args.engine,
        dumps if args.command != "audit" else None,
        snapshots,
        master=args.master,
        is_submitted="PYSPARK_GATEWAY_PORT" in os.environ,
    )
    progress.say(choice.sentence)
    engine = _run_locally if choice.engine == LOCAL else _run_on_spark
    ingested, published, late_error = engine(args, dumps, snapshots, settings, task, progress)
    if late_error is not None:
        _complain(str(late_error))
    if published is not None:
        for text in expired_known_issues(published):
            _complain(text)
        _say(sum_up(published, reports))
    elif ingested is not None:
        _say(
            f"ingested {ingested.lines:,} lines of {ingested.files} files into {snapshots}, "
            f"{ingested.quarantined:,} quarantined"
        )
    if late_error is not None:
        return late_error.exit_code
    return 1 if published is not None and fails(published, args.fail_on) else 0


_Outcome = tuple["Ingested | None", Published | None, QuarantineError | None]


def _run_locally(
    args: argparse.Namespace,
    dumps: Sequence[str],
    snapshots: Location,
    settings: Settings,
    task: Task | None,
    progress: Progress,
) -> _Outcome:
    from jobs.pipeline.audit_on_driver import audit, ingest  # noqa: PLC0415 - only what is used

    return _ingest_and_audit(
        args,
        lambda: ingest(dumps, snapshots, settings, progress),
        lambda: audit(_needed(task), progress),
    )


def _run_on_spark(
    args: argparse.Namespace,
    dumps: Sequence[str],
    snapshots: Location,
    settings: Settings,
    task: Task | None,
    progress: Progress,
) -> _Outcome:
    from jobs.pipeline.audit_on_spark import audit  # noqa: PLC0415
    from jobs.pipeline.ingest_on_spark import ingest  # noqa: PLC0415 - Spark takes its time to import
    from jobs.session import spark_session  # noqa: PLC0415

    if "PYSPARK_GATEWAY_PORT" not in os.environ and (args.master or "local").startswith("local"):
        check_input(None if args.command == "audit" else dumps, snapshots)
    size = local_bytes([snapshots.uri] if args.command == "audit" else dumps)
    is_short = size is not None and size <= _SHORT_BYTES
    name = f"rebalance-audit {args.command}"
    with spark_session(name, args.master, is_short=is_short) as spark:
        return _ingest_and_audit(
            args,
            lambda: ingest(spark, dumps, snapshots, settings, progress),
            lambda: audit(spark, _needed(task), progress),
        )


def _needed(task: Task | None) -> Task:
    assert task is not None  # noqa: S101 - whoever audits has one
    return task


def _ingest_and_audit(
    args: argparse.Namespace,
    ingest: Callable[[], Ingested],
    audit: Callable[[], Published],
) -> _Outcome:
    """What the command asks for, by the engine's two jobs.

    What was understood is audited even where too much was not; the exit code tells.
    """
    ingested = published = late_error = None
    if args.command in ("ingest", "run"):
        try:
            ingested = ingest()
        except QuarantineError as error:
            if args.command == "ingest":
                raise
            late_error = error
    if args.command in ("audit", "run"):
        published = audit()
    return ingested, published, late_error


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
        _say(line)
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


def _window(args: argparse.Namespace) -> Window:
    since_text = None if args.since == LAST_RUN else args.since
    if args.date and (since_text or args.until):
        raise SettingsError("expected --date or --since/--until, came both")
    if args.date:
        try:
            return Window.of_date(date.fromisoformat(args.date))
        except ValueError as error:
            raise SettingsError(
                f"--date: expected YYYY-MM-DD, came {args.date!r}: {error}"
            ) from error
    since = _time("--since", since_text, f", or {LAST_RUN}")
    until = _time("--until", args.until)
    if since and until and since >= until:
        raise SettingsError(f"expected --since before --until, came {args.since} and {args.until}")
    return Window(since, until)


def _time(option: str, text: str | None, otherwise: str = "") -> datetime | None:
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise SettingsError(
            f"{option}: expected a time as ISO 8601{otherwise}, came {text!r}"
        ) from error
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _new_run() -> Run:
    now = datetime.now(UTC)
    return Run(f"{now:%Y%m%dT%H%M%S}Z-{secrets.token_hex(3)}", now)


def sum_up(published: Published, reports: Location | None) -> str:
    """The one line that tells a person how it went; machines read summary.json."""
    rows, findings = published.summary["rows"], published.summary["findings"]
    told = [
        f"{findings[name]['persistent']} persistent of {findings[name]['total']} {words}"
        for name, words in (
            ("orphaned_queues", "orphaned"),
            ("duplicate_queues", "duplicated"),
            ("stalled_queues", "stalled queues"),
        )
    ]
    known = sum(findings[name]["known"]["persistent"] for name in QUEUE_FINDINGS)
    if known:
        told[-1] += f" ({known} of all these are known issues)"
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
        f"rebalance audit of {published.date}: {', '.join(told)}, "
        f"{rows['stacked_client_ids']} stacked client ids, in {rows['group_health']} groups and "
        f"topics; {rests if assumed else ''}{too_wide if wide else ''}reports at {reports}"
    )


def fails(published: Published, fail_on: str | None) -> bool:
    """Whether the run has findings that are so severe or worse, and no known issues."""
    if fail_on is None:
        return False
    severe = SEVERITIES[SEVERITIES.index(fail_on) :]
    findings = published.summary["findings"].values()
    return any(
        counts[severity] > counts["known"][severity] for counts in findings for severity in severe
    )


def expired_known_issues(published: Published) -> list[str]:
    """A line for each known issue that has expired, so that its findings count again."""
    return [
        f"a known issue expired on {each['expires']}, its findings count again: "
        f"{visible(each['reason'])}"
        for each in published.summary["known_issues"]
        if each["expired"]
    ]


def _collect(args: argparse.Namespace, _settings: Settings) -> int:
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
        "namesrv": args.namesrv and [each for text in args.namesrv for each in text.split(";")],
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
    asyncio.run(collect(options, os.environ, lambda: to_instant(datetime.now(UTC)), say, _complain))


#: So many rounds are collected while ``live`` watches.
_LIVE_ROUNDS = 6


def _live(args: argparse.Namespace, settings: Settings) -> int:
    place = f"{args.output}/{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
    seconds = settings.persistence_seconds if args.watch is None else args.watch
    every = max(1.0, seconds / _LIVE_ROUNDS)
    given = {
        "dumps": f"{place}/dumps",
        "every_seconds": None,
        "for_seconds": None,
        "running_infos_seconds": int(every) // 2,
    }
    _collect_from(args, given)
    _say("first verdict, from one round: nothing can be seen to last yet")
    code = _judge(args, place)
    if not seconds:
        return code
    _say(f"watching for {seconds:g} s, a round every {every:g} s")
    _collect_from(args, {**given, "every_seconds": every, "for_seconds": seconds + every / 2})
    _say(f"second verdict, from {seconds:g} s")
    return _judge(args, place)


def _judge(args: argparse.Namespace, place: str) -> int:
    """Audits the dumps of a place and writes the page: what two commands do."""
    settings = [f"--set={each}" for each in args.set]
    settings += [f"--settings={args.settings}"] if args.settings else []
    fail_on = [f"--fail-on={args.fail_on}"] if args.fail_on else []
    run = ["run", "--dumps", f"{place}/dumps", "--output", place, "--engine", LOCAL, "--quiet"]
    code = main([*run, *settings, *fail_on])
    if code > 1:
        return code
    report = ["report", "--reports", f"{place}/reports", "--output", f"{place}/report.html"]
    return max(code, main([*report, *settings]))


def _show(args: argparse.Namespace, settings: Settings) -> int:
    import json  # noqa: PLC0415

    from jobs.reports.show import format_table, read_table, select_columns  # noqa: PLC0415

    reports = Reports(_reports_location(args, settings))
    published = reports.resolve(args.date)
    if args.table == "summary":
        _say(json.dumps(published.summary, indent=2, ensure_ascii=False))
        return 0
    table = read_table(reports, published, args.table, args.group, args.topic)
    if args.columns:
        table = select_columns(table, args.columns.split(","))
    for line in format_table(table, args.format, whole=bool(args.columns)):
        _say(line)
    return 0


def _alert(args: argparse.Namespace, settings: Settings) -> int:
    from jobs.alerts.alert import alert  # noqa: PLC0415 - the other commands need no such library

    reports = Reports(_reports_location(args, settings))
    metrics = Location(args.metrics) if args.metrics else None
    for line in alert(
        reports, args.date, settings.alerts, os.environ, metrics, webhook=args.webhook
    ):
        _say(line)
    return 0


def _report(args: argparse.Namespace, settings: Settings) -> int:
    from jobs.rendering.write import write_report  # noqa: PLC0415

    reports = Reports(_reports_location(args, settings))
    written = write_report(
        reports,
        reports.resolve(args.date),
        args.format,
        args.output,
        args.top,
        settings.paths.finding_pages,
    )
    _say(f"report of {written.date}: {written.verdict} {written.location}")
    return 0


def _answer(args: argparse.Namespace, settings: Settings) -> int:
    import json  # noqa: PLC0415

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
        _say(explain_moment(moments[0], settings))
        return 0
    try:
        predicted = predict_moments(moments, changes, settings)
    except ChangeError as error:
        raise SettingsError(str(error)) from error
    if args.format == "json":
        _say(json.dumps(predicted.values, indent=2, ensure_ascii=False))
    else:
        _say(predicted.text)
    return 0 if predicted.safe else 1


#: The commands that start no session; the others are jobs.
_WITHOUT_SESSION = {
    "collect": _collect,
    "live": _live,
    "show": _show,
    "alert": _alert,
    "report": _report,
    "explain": _answer,
    "what-if": _answer,
}

if __name__ == "__main__":
    sys.exit(main())

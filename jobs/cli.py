"""The command line: ``rebalance-audit`` and, with the same arguments, the spark-submit entries.

The only place that reads argv and the clock, and that decides the exit code: 0 ran, findings or
not; 1 findings at or above --fail-on; 2 usage or settings; 3 input missing or too much of it
quarantined; 4 anything else.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import traceback
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, NoReturn

from jobs.errors import AuditError, QuarantineError, SettingsError
from jobs.plan import CHANGES
from jobs.progress import Progress
from jobs.settings import DEFAULT_SETTINGS, SEVERITIES, Settings, find_settings, load_settings
from jobs.storage import Location, Published, Reports, local_bytes
from jobs.visible import visible
from rebalance_core import AllocationError, Change, ChangeError, own_ids, subscribe_all

if TYPE_CHECKING:
    from jobs.pipeline.audit import Run
    from jobs.pipeline.window import Window

#: In place of a time for --since.
LAST_RUN = "last"

#: An input of so many bytes on the disk takes no minute.
_SHORT_BYTES = 16 << 20

_EXIT_CODES = """\
exit codes: 0 ran, findings or not; 1 findings at or above --fail-on; 2 usage or settings;
3 input missing, or more of it quarantined than allowed; 4 anything else"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise SettingsError(f"{self.prog}: {message}\n{self.format_usage().rstrip()}")


def _command(
    commands: argparse._SubParsersAction[_Parser], name: str, summary: str, example: str
) -> argparse.ArgumentParser:
    return commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=f"example:\n  rebalance-audit {example}\n\n{_EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = _Parser(
        prog="rebalance-audit",
        description="Finds the RocketMQ queues that are consumed twice or by nobody.",
        epilog=f"example:\n  rebalance-audit run --dumps dumps/ --output out/\n\n{_EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = _command(
        commands,
        "run",
        "ingest dumps, audit them and sum up",
        "run --dumps 'dumps/2026-11-20/*.jsonl.gz' --output out/",
    )
    _add_dumps(run)
    run.add_argument("--output", metavar="DIR", required=True, help="gets snapshots/ and reports/")
    _add_window(run)
    _add_fail_on(run)
    _add_common(run)
    ingest = _command(
        commands,
        "ingest",
        "turn dumps into snapshot tables",
        "ingest --dumps dumps/2026-11-20/ --snapshots lake/snapshots",
    )
    _add_dumps(ingest)
    ingest.add_argument("--snapshots", metavar="DIR", help="gets a folder for each table")
    _add_common(ingest)
    audit = _command(
        commands,
        "audit",
        "audit snapshot tables and publish the reports",
        "audit --snapshots lake/snapshots --reports lake/reports --date 2026-11-20",
    )
    audit.add_argument("--snapshots", metavar="DIR", help="has a folder for each table")
    audit.add_argument("--reports", metavar="DIR", help="gets the published reports")
    _add_window(audit)
    _add_fail_on(audit)
    _add_common(audit)
    show = _command(
        commands,
        "show",
        "print a published table",
        "show orphaned_queues --reports out/reports --group G_ORDER",
    )
    show.add_argument("table", metavar="TABLE", help="the table's name, or summary")
    show.add_argument("--reports", metavar="DIR", help="where the reports are published")
    show.add_argument("--date", metavar="D", help="YYYY-MM-DD; else the last one published")
    show.add_argument("--format", choices=("table", "json", "csv"), default="table")
    show.add_argument("--group", metavar="G", help="only this consumer group")
    show.add_argument("--topic", metavar="T", help="only this topic")
    show.add_argument("--columns", metavar="A,B", help="only these columns, in this order")
    _add_settings(show)
    _add_explain(commands)
    _add_what_if(commands)
    return parser


def _add_explain(commands: argparse._SubParsersAction[_Parser]) -> None:
    explain = _command(
        commands,
        "explain",
        "tell who takes which queue, why, what is wrong and what repairs it; needs no Spark",
        "explain --dumps dumps/ --group G_ORDER --topic ORDER --at 2026-11-20T10:00:00Z",
    )
    _add_question(explain)


def _add_what_if(commands: argparse._SubParsersAction[_Parser]) -> None:
    what_if = _command(
        commands,
        "what-if",
        "tell what changes would do, in their order, and whether a rollout is safe; needs no Spark",
        "what-if --dumps dumps/ --group G --topic T --leave 10.0.0.4@app --queues 8",
    )
    what_if.usage = (
        "%(prog)s (--dumps PATH ... | --snapshots DIR) --group G --topic T CHANGE ...\n"
        "                               [--at TIME] [--cluster C] [--settings FILE] [--set A.B=C]"
    )
    _add_question(what_if)
    changes = what_if.add_argument_group("changes, at least one")
    for option, metavar, text in (
        ("--leave", "ID", "a process with this client id leaves"),
        ("--join", "ID", "one more process with this client id joins"),
        ("--strategy", "NAME", "all use it; NAME={key = value} with parameters"),
        ("--add-broker", "NAME=N", "a broker is added with so many queues"),
        ("--remove-broker", "NAME", "a broker is removed"),
        ("--queues", "N", "so many queues on every broker; NAME=N on one"),
        ("--unify-list", "NAME", "this broker lists all members"),
        ("--mend", "FAULT", "a fault of group_faults is mended"),
    ):
        changes.add_argument(
            option,
            metavar=metavar,
            dest="changes",
            action="append",
            type=_change_of(CHANGES[option]),
            help=text,
        )
    for option, change, text in (
        ("--own-ids", own_ids(), "every process gets an id of its own"),
        ("--subscribe-all", subscribe_all(), "all members subscribe to it, by one filter"),
    ):
        changes.add_argument(option, dest="changes", action="append_const", const=change, help=text)


def _change_of(parse: Callable[[str], Change]) -> Callable[[str], Change]:
    def parsed(text: str) -> Change:
        try:
            return parse(text)
        except (ChangeError, AllocationError) as error:
            raise argparse.ArgumentTypeError(visible(str(error))) from error

    return parsed


def _add_question(command: argparse.ArgumentParser) -> None:
    source = command.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--dumps", metavar="PATH", nargs="+", help="local dumps: files, folders, globs"
    )
    source.add_argument("--snapshots", metavar="DIR", help="or the snapshot tables of ingest")
    command.add_argument("--group", metavar="G", required=True, help="the consumer group")
    command.add_argument("--topic", metavar="T", required=True, help="the topic")
    command.add_argument("--at", metavar="TIME", help="ISO 8601; else the last snapshot")
    command.add_argument("--cluster", metavar="C", help="where the group is in several")
    _add_settings(command)


def _add_dumps(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--dumps", metavar="PATH", nargs="+", help="JSON Lines, plain or .gz: files, folders, globs"
    )


def _add_window(command: argparse.ArgumentParser) -> None:
    command.add_argument("--date", metavar="D", help="audit this day, UTC, YYYY-MM-DD")
    command.add_argument(
        "--since",
        metavar="T",
        help=f"audit from this time on, ISO 8601; {LAST_RUN}: go on from the last published run "
        "(of the date), without reading again what it has read",
    )
    command.add_argument("--until", metavar="T", help="audit up to this time, exclusive, ISO 8601")


def _add_fail_on(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--fail-on", choices=SEVERITIES, help="exit with 1 on findings so severe or worse"
    )


def _add_settings(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--settings", metavar="FILE", help=f"else {DEFAULT_SETTINGS}, here or beside the code"
    )
    command.add_argument(
        "--set", metavar="A.B=C", action="append", default=[], help="override one setting"
    )


def _add_common(command: argparse.ArgumentParser) -> None:
    _add_settings(command)
    command.add_argument("--master", metavar="URL", help="Spark's master; else local[*]")
    command.add_argument("--quiet", action="store_true", help="only the last line")


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
    sys.stderr.write(f"rebalance-audit: {text}\n")


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _run(args: argparse.Namespace) -> int:
    settings = load_settings(args.settings, args.set) if args.settings else find_settings(args.set)
    if args.command == "show":
        return _show(args, settings)
    if args.command in ("explain", "what-if"):
        return _answer(args, settings)
    progress = Progress(quiet=args.quiet)
    window = None if args.command == "ingest" else _window(args)
    dumps = getattr(args, "dumps", None) or settings.paths.dumps
    if args.command in ("ingest", "run") and not dumps:
        raise SettingsError("expected --dumps, or paths.dumps in the settings, came neither")
    snapshots, reports = _places(args, settings)

    from jobs.pipeline.audit import audit  # noqa: PLC0415 - Spark takes its time to import
    from jobs.pipeline.ingest import ingest  # noqa: PLC0415
    from jobs.session import spark_session  # noqa: PLC0415

    size = local_bytes([snapshots.uri] if args.command == "audit" else dumps)
    is_short = size is not None and size <= _SHORT_BYTES
    name = f"rebalance-audit {args.command}"
    with spark_session(name, args.master, is_short=is_short) as spark:
        ingested = published = None
        late_error: AuditError | None = None
        if args.command in ("ingest", "run"):
            assert snapshots is not None  # noqa: S101 - _places checked
            try:
                ingested = ingest(spark, dumps, snapshots, settings, progress)
            except QuarantineError as error:
                # What was understood is audited all the same; the exit code tells.
                if args.command == "ingest":
                    raise
                late_error = error
        if args.command in ("audit", "run"):
            assert window is not None  # noqa: S101
            assert snapshots is not None  # noqa: S101
            assert reports is not None  # noqa: S101
            published = audit(
                spark,
                snapshots,
                reports,
                window,
                settings,
                _new_run(),
                progress,
                since_last=args.since == LAST_RUN,
            )
    if late_error is not None:
        _complain(str(late_error))
    if published is not None:
        _say(sum_up(published, reports))
    elif ingested is not None:
        _say(
            f"ingested {ingested.lines:,} lines of {ingested.files} files into {snapshots}, "
            f"{ingested.quarantined:,} quarantined"
        )
    if late_error is not None:
        return late_error.exit_code
    return 1 if published is not None and _fails(published, args.fail_on) else 0


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


def _window(args: argparse.Namespace) -> Window:
    from jobs.pipeline.window import Window  # noqa: PLC0415

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
    from jobs.pipeline.audit import Run  # noqa: PLC0415

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
            ("stalled_queues", "stalled queue runs"),
        )
    ]
    return (
        f"rebalance audit of {published.date}: {', '.join(told)}, "
        f"{rows['stacked_client_ids']} stacked client ids, in {rows['group_health']} groups and "
        f"topics; reports at {reports}"
    )


def _fails(published: Published, fail_on: str | None) -> bool:
    if fail_on is None:
        return False
    severe = SEVERITIES[SEVERITIES.index(fail_on) :]
    findings = published.summary["findings"].values()
    return any(counts[severity] for counts in findings for severity in severe)


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


def _answer(args: argparse.Namespace, settings: Settings) -> int:
    from jobs.pipeline.explain import explain_moment, predict_moment  # noqa: PLC0415
    from jobs.pipeline.moments import moment_of_dumps, moment_of_tables  # noqa: PLC0415

    changes: list[Change] = getattr(args, "changes", None) or []
    if args.command == "what-if" and not changes:
        raise SettingsError("expected a change, such as --leave ID; see what-if --help")
    question = (args.group, args.topic, _time("--at", args.at), args.cluster, settings)
    if args.dumps:
        moment = moment_of_dumps(args.dumps, *question)
    else:
        moment = moment_of_tables(Location(args.snapshots), *question)
    if args.command == "explain":
        _say(explain_moment(moment, settings))
        return 0
    try:
        _, text = predict_moment(moment, changes, settings)
    except ChangeError as error:
        raise SettingsError(str(error)) from error
    _say(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

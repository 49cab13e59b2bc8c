"""The options of every command: argv in, a namespace out."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NoReturn

from jobs.changes import CHANGES
from jobs.errors import SettingsError
from jobs.known_issues import DEFAULT_KNOWN_ISSUES
from jobs.pipeline.engine import AUTO, LOCAL, SPARK
from jobs.settings import DEFAULT_SETTINGS, SEVERITIES
from jobs.text import visible
from rebalance_core import AllocationError, Change, ChangeError, own_ids, subscribe_all

#: In place of a time for --since.
LAST_RUN = "last"

_EXIT_CODES = """\
exit codes: 0 ran, findings or not; 1 findings at or above --fail-on, or what-if: not safe;
2 usage or settings; 3 input missing, or more of it quarantined than allowed; 4 anything else"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise SettingsError(f"{self.prog}: {message}\n{self.format_usage().rstrip()}")


def _command(
    commands: argparse._SubParsersAction[_Parser],
    name: str,
    summary: str,
    example: str,
    detail: str = "",
) -> argparse.ArgumentParser:
    return commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.{detail}",
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
    _add_live(commands)
    _add_collect(commands)
    run = _command(
        commands,
        "run",
        "ingest dumps, audit them and sum up",
        "run --dumps 'dumps/2026-11-20/*.jsonl.gz' --output out/",
    )
    _add_dumps(run)
    run.add_argument("--output", metavar="DIR", required=True, help="gets snapshots/ and reports/")
    _add_window(run)
    _add_known_issues(run)
    _add_fail_on(run)
    _add_common(run)
    _add_dry_run(run)
    ingest = _command(
        commands,
        "ingest",
        "turn dumps into snapshot tables",
        "ingest --dumps dumps/2026-11-20/ --snapshots lake/snapshots",
    )
    _add_dumps(ingest)
    ingest.add_argument("--snapshots", metavar="DIR", help="gets a folder for each table")
    _add_common(ingest)
    _add_dry_run(ingest)
    audit = _command(
        commands,
        "audit",
        "audit snapshot tables and publish the reports",
        "audit --snapshots lake/snapshots --reports lake/reports --date 2026-11-20",
    )
    audit.add_argument("--snapshots", metavar="DIR", help="has a folder for each table")
    audit.add_argument("--reports", metavar="DIR", help="gets the published reports")
    _add_window(audit)
    _add_known_issues(audit)
    _add_fail_on(audit)
    _add_common(audit)
    _add_dry_run(audit)
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
    _add_alert(commands)
    _add_report(commands)
    _add_explain(commands)
    _add_what_if(commands)
    return parser


def _add_collect(commands: argparse._SubParsersAction[_Parser]) -> None:
    collect = _command(
        commands,
        "collect",
        "ask nameservers and brokers, write what they say as dumps",
        "collect --namesrv 10.0.0.1:9876 --namesrv 10.0.0.2:9876 --dumps dumps/ --every 60",
        detail="""
It only reads; it finds the brokers by the nameservers. It needs --namesrv or --config, and --dumps.
The keys of an account (ACL) come from the environment (REBALANCE_AUDIT_ACCESS_KEY and
REBALANCE_AUDIT_SECRET_KEY) or from --account. P is a regular expression over the whole name.""",
    )
    _add_servers(collect)
    add = collect.add_argument
    add("--dumps", metavar="DIR", help="gets a file a round, in folders by date")
    add("--every", metavar="T", type=_duration, help="a round every 60, 5m, ...; else one round")
    add("--for", metavar="T", type=_duration, dest="for_", help="so long, 24h; else until SIGTERM")
    add("--metrics", metavar="FILE", help="gets the collector's own metrics, *.prom, after a round")
    add("--quiet", action="store_true", help="only what fails")
    # The settings are those of the audit.
    collect.set_defaults(settings=None, set=[])


def _add_live(commands: argparse._SubParsersAction[_Parser]) -> None:
    live = _command(
        commands,
        "live",
        "collect from a cluster and audit it at once: your own cluster, now",
        "live --namesrv 10.0.0.1:9876",
        detail="""
The first verdict comes after one round, in which nothing can be seen to last; the second one after
persistence_seconds. It only reads. See collect --help for the options of the servers.""",
    )
    _add_servers(live)
    live.add_argument(
        "--output",
        metavar="DIR",
        default="out/live",
        help="gets a folder with dumps, reports and page; else out/live",
    )
    live.add_argument(
        "--watch", metavar="T", type=_duration, help="else persistence_seconds; 0: one round alone"
    )
    _add_fail_on(live)
    _add_settings(live)
    live.add_argument("--quiet", action="store_true", help="only the verdicts")


def _add_servers(command: argparse.ArgumentParser) -> None:
    """Which servers are asked, how, and of what."""
    add = command.add_argument
    add("--namesrv", metavar="A", action="append", help="host:port of a nameserver; name each")
    add("--config", metavar="FILE", help="or clusters from a file, see docs/collect/collect.toml")
    add("--name", metavar="C", help="the cluster's name in the dumps; else RocketMQ's name for it")
    add("--cluster", metavar="P", help="only these of RocketMQ's clusters")
    add("--group", metavar="P", action="append", help="only these consumer groups; repeatable")
    add("--topic", metavar="P", help="only the routes of these topics")
    add(
        "--without",
        metavar="PART",
        action="append",
        help="do not ask routes, running-infos, offsets or request-modes; repeatable",
    )
    add("--timeout", metavar="T", type=_duration, help="to wait for an answer; else 5 s")
    add("--parallel", metavar="N", type=_natural, help="questions at a time at an address; else 4")
    add("--rate", metavar="N", type=float, help="questions a second at an address")
    add("--account", metavar="FILE", help="with accessKey: and secretKey: as in conf/tools.yml")
    add("--tls", action="store_true", help="encrypt; the file of --config says which certificates")


def _duration(text: str) -> float:
    from jobs.collect.options import seconds_of  # noqa: PLC0415 - only what is used

    try:
        return seconds_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _add_alert(commands: argparse._SubParsersAction[_Parser]) -> None:
    alert = _command(
        commands,
        "alert",
        "tell Prometheus and a chat of a published run",
        "alert --reports out/reports --metrics rebalance.prom --webhook",
        detail="""
Without --metrics and --webhook the message is printed. The URL of the webhook comes from the
environment (REBALANCE_AUDIT_WEBHOOK) or from the file that alerts.webhook_file names. Whether it
works or not, the published run stays as it is: 2 there is no URL, 4 nobody took the message.""",
    )
    alert.add_argument("--reports", metavar="DIR", help="where the reports are published")
    alert.add_argument("--date", metavar="D", help="YYYY-MM-DD; else the last one published")
    alert.add_argument("--metrics", metavar="FILE", help="gets the metrics, *.prom, in one step")
    alert.add_argument(
        "--webhook", action="store_true", help="post what is new and was not posted yet"
    )
    _add_settings(alert)


def _add_report(commands: argparse._SubParsersAction[_Parser]) -> None:
    report = _command(
        commands,
        "report",
        "write the report of a published run: a page, a ticket, or data",
        "report --reports out/reports --date 2026-11-20",
    )
    report.add_argument("--reports", metavar="DIR", help="where the reports are published")
    report.add_argument("--date", metavar="D", help="YYYY-MM-DD; else the last one published")
    report.add_argument(
        "--output",
        metavar="PATH",
        help="the file, or a folder (ends with /, or is one) that gets dt=<date>.<format>; "
        "else report/ beside the tables",
    )
    report.add_argument("--format", choices=("html", "markdown", "csv", "json"), default="html")
    report.add_argument(
        "--top",
        metavar="N",
        type=_natural,
        default=10,
        help="so many topics, worst first, in full and with pictures; else 10",
    )
    _add_settings(report)


def _natural(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number from 0 on, came {text!r}")
    return int(text)


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
        detail="""
Without --topic all topics of the group change (queues: all but the retry topic). Exit code 0: it is
safe for every topic; 1: a state on the way or the end has a queue with several owners, or with none
that had one, or messages lie in queues that go, or nothing shows it.""",
    )
    what_if.usage = (
        "%(prog)s (--dumps PATH ... | --snapshots DIR) --group G [--topic T] CHANGE ...\n"
        "                               [--format table|json] [--at TIME] [--cluster C]\n"
        "                               [--settings FILE] [--set A.B=C]"
    )
    _add_question(what_if, every_topic=True)
    what_if.add_argument(
        "--format", choices=("table", "json"), default="table", help="a text, or one JSON object"
    )
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


def _add_question(command: argparse.ArgumentParser, *, every_topic: bool = False) -> None:
    source = command.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--dumps", metavar="PATH", nargs="+", help="local dumps: files, folders, globs"
    )
    source.add_argument("--snapshots", metavar="DIR", help="or the snapshot tables of ingest")
    command.add_argument("--group", metavar="G", required=True, help="the consumer group")
    command.add_argument(
        "--topic",
        metavar="T",
        required=not every_topic,
        help="the topic; else every topic of the group" if every_topic else "the topic",
    )
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


def _add_known_issues(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--known-issues",
        metavar="FILE",
        help=f"else {DEFAULT_KNOWN_ISSUES}, here or beside the code",
    )


def _add_fail_on(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--fail-on",
        choices=SEVERITIES,
        help="exit with 1 on findings so severe or worse that are no known issues",
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
    command.add_argument(
        "--engine",
        choices=(AUTO, LOCAL, SPARK),
        default=AUTO,
        help=f"{LOCAL}: this process alone, without Java; {SPARK}: Spark; else by the input's size",
    )
    command.add_argument("--master", metavar="URL", help="Spark's master; else local[*]")
    command.add_argument("--quiet", action="store_true", help="only the last line")


def _add_dry_run(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--dry-run",
        action="store_true",
        help="say what would be read, with sizes, and written where, with which settings; write "
        "nothing",
    )

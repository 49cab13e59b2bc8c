"""The options of every command: argv in, a namespace out."""

from __future__ import annotations

import argparse
import platform
import re
import sys
from collections.abc import Callable, Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NoReturn

from jobs import __version__
from jobs.changes import CHANGES
from jobs.environment import SPARK_PACKAGE
from jobs.errors import SettingsError
from jobs.incomplete import INCOMPLETE
from jobs.known_issues import DEFAULT_KNOWN_ISSUES
from jobs.languages.language import LANGUAGES
from jobs.output import STANDARD_OUTPUT, write
from jobs.pipeline.engine import AUTO, LOCAL, SPARK
from jobs.settings import DEFAULT_SETTINGS, SEVERITIES
from jobs.text import visible
from rebalance_core import AllocationError, Change, ChangeError, separate_ids, subscribe_all
from rebalance_core.errors import nearest

#: In place of a time for --since.
LAST_RUN = "last"

_EXIT_CODES = """\
exit codes: 0 ran, findings or not; 1 findings at or above --fail-on, or what-if: not safe;
2 usage, settings; 3 no input or too much quarantined; 4 anything else; 130 Ctrl-C; 143 SIGTERM"""

#: What a message shows of an argument.
_LONGEST = 500
#: A site has so many nights at most: a year.
_MOST_NIGHTS = 366


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise SettingsError(f"{_shown(message)}; {self.prog} --help lists the options")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Adds the command or value that was meant, where one is near, to those that there are."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            near = nearest(str(value), [str(each) for each in action.choices or ()])
            if near:
                error.message += f": did you mean {' or '.join(near)}?"
            raise

    def print_help(self, _file: object = None) -> None:
        write(self.format_help().removesuffix("\n"))


class _Versions(argparse.Action):
    """Prints the versions that matter to whoever reads a report of a defect."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        others = [f"Python {platform.python_version()}"]
        for package in (SPARK_PACKAGE, "pyarrow", "numpy"):
            try:
                others.append(f"{package} {version(package)}")
            except PackageNotFoundError:
                others.append(f"no {package}")
        write(f"rebalance-audit {__version__} ({', '.join(others)})")
        parser.exit()


def _shown(text: str) -> str:
    words = visible(text)
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}..."


def _command(
    commands: argparse._SubParsersAction[_Parser],
    name: str,
    summary: str,
    example: str,
    detail: str = "",
) -> argparse.ArgumentParser:
    command = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.{detail}",
        epilog=f"example:\n  rebalance-audit {example}\n\n{_EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument(
        "-v", "--verbose", action="store_true", help="show the stack of an error, and Spark's log"
    )
    return command


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of a command; None: those of the process. SettingsError for what is no text."""
    given = sys.argv[1:] if arguments is None else arguments
    for each in given:
        try:
            each.encode()
        except UnicodeEncodeError as error:
            # Bytes that are no UTF-8 come as halves of characters: no table can have them.
            raise SettingsError(f"expected arguments in UTF-8, came {visible(each)}") from error
    args, others = build_parser().parse_known_args(given)
    if others:
        raise SettingsError(
            f"unrecognized arguments: {_shown(' '.join(others))}; "
            f"rebalance-audit {args.command} --help lists the options"
        )
    return args


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = _Parser(
        prog="rebalance-audit",
        description="Finds the RocketMQ queues that are consumed twice or by nobody.",
        epilog=f"example:\n  rebalance-audit run --dumps dumps/ --output out/\n\n{_EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Versions, nargs=0, help="print the version, and exit")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_live(commands)
    _add_collect(commands)
    run = _command(
        commands,
        "run",
        "ingest dumps, audit them, publish the reports and print a summary",
        "run --dumps 'dumps/2026-11-20/*.jsonl.gz' --output out/",
    )
    _add_dumps(run)
    run.add_argument(
        "--output",
        metavar="DIR",
        type=_folder,
        required=True,
        help="the folder that gets snapshots/ and reports/",
    )
    _add_window(run)
    _add_fail_on(run)
    _add_common(run)
    ingest = _command(
        commands,
        "ingest",
        "read dumps, and write them as snapshot tables",
        "ingest --dumps dumps/2026-11-20/ --snapshots lake/snapshots",
    )
    _add_dumps(ingest)
    ingest.add_argument(
        "--snapshots", metavar="DIR", type=_folder, help="gets a folder for each table"
    )
    _add_common(ingest)
    audit = _command(
        commands,
        "audit",
        "audit snapshot tables and publish the reports",
        "audit --snapshots lake/snapshots --reports lake/reports --date 2026-11-20",
    )
    audit.add_argument("--snapshots", metavar="DIR", help="has a folder for each table")
    audit.add_argument("--reports", metavar="DIR", type=_folder, help="gets the published reports")
    _add_window(audit)
    _add_fail_on(audit)
    _add_common(audit)
    show = _command(
        commands,
        "show",
        "print a published table",
        "show orphaned_queues --reports out/reports --group G_ORDER",
    )
    show.add_argument(
        "table", metavar="TABLE", help="the name of a table, as orphaned_queues; or summary"
    )
    _add_reports(show)
    _add_date_published(show)
    show.add_argument("--format", choices=("table", "json", "csv"), default="table")
    show.add_argument("--group", metavar="G", help="only this consumer group")
    show.add_argument("--topic", metavar="T", help="only this topic")
    show.add_argument(
        "--columns", metavar="A,B", type=_names, help="only these columns, in this order"
    )
    show.add_argument(
        "--wide", action="store_true", help="a row is one line, however wide; nothing is cut"
    )
    show.add_argument(
        "--no-pager", action="store_true", help="never show a long table in $PAGER (less)"
    )
    _add_settings(show)
    _add_alert(commands)
    _add_report(commands)
    _add_site(commands)
    _add_export(commands)
    _add_prune(commands)
    _add_explain(commands)
    _add_what_if(commands)
    _add_completion(commands)
    return parser


def _add_collect(commands: argparse._SubParsersAction[_Parser]) -> None:
    collect = _command(
        commands,
        "collect",
        "ask nameservers and brokers, and write their answers as dumps",
        "collect --namesrv 10.0.0.1:9876 --namesrv 10.0.0.2:9876 --dumps dumps/ --every 60",
        detail="""
It changes nothing in the cluster, and finds the brokers by the nameservers. It needs --namesrv or
--config, and --dumps.
The keys of an account (ACL) come from the environment (REBALANCE_AUDIT_ACCESS_KEY and
REBALANCE_AUDIT_SECRET_KEY) or from --account. P is a regular expression over the whole name.""",
    )
    _add_servers(collect)
    add = collect.add_argument
    add("--dumps", metavar="DIR", type=_folder, help="gets a file a round, in folders by date")
    add(
        "--every", metavar="T", type=_duration, help="a round every 60, 5m, ...; default: one round"
    )
    add(
        "--for",
        metavar="T",
        type=_duration,
        dest="for_",
        help="how long, as 24h; default: until SIGTERM",
    )
    add("--metrics", metavar="FILE", help="gets the collector's metrics, *.prom, after a round")
    add("--quiet", action="store_true", help="only what fails")
    # The settings are those of the audit.
    collect.set_defaults(settings=None, set=[])


def _add_live(commands: argparse._SubParsersAction[_Parser]) -> None:
    live = _command(
        commands,
        "live",
        "collect from your cluster and audit it at once",
        "live --namesrv 10.0.0.1:9876",
        detail="""
The first verdict comes after one round, in which nothing can be seen to last; the second one after
persistence_seconds. It changes nothing in the cluster. See also collect --help.""",
    )
    _add_servers(live)
    live.add_argument(
        "--output",
        metavar="DIR",
        type=_folder,
        default="out/live",
        help="gets a folder with dumps, reports and page; default: out/live",
    )
    live.add_argument(
        "--watch",
        metavar="T",
        type=_duration,
        help="how long to watch; default: persistence_seconds; 0: one round alone",
    )
    _add_fail_on(live)
    _add_language(live)
    _add_settings(live)


def _add_servers(command: argparse.ArgumentParser) -> None:
    """Which servers are asked, how, and of what."""
    add = command.add_argument
    add(
        "--namesrv",
        metavar="A",
        action="append",
        help="host:port of a nameserver; give the option once for each",
    )
    add("--config", metavar="FILE", help="a file with clusters, as docs/collect/collect.toml")
    add("--name", metavar="C", help="the cluster's name in the dumps; default: RocketMQ's name")
    add("--cluster", metavar="P", help="only these of RocketMQ's clusters")
    add("--group", metavar="P", action="append", help="only these consumer groups; repeatable")
    add("--topic", metavar="P", help="only the routes of these topics")
    add(
        "--without",
        metavar="PART",
        action="append",
        help="do not ask routes, running-infos, offsets or request-modes; repeatable",
    )
    add(
        "--timeout",
        metavar="T",
        type=_duration,
        help="how long to wait for an answer; default: 5 s",
    )
    add(
        "--parallel",
        metavar="N",
        type=_natural,
        help="requests at a time to an address; default: 4",
    )
    add(
        "--rate", metavar="N", type=float, help="requests a second to an address; default: no limit"
    )
    add(
        "--account", metavar="FILE", help="a file with accessKey: and secretKey:, as conf/tools.yml"
    )
    add("--tls", action="store_true", help="encrypt; the file of --config has the certificates")


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
        "send a published run to chats and on-call tools, write it for Prometheus",
        "alert --reports out/reports --metrics rebalance.prom --webhook",
        detail="""
Without --metrics and --webhook the message is printed. [alerts] in the settings says where it goes
and what is sent; docs/alerts.md has an example for each service. The URL comes from the environment
(REBALANCE_AUDIT_WEBHOOK) or from the file that alerts.webhook_file names. The published run stays
as it is. Exit code 2: there is no URL; 4: nobody took the message.""",
    )
    _add_reports(alert)
    _add_date_published(alert)
    alert.add_argument(
        "--metrics",
        metavar="FILE",
        help="gets the metrics, *.prom, in one step; -: standard output",
    )
    alert.add_argument(
        "--webhook", action="store_true", help="send what is new and was not sent yet"
    )
    _add_language(alert)
    _add_settings(alert)


def _add_report(commands: argparse._SubParsersAction[_Parser]) -> None:
    report = _command(
        commands,
        "report",
        "write the report of a published run: a page, or a ticket",
        "report --reports out/reports --date 2026-11-20",
    )
    _add_reports(report)
    _add_date_published(report)
    report.add_argument(
        "--output",
        metavar="PATH",
        help="the file, or a folder (ends with /, or is one) that gets dt=<date>.<format>; "
        "-: standard output; default: report/ beside the tables",
    )
    report.add_argument("--format", choices=("html", "markdown"), default="html")
    _add_top(report, "topics")
    _add_language(report)
    _add_settings(report)


def _add_site(commands: argparse._SubParsersAction[_Parser]) -> None:
    site = _command(
        commands,
        "site",
        "write the pages of the last nights, linked, and an index of them",
        "site --reports out/reports",
        detail="""
index.html has how each group was, night by night. A night without a published run is shown as
missing. Serve the folder, or open index.html: the pages need no server.""",
    )
    _add_reports(site)
    site.add_argument(
        "--date", metavar="D", type=_date, help="the last night; default: the last one published"
    )
    site.add_argument(
        "--output",
        metavar="DIR",
        type=_folder,
        help="the folder; default: report/ beside the tables",
    )
    site.add_argument(
        "--nights",
        metavar="N",
        type=_nights,
        default=30,
        help="how many days of the calendar up to then; default: 30",
    )
    _add_top(site, "topics of each night")
    _add_language(site)
    _add_settings(site)


def _nights(text: str) -> int:
    number = _natural(text)
    if not 1 <= number <= _MOST_NIGHTS:
        raise argparse.ArgumentTypeError(
            f"expected a number of nights from 1 to {_MOST_NIGHTS}, came {text!r}"
        )
    return number


def _add_export(commands: argparse._SubParsersAction[_Parser]) -> None:
    export = _command(
        commands,
        "export",
        "write published reports into tables of Delta Lake or Iceberg",
        "export --reports out/reports --delta lake/audit",
        detail="""
Each report table becomes one table of all dates, with a column date. The rows of a date are
replaced in one commit: a date that is exported again counts once. It needs the extra delta or
iceberg. The address of an Iceberg catalog comes from ~/.pyiceberg.yaml or from the environment
(PYICEBERG_CATALOG__C__URI).""",
    )
    _add_reports(export)
    place = export.add_mutually_exclusive_group(required=True)
    place.add_argument(
        "--delta", metavar="DIR", type=_folder, help="gets a Delta table for each report table"
    )
    place.add_argument("--iceberg", metavar="C.N", help="the catalog, and the namespace in it")
    dates = export.add_mutually_exclusive_group()
    _add_date_published(dates)
    dates.add_argument("--all-dates", action="store_true", help="every date that is published")
    _add_settings(export)


def _add_prune(commands: argparse._SubParsersAction[_Parser]) -> None:
    prune = _command(
        commands,
        "prune",
        "remove old reports, old dumps, and what failed runs left",
        "prune --keep 90d --reports out/reports --dry-run",
        detail="""
Days are counted back from the last date that is there, which stays. Only files with the names of
the audit's or the collector's files are removed. Without --reports, --snapshots and --dumps the
reports of paths.reports are meant. To keep the three for different times, use three commands.""",
    )
    add = prune.add_argument
    add(
        "--keep",
        metavar="T",
        type=_days,
        help="how long, as 90d or 12w; default: retention.keep_days",
    )
    add("--reports", metavar="DIR", help="published dates, with pages and notes of alerts")
    add("--snapshots", metavar="DIR", help="what failed ingests left; the last ingest stays")
    add("--dumps", metavar="DIR", help="whole days of the collector's rounds, on this machine")
    add("--dry-run", action="store_true", help="print what would be removed; remove nothing")
    _add_settings(prune)


def _days(text: str) -> int:
    match = re.fullmatch(r"([1-9]\d{0,4})([dw])", text, re.ASCII)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"expected a number of days or weeks from 1 on, such as 90d or 12w, came {text!r}"
        )
    return int(match[1]) * (7 if match[2] == "w" else 1)


def _add_reports(command: argparse.ArgumentParser) -> None:
    command.add_argument("--reports", metavar="DIR", help="where the reports are published")


def _add_top(command: argparse.ArgumentParser, topics: str) -> None:
    command.add_argument(
        "--top",
        metavar="N",
        type=_natural,
        default=10,
        help=f"how many {topics}, worst first, in full and with pictures; default: 10",
    )


def _add_date_published(command: argparse._ActionsContainer) -> None:
    command.add_argument(
        "--date",
        metavar="D",
        type=_date,
        help="a date, as 2026-11-20; default: the last one published",
    )


def _date(text: str) -> str:
    try:
        # A week of a year, and a date without hyphens, are ISO 8601 too: one form is enough.
        if date.fromisoformat(text).isoformat() == text:
            return text
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"expected a date as YYYY-MM-DD, came {text!r}")


def _names(text: str) -> list[str]:
    names = [each.strip() for each in text.split(",")]
    if not any(names):
        raise argparse.ArgumentTypeError(f"expected names with commas between, came {text!r}")
    return list(dict.fromkeys(filter(None, names)))


def _folder(text: str) -> str:
    if text == STANDARD_OUTPUT:
        raise argparse.ArgumentTypeError(
            f"expected a folder, came {text!r}: what has several files does not go to standard "
            "output"
        )
    return text


def _natural(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number from 0 on, came {text!r}")
    return int(text)


def _add_explain(commands: argparse._SubParsersAction[_Parser]) -> None:
    explain = _command(
        commands,
        "explain",
        "show who takes which queue, why, what is wrong and what repairs it; needs no Spark",
        "explain --dumps dumps/ --group G_ORDER --topic ORDER --at 2026-11-20T10:00:00Z",
    )
    _add_question(explain)


def _add_what_if(commands: argparse._SubParsersAction[_Parser]) -> None:
    what_if = _command(
        commands,
        "what-if",
        "show what changes would do, and whether they can be rolled out; needs no Spark",
        "what-if --dumps dumps/ --group G --topic T --leave 10.0.0.4@app --queues 8",
        detail="""
Changes are made in the order of the options. Exit code 1: not safe, see docs/what_if.md.""",
    )
    what_if.usage = (
        "%(prog)s (--dumps PATH ... | --snapshots DIR) --group G [--topic T] CHANGE ...\n"
        "                               [--format table|json] [--at TIME] [--cluster C]"
        " [--language L]\n"
        "                               [--settings FILE] [--set A.B=C] [--quiet] [-v]"
    )
    _add_question(what_if, every_topic=True)
    what_if.add_argument(
        "--format",
        choices=("table", "json"),
        metavar="F",
        default="table",
        help="table: a text; json: one JSON object",
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
        ("--mend", "FAULT", "a fault of group_faults is repaired"),
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
        ("--separate-ids", separate_ids(), "every process gets a separate id"),
        ("--subscribe-all", subscribe_all(), "all members subscribe to it, by one filter"),
    ):
        changes.add_argument(option, dest="changes", action="append_const", const=change, help=text)


def _change_of(parse: Callable[[str], Change]) -> Callable[[str], Change]:
    def parsed(text: str) -> Change:
        try:
            return parse(text)
        except (ChangeError, AllocationError) as error:
            raise argparse.ArgumentTypeError(visible(str(error))) from error
        except RecursionError as error:
            raise argparse.ArgumentTypeError("lists or tables are nested too deep") from error

    return parsed


def _add_completion(commands: argparse._SubParsersAction[_Parser]) -> None:
    completion = _command(
        commands,
        "completion",
        "print what a shell reads to complete commands, options and names",
        "completion bash > ~/.local/share/bash-completion/completions/rebalance-audit",
        detail="""
In zsh: eval "$(rebalance-audit completion zsh)" in ~/.zshrc, after compinit. In fish:
rebalance-audit completion fish > ~/.config/fish/completions/rebalance-audit.fish""",
    )
    completion.add_argument("shell", choices=("bash", "zsh", "fish"), help="which shell reads it")


def _add_question(command: argparse.ArgumentParser, *, every_topic: bool = False) -> None:
    source = command.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--dumps", metavar="PATH", nargs="+", help="local dumps: files, folders, globs"
    )
    source.add_argument("--snapshots", metavar="DIR", help="the snapshot tables of ingest")
    command.add_argument("--group", metavar="G", required=True, help="the consumer group")
    command.add_argument(
        "--topic",
        metavar="T",
        required=not every_topic,
        help="the topic; default: every topic (--queues: not the retry topic)"
        if every_topic
        else "the topic",
    )
    command.add_argument(
        "--at", metavar="TIME", help="a time, as 2026-11-20T10:00:00Z; default: the last snapshot"
    )
    command.add_argument(
        "--cluster", metavar="C", help="the cluster, where the group is in several"
    )
    _add_language(command)
    _add_settings(command)


def _add_dumps(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--dumps", metavar="PATH", nargs="+", help="JSON Lines, plain or .gz: files, folders, globs"
    )


def _add_window(command: argparse.ArgumentParser) -> None:
    """What is audited, and which issues are known."""
    command.add_argument(
        "--date", metavar="D", type=_date, help="audit this day, UTC, as 2026-11-20"
    )
    command.add_argument(
        "--since",
        metavar="T",
        help=f"audit from this time on, ISO 8601; {LAST_RUN}: from when on the last "
        "published run (of the date) audited",
    )
    command.add_argument("--until", metavar="T", help="audit up to this time, exclusive, ISO 8601")
    command.add_argument(
        "--known-issues",
        metavar="FILE",
        help=f"the file; default: {DEFAULT_KNOWN_ISSUES} here, else the installed one",
    )


def _add_fail_on(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--fail-on",
        choices=(*SEVERITIES, INCOMPLETE),
        help="exit with 1 where a finding is so severe or worse, and no known issue; "
        f"{INCOMPLETE}: where the input is not complete",
    )


def _add_language(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--language",
        metavar="L",
        choices=tuple(LANGUAGES),
        help=f"{' or '.join(LANGUAGES)}: in which language; default: the setting language",
    )


def _add_settings(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--settings",
        metavar="FILE",
        help=f"the settings; default: {DEFAULT_SETTINGS} here, else the installed one",
    )
    command.add_argument(
        "--set", metavar="A.B=C", action="append", default=[], help="override one setting"
    )
    command.add_argument("--quiet", action="store_true", help="print results and errors only")


def _add_common(command: argparse.ArgumentParser) -> None:
    _add_settings(command)
    command.add_argument(
        "--engine",
        choices=(AUTO, LOCAL, SPARK),
        default=AUTO,
        help=f"{LOCAL}: processes of this machine, without Java; {SPARK}: Spark; default: by "
        "the input's size",
    )
    command.add_argument(
        "--workers",
        metavar="N",
        type=_workers,
        help=f"processes of the engine {LOCAL}; default: one for each core, one for a small input",
    )
    command.add_argument(
        "--master", metavar="URL", type=_master, help="Spark's master; default: local[*]"
    )
    command.add_argument(
        "--dry-run",
        action="store_true",
        help="print what would be read, with sizes, what would be written where, and the settings; "
        "write nothing",
    )


#: Spark 4 has these masters and no other; what a cluster's address means it says itself.
_MASTER = re.compile(
    r"local(?:\[(?:\*|[1-9]\d{0,3})(?:,[1-9]\d{0,3})?\])?|local-cluster\[\d+,\d+,\d+\]"
    r"|spark://[^\s/:,]+:\d{1,5}(?:,[^\s/:,]+:\d{1,5})*|yarn|k8s://\S+",
    re.ASCII,
)


def _workers(text: str) -> int:
    if re.fullmatch(r"[1-9]\d{0,2}", text, re.ASCII):
        return int(text)
    raise argparse.ArgumentTypeError(f"expected a number of processes, 1 to 999, came {text!r}")


def _master(text: str) -> str:
    if _MASTER.fullmatch(text):
        return text
    raise argparse.ArgumentTypeError(
        f"expected local, local[4], local[*], spark://host:7077, yarn or k8s://..., came {text!r}"
    )

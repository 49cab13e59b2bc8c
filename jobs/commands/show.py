"""``show``: a published table, for a person or a program."""

import sys
from collections.abc import Iterable
from typing import Any

import pyarrow.dataset as ds

from ..console.arguments import Options
from ..console.output import give, write_in_pages
from ..console.progress import Progress, complain
from ..console.terminal import is_terminal
from ..errors import SettingsError
from ..languages.language import Language
from ..pipeline.inputs import Inputs
from ..reports import table_text
from ..reports.problem_lines import group_lines, groups_of_client
from ..reports.tables import PublishedTables
from ..schemas import QUARANTINE
from ..storage import PublishedRun, Reports, Snapshots
from ..texts.shown import json_text, visible
from .common import refused_by_last_run, reports_of, settings_of, text_width


def run(args: Options) -> int:
    """Does what the options say; returns the exit code."""
    settings = settings_of(args)
    if args.table == QUARANTINE.name and (snapshots := refused_by_last_run(args)):
        Progress(quiet=args.quiet).say("the last run here published nothing of what it ingested")
        refused = Inputs(Snapshots.open(snapshots), settings).quarantine()
        _print(table_text.shown_refused(refused, settings.masking.to_masking()), "", args)
        return 0
    reports = reports_of(args, settings)
    if args.table is None and args.client:
        return _show_client(args, reports)
    if args.table is None and (args.group or args.topic):
        return _show_group(args, reports, settings.console_language)
    if args.table is None:
        text = table_text.format_table(
            table_text.tables_of(reports.resolve(args.date)), sys.stdout, whole=True
        )
        write_in_pages(text, pages=not args.no_pager)
        return 0
    if args.table == "summary":
        options = ("group", "topic", "client", "columns")
        given = [f"--{option}" for option in options if getattr(args, option)]
        if left_out := given + ["--format csv"] * (args.format == "csv"):
            complain(f"summary is one JSON document: left out {', '.join(left_out)}")
        text = json_text(reports.resolve(args.date).summary, indent=2)
        _give_lines(text.split("\n"), args)
        return 0

    def read(published: PublishedRun) -> tuple[Any, str]:
        asked = (reports, published, args.table, args.group, args.topic)
        rows = table_text.read_table(*asked, args.client)
        return rows, "" if rows.num_rows else table_text.why_no_rows(*asked)

    _print(*reports.read(args.date, read), args)
    return 0


def _show_client(args: Options, reports: Reports) -> int:
    """Prints the groups that have a client."""
    if args.topic:
        complain("a client's groups are not by topic: --topic was left out")
    groups, hidden = reports.read(
        args.date, lambda run: groups_of_client(PublishedTables(reports, run), args.client)
    )
    several = len(groups["cluster"].unique()) > 1
    if args.group:
        groups = groups.filter(ds.field("consumer_group") == args.group)
    _print(groups if several else groups.drop_columns("cluster"), "", args, every=True)
    if hidden:
        Progress(quiet=args.quiet).say(hidden)
    return 0


def _show_group(args: Options, reports: Reports, language: Language) -> int:
    """Prints what is wrong with a group, or a topic, and its topics."""
    if args.format != "table" or args.columns:
        raise SettingsError(
            "expected a table with --format or --columns, such as problems or group_health"
        )
    asked, width = (args.group, args.topic), text_width()
    lines, topics = reports.read(
        args.date, lambda run: group_lines(reports, run, asked, width, language)
    )
    text = table_text.format_table(topics, sys.stdout, whole=True, is_wide=args.wide)
    write_in_pages("\n".join([*lines, "", text]), pages=not args.no_pager, is_wide=args.wide)
    return 0


def _print(table: Any, reason: str, args: Options, *, every: bool = False) -> None:
    """Prints a table as the options say; ``reason``: why it has no rows; ``every``: all columns."""
    is_for_a_person = args.format == "table"
    if is_for_a_person:
        table = table_text.worst_first(table)
    if args.columns:
        table = table_text.select_columns(table, args.columns)
    elif is_for_a_person and not (every or args.all_columns):
        table = table_text.columns_that_matter(table)
    if is_for_a_person:
        text = table_text.format_table(
            table, sys.stdout, whole=bool(args.columns), is_wide=args.wide
        )
        write_in_pages(text, pages=not args.no_pager, is_wide=args.wide)
    else:
        _give_lines(table_text.format_data(table, args.format), args)
    if reason:
        Progress(quiet=args.quiet).say(f"0 rows: {reason}")


def _give_lines(lines: Iterable[str], args: Options) -> None:
    """Writes data; in pages on a terminal, where it is to be read by a person."""
    if is_terminal(sys.stdout):
        # A line feed within a cell is not the end of a line.
        write_in_pages("\n".join(map(visible, lines)), pages=not args.no_pager)
        return
    for line in lines:
        give(line)

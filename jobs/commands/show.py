"""``show``: a published table, for a person or a program."""

from collections.abc import Iterable
from typing import Any

from ..arguments import DATE, REPORTS, SETTINGS, Options, Parser, UsageError, add_options

EXAMPLE = "show orphaned_queues --reports out/reports --group G_ORDER"


def add_arguments(command: Parser) -> None:
    """Adds the options of the command."""
    table = """
    TABLE  the name of a table, as orphaned_queues, or summary; without it the tables are listed
    --format {table,json,csv} [table]
    --group G  only this consumer group
    --topic T  only this topic
    --columns A,B  only these columns, in this order
    --all-columns  every column; without it a person gets the 8 that matter
    --wide  a row is one line, however wide; nothing is cut
    --no-pager  never show a long table in $PAGER (less)
    """
    add_options(command, table + REPORTS + DATE + SETTINGS, columns=_names)


def _names(text: str) -> list[str]:
    names = [each.strip() for each in text.split(",")]
    if not any(names):
        raise UsageError(f"expected names with commas between, came {text!r}")
    return list(dict.fromkeys(filter(None, names)))


def run(args: Options) -> int:
    """Does what the options say; returns the exit code."""
    import sys

    from ..output import write_in_pages
    from ..progress import Progress, complain
    from ..reports.show import (
        columns_that_matter,
        format_data,
        format_table,
        read_table,
        select_columns,
        tables_of,
        why_no_rows,
        worst_first,
    )
    from ..storage import Published
    from ..text import json_text
    from .common import reports_of, settings_of

    settings = settings_of(args)
    reports = reports_of(args, settings)
    if args.table is None:
        text = format_table(tables_of(reports.resolve(args.date)), sys.stdout, whole=True)
        write_in_pages(text, pages=not args.no_pager)
        return 0
    if args.table == "summary":
        given = [f"--{each}" for each in ("group", "topic", "columns") if getattr(args, each)]
        if left_out := given + ["--format csv"] * (args.format == "csv"):
            complain(f"summary is one JSON document: left out {', '.join(left_out)}")
        text = json_text(reports.resolve(args.date).summary, indent=2)
        _give_lines(text.split("\n"), args)
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
    elif args.format == "table" and not args.all_columns:
        table = columns_that_matter(table)
    if args.format == "table":
        text = format_table(table, sys.stdout, whole=bool(args.columns), is_wide=args.wide)
        write_in_pages(text, pages=not args.no_pager, is_wide=args.wide)
    else:
        _give_lines(format_data(table, args.format), args)
    if reason:
        Progress(quiet=args.quiet).say(f"0 rows: {reason}")
    return 0


def _give_lines(lines: Iterable[str], args: Options) -> None:
    """Writes data; in pages on a terminal, where it is to be read by a person."""
    import sys

    from ..output import give, write_in_pages
    from ..terminal import is_terminal
    from ..text import visible

    if is_terminal(sys.stdout):
        # A line feed within a cell is no end of a line.
        write_in_pages("\n".join(map(visible, lines)), pages=not args.no_pager)
        return
    for line in lines:
        give(line)

"""Published tables in a terminal, read by PyArrow: no Spark, so within a second.

On a terminal they are as wide as that: a table with folded cells, else a block for each row. Cells
are ``visible`` before: nothing in them moves the cursor.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from operator import eq
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.dataset as ds
from rich.box import Box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, ConsoleRenderable, Group
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from rebalance_core.english import count, list_of
from rebalance_core.errors import near_names, nearest
from rebalance_core.findings import AUDITED

from ..config.masking import Masking
from ..console.options import meant_by
from ..console.terminal import console_on, is_terminal
from ..declared.kinds import SEVERITY_COLUMNS, badness
from ..errors import SettingsError
from ..languages.translated_rows import TEXTS
from ..schemas import GROUP_HEALTH, QUARANTINE, REPORT_TABLES
from ..storage import PublishedRun, Reports
from ..texts.shown import as_plain, csv_line, cut, json_text, padded, visible

_LOGGER = logging.getLogger(__name__)

#: A cell where every row is one line; csv and json have all of it.
_WIDEST_CELL = 60
#: A cell that is folded: a quarantined line may have megabytes.
_LONGEST_CELL = 2_000
#: The most rows that are folded to the width of a terminal: nobody reads more there.
_MOST_FITTED = 1_000
_GAP = "  "
#: A folded column is no narrower, so that a name or a few words are on one line of it.
_NARROWEST = 24
#: A line below the names of the columns, and nothing else; in every encoding.
_RULE = Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True)
_STYLES = {"CRITICAL": "bold red", "WARNING": "yellow", "INFO": "cyan"}

Cells = Sequence[str]


def read_table(
    reports: Reports,
    published: PublishedRun,
    name: str,
    group: str | None = None,
    topic: str | None = None,
    client: str | None = None,
) -> pa.Table:
    """A table of a published run, sorted; only a group's, topic's or client's rows where it has
    such.

    A warning names the filter that a table has no column for. SettingsError where the run has no
    table of that name.
    """
    if name not in published.tables:
        there = (*published.tables, "summary")
        commands = (f"rebalance-audit {command}" for command in meant_by(name, there))
        meant = [command.removeprefix("rebalance-audit show ") for command in commands]
        raise SettingsError(
            f"no table {_or_meant(name, meant)} in the run of {published.date}; "
            f"there are {', '.join(there)}"
        )
    dataset = reports.dataset(published, name)
    names = dataset.schema.names
    table = dataset.to_table()
    for what, wanted, columns in (
        ("group", group, ("consumer_group", "groups")),
        ("topic", topic, ("topic", "topics")),
        ("client", client, ("client_id", "client_ids", "owners", "claimants")),
    ):
        if wanted is None:
            continue
        column = next((column for column in columns if _has_names(table, column)), None)
        if column is None:
            _LOGGER.warning("%s is not by %s: --%s was left out", name, what, what)
        elif what != "client" and column == columns[0]:
            table = table.filter(ds.field(column) == wanted)
        else:
            fits = is_client if what == "client" else eq
            cells = map(_names_in, table[column].to_pylist())
            keep = [any(fits(there, wanted) for there in cell) for cell in cells]
            table = table.filter(pa.array(keep, pa.bool_()))
    keys = [key for key in _SORTED_BY if key in names]
    return table.sort_by([(key, "ascending") for key in keys]) if keys else table


def shown_refused(rows: Iterable[pa.Table], masking: Masking) -> pa.Table:
    """The quarantine of an ingest of which no run published anything, masked as one would be."""
    masked = [masking.mask_all(row) for some in rows for row in some.to_pylist()]
    shown = pa.Table.from_pylist(masked, schema=QUARANTINE.schema)
    return shown.sort_by([("file", "ascending"), ("line_number", "ascending")])


def _has_names(table: pa.Table, column: str) -> bool:
    """True if the column has one name or several; ``group_load.topics`` is their number."""
    if column not in table.column_names:
        return False
    type_ = table.schema.field(column).type
    return pa.types.is_string(type_) or pa.types.is_list(type_)


def is_client(client_id: str, wanted: str) -> bool:
    """True if it is the client id that is asked for, or one at the address that is.

    >>> is_client("10.0.0.1@app", "10.0.0.1"), is_client("10.0.0.11@app", "10.0.0.1")
    (True, False)
    """
    return client_id == wanted or client_id.startswith(f"{wanted}@")


def _names_in(cell: Any) -> Sequence[str]:
    if not isinstance(cell, list):
        return (cell,) if cell else ()
    return [item["client_id"] if isinstance(item, dict) else item for item in cell]


_SORTED_BY = (
    *("cluster", "begins", "consumer_group", "topic", "broker_name", "queue_id", "client_id"),
    *("first_seen", "file", "line_number"),
)


def worst_first(table: pa.Table) -> pa.Table:
    """The rows as the page has its problems, the worst first; equal ones stay in their order.

    A table without a severity stays as it is.
    """
    column = next((name for name in SEVERITY_COLUMNS if name in table.column_names), None)
    if column is None:
        return table
    read = {column, "ongoing", "certainty", "backlog", *_QUEUE_MINUTES}
    rows = table.select([name for name in table.column_names if name in read]).to_pylist()

    def rank(number: int) -> tuple[Any, ...]:
        row = rows[number]
        if row[column] is None:  # of group_health: nothing was found
            return (1,)
        return 0, badness(
            row[column],
            certain=row.get("certainty") != "POSSIBLE",
            ongoing=bool(row.get("ongoing")),
            backlog=row.get("backlog") or 0,
            queue_minutes=sum(row.get(name) or 0.0 for name in _QUEUE_MINUTES),
            queues=0,
        )

    return table.take(pa.array(sorted(range(table.num_rows), key=rank), pa.int64()))


_QUEUE_MINUTES = ("orphan_queue_minutes", "duplicate_queue_minutes")


#: The columns that matter most, and how many of them a person gets who does not ask for all.
_MATTER = (
    *("headline", "consumer_group", "topic", "fault", "kind", "client_id"),
    *("broker_name", "queue_id", "drift"),
    *("severity", "worst_severity", "verdict", "status", "coverage", "first_seen", "changed_at"),
    *("causes", "owners", "evidence", "remedy", "ongoing", "processes", "queues_moved"),
    *("orphan_queue_minutes", "duplicate_queue_minutes", "members", "strategy", "queues"),
)
_MOST_COLUMNS = 8


def columns_that_matter(table: pa.Table) -> pa.Table:
    """The columns of a table that matter most, in the table's order; the cluster if of several."""
    names = table.column_names
    several = "cluster" in names and len(table["cluster"].unique()) > 1
    ranked = [*["cluster"] * several, *_MATTER, *(name for name in names if name != "cluster")]
    kept = [name for name in dict.fromkeys(ranked) if name in names][:_MOST_COLUMNS]
    return table.select([name for name in names if name in kept])


def tables_of(published: PublishedRun) -> pa.Table:
    """The tables of a run, with their rows and what a row is."""
    grains = {table.name: table.grain for table in (*REPORT_TABLES, QUARANTINE)}
    rows = published.summary["rows"]
    found = [(name, rows.get(name), grains.get(name, "")) for name in sorted(published.tables)]
    found.append(("summary", None, "one JSON document, of the whole run"))
    columns = map(list, zip(*found, strict=True))
    return pa.table(dict(zip(("table", "rows", "a row is"), columns, strict=True)))


def select_columns(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Only these columns, in this order; SettingsError where there is no such column."""
    unknown = [name for name in columns if name not in table.column_names]
    if unknown:
        shown = [_or_meant(name, nearest(name, table.column_names)) for name in unknown]
        raise SettingsError(
            f"no column {', '.join(shown)}; there are {', '.join(table.column_names)}"
        )
    return table.select(list(columns))


def _or_meant(name: str, meant: Sequence[str]) -> str:
    return f"{name} (did you mean {' or '.join(meant)}?)" if meant else name


def why_no_rows(
    reports: Reports, published: PublishedRun, name: str, group: str | None, topic: str | None
) -> str:
    """The reason why a table has no rows of a group or topic; '' where it is of no group and topic.

    SettingsError where the run has no such group or topic: a mistyped name is not an all-clear.
    """
    rows = read_table(reports, published, name)
    group = group if "consumer_group" in rows.column_names else None
    topic = topic if "topic" in rows.column_names or _has_names(rows, "topics") else None
    if group is None and topic is None:
        return ""
    coverage = _coverage(reports, published)
    there = coverage.keys() | _named(rows)
    run = f"in the run of {published.date}"
    groups, topics = {name for name, _ in there}, {name for _, name in there}
    if group is not None and group not in groups:
        raise SettingsError(f"no group {group!r} {run}: {near_names(group, groups)}")
    group_topics = {name for of, name in there if group in (None, of)}
    if topic is not None and topic not in topics:
        raise SettingsError(f"no topic {topic!r} {run}: {near_names(topic, group_topics)}")
    if topic is not None and topic not in group_topics:
        return f"group {group} has no topic {topic} {run}"
    asked = {
        f"group {in_group}, topic {in_topic}: {text}": text
        for (in_group, in_topic), text in coverage.items()
        if group in (None, in_group) and topic in (None, in_topic)
    }
    if gaps := [why for why, text in asked.items() if text != AUDITED]:
        return f"not all of it was audited: {list_of(gaps, 3)}"
    return f"it was audited {run}, and there are none in {name}" if asked else ""


def _coverage(reports: Reports, published: PublishedRun) -> dict[tuple[str, str], str]:
    """The coverage of each group and topic; in several clusters the worse."""
    rows = read_table(reports, published, GROUP_HEALTH.name).to_pylist()
    rows.sort(key=lambda row: row["coverage"] != AUDITED)
    return {(row["consumer_group"], row["topic"]): row["coverage"] for row in rows}


def _named(rows: pa.Table) -> set[tuple[str, str]]:
    """The groups and topics that some rows are of, '' where they have none."""
    names = {"consumer_group", "topic", "topics"}.intersection(rows.column_names)
    column = "topics" if _has_names(rows, "topics") else "topic"
    return {
        (row.get("consumer_group") or "", topic)
        for row in rows.select(list(names)).to_pylist()
        for topic in _names_in(row.get(column)) or [""]
    }


def format_table(table: pa.Table, stream: TextIO, *, whole: bool, is_wide: bool = False) -> str:
    """The table as a person reads it.

    On a terminal it is as wide as that, with folded cells; a row of a table that cannot fit is a
    block of lines, and after the first rows one line says how many there are. Where there is no
    terminal, or ``is_wide``, a row is one line. Long cells are cut, but for ``whole`` and
    ``is_wide``. What texts are made of is for programs: a person gets it with ``whole`` alone.
    """
    if not whole and TEXTS in table.column_names:
        table = table.drop_columns([TEXTS])
    fits = is_terminal(stream) and not is_wide
    widest = None if whole or is_wide else _LONGEST_CELL if fits else _WIDEST_CELL
    shown = table.slice(0, _MOST_FITTED) if fits else table
    rows = [[_cell(as_plain(value), widest) for value in row.values()] for row in shown.to_pylist()]
    names = [visible(name) for name in table.column_names]
    if not fits:
        return "\n".join(wide(names, rows))
    console = console_on(stream)
    with console.capture() as captured:
        console.print(fitted(names, rows, console))
    lines = [captured.get().rstrip("\n")]
    if shown.num_rows < table.num_rows:
        lines.append(f"of {table.num_rows:,}: --wide and --format csv have all of them")
    return "\n".join(lines)


def format_data(table: pa.Table, form: str) -> Iterator[str]:
    """The table's lines for a program, whole: ``json`` (one object a line) or ``csv``."""
    if form == "csv":
        yield csv_line(table.column_names)
    for row in table.to_pylist():
        yield csv_line(list(row.values())) if form == "csv" else json_text(as_plain(row))


def _cell(value: Any, widest: int | None) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        value = " ".join(map(_item, value))
    text = visible(str(value))
    return text if widest is None else cut(text, widest)


def _item(value: Any) -> str:
    if not isinstance(value, dict):
        return str(value)
    if set(value) == {"broker_name", "queue_id"}:
        return f"{value['broker_name']}:{value['queue_id']}"
    if set(value) == {"broker_name", "queue_id", "before", "after"}:
        before, after = [",".join(value[when] or ["nobody"]) for when in ("before", "after")]
        return f"{value['broker_name']}:{value['queue_id']} {before} -> {after};"
    if "client_id" in value:
        times = f" x{value['processes']}" if value.get("processes", 1) > 1 else ""
        share = f" p={value['probability']:.2g}" if value.get("probability", 1.0) < 1 else ""
        return f"{value['client_id']}{times}{share}"
    return str(value)


# ---------------------------------------------------------------- as wide as the terminal


class _Hanging:
    """A cell. Lines after its first are indented: a name must not pass for a row."""

    def __init__(self, text: str, style: str) -> None:
        self.text = Text(text, style)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        lines = [self.text]
        if cell_len(self.text.plain) > options.max_width:
            lines = list(self.text.wrap(console, options.max_width - len(_GAP)))
        yield Text(f"\n{_GAP}").join(lines)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self.text)


def fitted(names: Cells, rows: Sequence[Cells], console: Console) -> ConsoleRenderable:
    """The rows as wide as the terminal.

    As a table where every column can have its name and some 24 characters, cells folded where they
    are longer; else as one ``column  value`` block for each row.
    """
    natural = [max(map(cell_len, column)) for column in zip(names, *rows, strict=True)]
    least = [min(_NARROWEST, width) for width in natural]
    fits = sum(least) + len(_GAP) * (len(names) - 1) <= console.width
    parts = [_table(names, rows, least)] if fits else _blocks(names, rows)
    return Group(*parts, Text(f"({count(len(rows), 'row')})"))


def _table(names: Cells, rows: Sequence[Cells], least: Sequence[int]) -> Table:
    table = Table(
        box=_RULE, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="none"
    )
    for name, width in zip(names, least, strict=True):
        table.add_column(Text(name, "bold"), min_width=width)
    for row in rows:
        table.add_row(*map(_hanging, names, row))
    return table


def _blocks(names: Cells, rows: Sequence[Cells]) -> Iterator[Text | Table]:
    for number, row in enumerate(rows, 1):
        yield Text(f"-- row {number} of {len(rows)} --")
        block = Table.grid(padding=(0, len(_GAP), 0, 0))
        block.add_column(overflow="fold")
        block.add_column()
        for name, cell in zip(names, row, strict=True):
            block.add_row(Text(name, "bold"), _hanging(name, cell))
        yield block


def _hanging(name: str, cell: str) -> _Hanging:
    return _Hanging(cell, _STYLES.get(cell, "") if name in SEVERITY_COLUMNS else "")


def wide(names: Cells, rows: Sequence[Cells]) -> Iterable[str]:
    """The rows as a table with a line for each row, as wide as they need it."""
    widths = [max(map(cell_len, column)) for column in zip(names, *rows, strict=True)]
    for row in (names, ["-" * width for width in widths], *rows):
        yield _GAP.join(map(padded, row, widths)).rstrip()
    yield f"({count(len(rows), 'row')})"

"""Published tables in a terminal, read by PyArrow: no Spark, so within a second."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from jobs.errors import InputError
from jobs.storage import Published, Reports
from jobs.text import as_plain, csv_line, visible

#: A terminal's worth; csv and json print every row.
_WIDEST_CELL = 60


def read_table(
    reports: Reports,
    published: Published,
    name: str,
    group: str | None = None,
    topic: str | None = None,
) -> pa.Table:
    """A table of a published run, sorted; only a group's or a topic's rows where it has such.

    InputError where the run has no table of that name, or its files are gone.
    """
    if name not in published.tables:
        raise InputError(
            f"no table {name} in the run of {published.date}; "
            f"there are {', '.join(published.tables)}"
        )
    dataset = reports.dataset(published, name)
    names = dataset.schema.names
    table = dataset.to_table()
    if group is not None and "consumer_group" in names:
        table = table.filter(ds.field("consumer_group") == group)
    if topic is not None and "topic" in names:
        table = table.filter(ds.field("topic") == topic)
    elif topic is not None and "topics" in names:
        keep = [topic in (topics or ()) for topics in table["topics"].to_pylist()]
        table = table.filter(pa.array(keep, pa.bool_()))
    keys = [key for key in _SORTED_BY if key in names]
    return table.sort_by([(key, "ascending") for key in keys]) if keys else table


_SORTED_BY = (
    "cluster",
    "consumer_group",
    "topic",
    "broker_name",
    "queue_id",
    "client_id",
    "first_seen",
    "file",
    "line_number",
)


def select_columns(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Only these columns, in this order; InputError where there is no such column."""
    unknown = [name for name in columns if name not in table.column_names]
    if unknown:
        raise InputError(
            f"no column {', '.join(unknown)}; there are {', '.join(table.column_names)}"
        )
    return table.select(list(columns))


def format_table(table: pa.Table, form: str, *, whole: bool = False) -> Iterable[str]:
    """The table's lines as ``table``, ``json`` (one object a line) or ``csv``.

    As ``table``, long cells are cut, but for ``whole``; the other two print everything.
    """
    formats: dict[str, Callable[[pa.Table], Iterable[str]]] = {
        "table": lambda rows: _as_table(rows, None if whole else _WIDEST_CELL),
        "json": _as_json,
        "csv": _as_csv,
    }
    return formats[form](table)


def _as_json(table: pa.Table) -> Iterable[str]:
    for row in table.to_pylist():
        yield json.dumps(as_plain(row), ensure_ascii=False)


def _as_csv(table: pa.Table) -> Iterable[str]:
    yield csv_line(table.column_names)
    for row in table.to_pylist():
        yield csv_line(list(row.values()))


def _as_table(table: pa.Table, widest: int | None) -> Iterable[str]:
    rows = [[_cell(as_plain(value), widest) for value in row.values()] for row in table.to_pylist()]
    names = table.column_names
    widths = [
        max([len(name), *(len(row[column]) for row in rows)]) for column, name in enumerate(names)
    ]
    yield "  ".join(name.ljust(width) for name, width in zip(names, widths, strict=True)).rstrip()
    yield "  ".join("-" * width for width in widths)
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    yield f"({len(rows)} {'row' if len(rows) == 1 else 'rows'})"


def _cell(value: Any, widest: int | None) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        value = " ".join(_item(each) for each in value)
    text = visible(str(value))
    return text if widest is None or len(text) <= widest else text[: widest - 3] + "..."


def _item(value: Any) -> str:
    if isinstance(value, dict) and set(value) == {"broker_name", "queue_id"}:
        return f"{value['broker_name']}:{value['queue_id']}"
    if isinstance(value, dict) and "client_id" in value:
        count = f" x{value['processes']}" if value.get("processes", 1) > 1 else ""
        share = f" p={value['probability']:.2g}" if value.get("probability", 1.0) < 1 else ""
        return f"{value['client_id']}{count}{share}"
    return str(value)

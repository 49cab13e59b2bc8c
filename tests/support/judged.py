"""Problems of rows of report tables, as the audit judges them in the task of their group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from jobs.declared.dossier import QueueOffsets
from jobs.declared.instants import Instant, to_instant
from jobs.declared.kinds import GRADED_TABLES
from jobs.judge.result.rows import is_finding, shown_on_queues
from jobs.judge.result.topic_problem import problem_rows
from jobs.languages.translated_rows import TEXTS, texts_of, with_texts
from jobs.publish.publish import Tally
from jobs.schemas import BOOLEAN, DOUBLE, INT, LONG, PROBLEMS, REPORT_TABLES, STRING, TIMESTAMP
from jobs.verdict.gaps import Gap
from jobs.verdict.verdict import make_verdict

Row = dict[str, Any]
TABLES = {table.name: table for table in REPORT_TABLES}
_EMPTY: Mapping[pa.DataType, Any] = {
    **{STRING: "", LONG: 0, INT: 0, DOUBLE: 0.0, BOOLEAN: False},
    TIMESTAMP: datetime(2026, 11, 20, 12, tzinfo=UTC),
}
#: The tables that are made here.
JUDGED = ("problems", "verdict", "gaps")


def with_problems(
    tables: Mapping[str, Sequence[Row]],
    ended: Mapping[tuple[str, str], Instant] | None = None,
    offsets: Mapping[str, Sequence[QueueOffsets]] | None = None,
) -> dict[str, list[Row]]:
    """The tables with ``problems``; those of groups' faults say whether they are findings."""
    names = (*GRADED_TABLES, "group_health")
    found = {name: list(rows) for name, rows in tables.items()}
    of_groups: dict[tuple[str, str], dict[str, list[Row]]] = {}
    for name in names:
        for number, row in enumerate(found.get(name, ())):
            group = of_groups.setdefault(
                (row["cluster"], row["consumer_group"]), {each: [] for each in names}
            )
            group[name].append({**_judged(name, row), "number": number})
    problems: list[Row] = []
    for (cluster, consumer_group), of_group in of_groups.items():
        group = {"cluster": cluster, "consumer_group": consumer_group}
        events = [
            _judged("events", row)
            for row in found.get("events", ())
            if row.get("cluster") == cluster and consumer_group in row["groups"]
        ]
        judged = problem_rows(of_group | {"events": events}, ended or {}, offsets or {})
        problems += [group | row for row in judged]
        shown = shown_on_queues(of_group)
        for row in of_group["group_faults"]:
            fault = found["group_faults"][row["number"]]
            is_one = is_finding(row, shown[row["topic"]])
            found["group_faults"][row["number"]] = {**fault, "is_finding": is_one}
    rows = [{**row, TEXTS: texts_of(row)} for row in problems]
    return {"problems": pa.Table.from_pylist(rows, PROBLEMS.schema).to_pylist(), **found}


def with_verdict(
    tables: Mapping[str, Sequence[Row]],
    gaps: Sequence[Gap] = (),
    slow_rounds: Mapping[str, float] | None = None,
) -> dict[str, list[Row]]:
    """The tables with ``verdict`` and ``gaps``."""
    tally = Tally()
    for name, rows in tables.items():
        whole = [_whole(name, row) for row in rows]
        tally.add(name, pa.Table.from_pylist(whole, TABLES[name].schema))
    made = make_verdict("run-1", tally, tally.findings(), gaps, slow_rounds or {})
    verdict, missing = (
        [{**row, TEXTS: texts_of(row)} for row in rows]
        for rows in ([made.row()], made.rows_of_gaps())
    )
    return {"verdict": verdict, "gaps": missing, **{name: [*of] for name, of in tables.items()}}


def _whole(name: str, row: Row) -> Row:
    """The row with all columns of its table."""
    whole = {
        column.name: None if column.nullable else _EMPTY.get(column.type, [])
        for column in TABLES[name].schema
    }
    given = (each for each in row.items() if each[1] is not None or each[0] not in whole)
    return whole | dict(given)


def _judged(name: str, row: Row) -> Row:
    """A published row as the judgement has it: whole, its times as Instants, its texts as such."""
    whole = _whole(name, with_texts(row) if row.get(TEXTS) else row)
    return {
        key: to_instant(each) if isinstance(each, datetime) else each for key, each in whole.items()
    }

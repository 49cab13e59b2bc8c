"""The contract of the values: every column of every snapshot table, with what it must not hold.

A wrong value gives the answer that the tables give without it, or its row is refused by name and
counts as lost, or the tables are refused as a whole. It never gives another answer in silence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from jobs.config.settings import Settings
from jobs.contract import check_tables
from jobs.declared.kinds import GRADED_TABLES
from jobs.engines.local import LocalEngine
from jobs.engines.pieces import Piece, unpack_rows
from jobs.errors import ContractError
from jobs.fold.checked_rows import TableReading
from jobs.fold.kernel import Cutting
from jobs.pipeline.audit import FoldResult, fold_pieces, lost_rows
from jobs.pipeline.gathered import without_events
from jobs.pipeline.ingest import read_dumps
from jobs.pipeline.inputs import terms_of
from jobs.schemas import BROKER_POLLS, QUARANTINE, SNAPSHOT_TABLES, Table
from jobs.verdict.gaps import ROWS_LOST
from tests.support import bodies
from tests.support.snapshots import (
    BROKER,
    at,
    heartbeat_line,
    log_line,
    poll_line,
    poll_row,
    route_line,
    running_info_line,
    stats_line,
)

Tables = Mapping[str, pa.Table]
SETTINGS = Settings()
ROUNDS = 5
TABLES = {table.name: table for table in SNAPSHOT_TABLES if table is not QUARANTINE}


def route(*brokers: str) -> dict[str, Any]:
    return bodies.route({name: {0: "h:1"} for name in brokers})


def lines() -> Iterator[str]:
    """Two processes share one id, and another one has its own: queues without and with two owners.

    A member is gone at the end, and the route loses a queue, so that there are several contents.
    """
    for number in range(ROUNDS):
        seconds = 60.0 * number
        ids = ["10.0.0.1@app", "10.0.0.1@app", "10.0.0.2@app"]
        if number == ROUNDS - 1:
            ids.append("10.0.0.3@app")
        for broker in (BROKER, "broker-b"):
            yield poll_line(*ids, seconds=seconds, broker_name=broker)
        yield route_line(route(BROKER, "broker-b"), seconds=seconds)
        yield route_line(route(BROKER, "broker-b"), seconds=seconds, topic="%RETRY%G")
        yield stats_line(dict.fromkeys(range(4), (100 + number, 50)), seconds=seconds)
        for client_id in sorted({*ids}):
            properties = {"PROP_CONSUMER_START_TIMESTAMP": str(int(at(-60).timestamp() * 1000))}
            yield running_info_line(client_id, "T", seconds=seconds, properties=properties)
            yield heartbeat_line(client_id, "T", seconds=seconds)
    for client_id in ("10.0.0.1@app", "10.0.0.2@app", "10.0.0.3@app"):
        yield log_line(client_id, "AVG", seconds=30)


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    file = tmp_path_factory.mktemp("dumps") / "dump.jsonl"
    file.write_text("\n".join(lines()), encoding="utf-8")
    with LocalEngine() as engine:
        tables = read_dumps(engine, engine.list_files([str(file)]), SETTINGS).whole_tables(SETTINGS)
    assert not tables["quarantine"].num_rows
    return tables


class Audited(NamedTuple):
    """The rows of the report tables, what was refused and what the run lacks for it."""

    rows: Mapping[str, list[Any]]
    refused: list[dict[str, Any]]
    gaps: list[str]

    @property
    def findings(self) -> Any:
        """What was found, without times and words."""
        keys = ("kind", "fault", "topic", "broker_name", "queue_id", "client_id", "client_ids")
        return sorted(
            str([name, *(row.get(key) for key in keys)])
            for name in (*GRADED_TABLES, "stacked_client_ids")
            for row in self.rows.get(name, [])
        )


#: By what is judged what comes of it: most wrong values are refused, and leave the same to judge.
JUDGED: dict[Any, Mapping[str, list[Any]]] = {}


def judged(engine: LocalEngine, folded: FoldResult) -> Mapping[str, list[Any]]:
    """The rows of the report tables."""
    key = (folded.never_asked, *engine.collect(folded.pieces))
    if key not in JUDGED:
        rows: dict[str, list[Any]] = {}
        judged = engine.collect(folded.judge(terms_of(SETTINGS), {}, SETTINGS))
        for piece in without_events(judged, SETTINGS.heartbeat_expiry_seconds):
            rows.setdefault(piece.kind, []).extend(unpack_rows(piece.data).to_pylist())
        JUDGED[key] = {name: sorted(of_table, key=str) for name, of_table in rows.items()}
    return JUDGED[key]


def audit(tables: Tables, cutting: Cutting, known: dict[int, list[Piece]]) -> Audited:
    """The audit; ``known``: by the identity of its rows the pieces of a table."""
    for table in cutting.tables():
        rows = tables[table.name]
        if id(rows) not in known:
            known[id(rows)] = list(cutting.pieces(table, [rows]))
    with LocalEngine() as engine:
        pieces = engine.given(
            piece for table in cutting.tables() for piece in known[id(tables[table.name])]
        )
        folded = fold_pieces(engine, pieces, cutting)
        rows, gaps = judged(engine, folded), list(lost_rows(folded.facts, {}))
    assert all(gap.kind == ROWS_LOST for gap in gaps)
    return Audited(rows, folded.refused.to_pylist(), [gap.text for gap in gaps])


# ---------------------------------------------------------------- wrong values

#: By their names what a value may be replaced by; of structs in lists each field of the first one.
WRONG = {
    "null": None,
    "negative": -5,
    "1e9": 10**9,
    "empty": "",
    "wrong text": "no such",
    "before time": -(10**17),
    "after time": 2**62,
    "2^31 - 1": 2**31 - 1,
    "2^63 - 1": 2**63 - 1,
}


def takes(type_: pa.DataType, wrong: str) -> bool:
    if wrong == "null":
        return True
    if pa.types.is_integer(type_):
        of_long = ("2^63 - 1",) if type_ == pa.int64() else ()
        return wrong in ("negative", "1e9", "2^31 - 1", *of_long)
    if pa.types.is_string(type_):
        return wrong in ("empty", "wrong text")
    return pa.types.is_timestamp(type_) and wrong in ("before time", "after time")


def paths(type_: pa.DataType) -> Iterator[tuple[tuple[Any, ...], pa.DataType]]:
    """The places of a column's values: the value, its first element, the fields of that."""
    yield (), type_
    if pa.types.is_list(type_):
        for path, inner in paths(type_.value_type):
            yield (0, *path), inner
    if pa.types.is_struct(type_):
        for field in type_:
            for path, inner in paths(field.type):
                yield (field.name, *path), inner


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    if not value:
        return value
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(copy[path[0]], path[1:], new)
    return copy


def cases() -> Iterator[tuple[str, str, tuple[Any, ...], str]]:
    for table in TABLES.values():
        for column in table.schema:
            for path, type_ in paths(column.type):
                for wrong in WRONG:
                    if takes(type_, wrong):
                        yield table.name, column.name, path, wrong


def with_wrong(rows: pa.Table, place: int, column: str, path: tuple[Any, ...], wrong: str) -> Any:
    """The rows with a wrong value in one of them; None where the row has no such place."""
    field = rows.schema.field(column)
    type_ = next(inner for found, inner in paths(field.type) if found == path)
    before = rows[column].combine_chunks()
    new = WRONG[wrong]
    if wrong in ("before time", "after time"):
        if path:
            return None
        middle = pa.array([new], pa.int64()).cast(type_)
    else:
        value = replaced(before[place].as_py(), path, new)
        middle = pa.array([value], field.type)
    after = pa.concat_arrays([before.slice(0, place), middle, before.slice(place + 1)])
    if after.equals(before):
        return None
    return rows.set_column(rows.schema.get_field_index(column), field, after)


#: Of tables that come by ids the one that names what is not there.
NAMES = {"member_lists": "broker_polls", "route_contents": "route_polls"}
WITHOUT_IDS = {"client_states", "queue_offsets"}
#: Other names and numbers are other inputs: no contract can know the true ones.
MAY_DIFFER = {"wrong text", "1e9", "2^31 - 1", "2^63 - 1"}
#: What names the list of a row: without it nobody knows which list lacks the row. It is said.
UNATTRIBUTED = {
    ("heartbeats", name)
    for name in ("cluster", "snapshot_time", "broker_name", "broker_id", "consumer_group")
}


def outcome(before: Audited, after: Audited, table: str) -> str:
    if after.refused:
        tables = (f"table {table}: ", f"table {NAMES.get(table, table)}: ")
        assert any(row["reason"].startswith(tables) for row in after.refused)
        # A cluster that no other row names is lost with its row.
        lost = f"cluster {WRONG['wrong text']} was not audited: "
        assert any(gap.startswith((*tables, lost)) for gap in after.gaps)
    if after.rows == before.rows:
        return "refused" if after.refused else "same"
    same = "refused" if after.refused else "same findings"
    return same if after.findings == before.findings else "another input"


#: One of each kind: of a number, a text and a time, and the value that no column must lack.
QUICK = {"null", "negative", "empty", "after time"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("wrongs", "by_ids"),
    [
        pytest.param(QUICK, False, id="by rows"),
        pytest.param({*WRONG} - QUICK, False, marks=pytest.mark.house, id="others by rows"),
        pytest.param({*WRONG}, True, marks=pytest.mark.house, id="by ids"),
    ],
)
def test_no_wrong_value_changes_what_is_found_in_silence(
    ingested: Tables, wrongs: set[str], by_ids: bool
) -> None:
    cutting = Cutting(1, SETTINGS.heartbeat_expiry_seconds, by_ids, by_ids)
    known: dict[int, list[Piece]] = {}
    before = audit(ingested, cutting, known)
    assert len(before.findings) > 5
    outcomes: Counter[str] = Counter()
    # The other tables have no ids: they are read as by rows.
    tables = {table.name for table in cutting.tables()} - (WITHOUT_IDS if by_ids else set())
    for name, column, path, wrong in cases():
        if wrong not in wrongs or name not in tables:
            continue
        changed = with_wrong(ingested[name], 1, column, path, wrong)
        if changed is None:
            continue
        try:
            after = audit({**ingested, name: changed}, cutting, dict(known))
            found = outcome(before, after, name)
        except ContractError as error:
            assert f"table {name}" in str(error)
            found = "contract error"
        if found == "another input" and after.refused and (name, column) in UNATTRIBUTED:
            found = "refused alone"
        assert found != "another input" or wrong in MAY_DIFFER, (name, column, path, wrong)
        outcomes[found] += 1
    assert outcomes["refused"] > outcomes["another input"]


@pytest.mark.parametrize("by_ids", [False, True], ids=["by rows", "by ids"])
def test_a_doubled_row_changes_nothing(ingested: Tables, by_ids: bool) -> None:
    cutting = Cutting(1, SETTINGS.heartbeat_expiry_seconds, by_ids, by_ids)
    before = audit(ingested, cutting, {})
    for table in cutting.tables():
        rows = ingested[table.name]
        doubled = pa.concat_tables([rows, rows.slice(1, 1), rows.slice(rows.num_rows - 1)])
        after = audit({**ingested, table.name: doubled}, cutting, {})
        assert (after.rows, after.refused) == (before.rows, [])


@pytest.mark.parametrize(
    ("table", "column", "by_ids"),
    [("heartbeats", "client_id", False), ("route_polls", "route_id", True)],
)
def test_where_most_rows_break_the_contract_nothing_is_audited(
    ingested: Tables, table: str, column: str, by_ids: bool
) -> None:
    cutting = Cutting(1, SETTINGS.heartbeat_expiry_seconds, by_ids, by_ids)
    rows = ingested[table]
    nulls = pa.nulls(rows.num_rows, pa.string())
    broken = rows.set_column(rows.schema.get_field_index(column), column, nulls)
    message = rf"table {table}: (\d+) of \1 rows .* {column}: expected .*, came null"
    with pytest.raises(ContractError, match=message):
        audit({**ingested, table: broken}, cutting, {})


def test_of_many_refused_rows_of_a_file_the_first_are_kept_and_the_others_counted() -> None:
    rows = pa.Table.from_pylist([poll_row(connections=-1)] * 5, BROKER_POLLS.schema)
    reading = TableReading(BROKER_POLLS, [rows, rows], ["one", "two"], most=2)
    assert not list(reading.batches(["cluster", "consumer_group", "connections"]))
    kept = [(row["file"], row["reason"]) for row in reading.take_refused().to_pylist()]
    reason = "table broker_polls: connections: expected 0 to 2147483647, came -1"
    more = "table broker_polls: 3 more rows of this file break its contract "
    more += "(bounds.quarantined_lines)"
    of_files = [[(file, reason), (file, reason), (file, more)] for file in ("one", "two")]
    assert kept == [*of_files[0], *of_files[1]]
    assert (reading.rows.total(), reading.lost.rows.total()) == (10, 10)


@pytest.mark.parametrize(
    ("table", "column"), [(BROKER_POLLS, "consumer_group"), (QUARANTINE, "file")]
)
def test_of_one_column_a_row_is_refused_whose_subject_was_not_read(
    table: Table, column: str
) -> None:
    rows = pa.table({column: [None, "sound"]}, schema=pa.schema([(column, pa.string())]))
    (batch,) = TableReading(table, [rows]).batches([column])
    assert batch[column].to_pylist() == ["sound"]


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_times_without_a_zone_and_columns_that_are_there_twice_are_said(table: Table) -> None:
    for place, column in enumerate(table.schema):
        twice = table.schema.append(column)
        with pytest.raises(ContractError, match=rf"{column.name}: expected .*, is there 2 times"):
            check_tables([(table, twice)])
        if pa.types.is_timestamp(column.type):
            naive = table.schema.set(place, pa.field(column.name, pa.timestamp("us")))
            with pytest.raises(ContractError, match=rf"{column.name}: .* without a zone; write"):
                check_tables([(table, naive)])

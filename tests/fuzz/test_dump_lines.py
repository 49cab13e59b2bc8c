"""Whatever a line of a dump holds: it is read or quarantined, one of both, by any parser."""

from __future__ import annotations

import json

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from jobs.config.bounds import DEFAULT_BOUNDS, Bounds
from jobs.dumps.counts import Counts
from jobs.dumps.reading import COUNTS, DumpStep, statements_of
from jobs.dumps.statement import (
    KINDS,
    LEFT_OUT,
    MESSAGE_REQUEST_MODE,
    SUBSCRIPTION_GROUP,
    Statement,
)
from jobs.dumps.statements import RefusedLine, StatementReader
from jobs.engines.engine import Slice
from jobs.engines.pieces import all_values
from jobs.schemas import QUARANTINE
from tests.dumps.samples import line as sample_line
from tests.fuzz.mutations import ODD_VALUES, changed_lines
from tests.fuzz.parsers import none, reading_by, standard

#: Fields of an envelope in any combination, each right or odd.
FIELDS = {
    "kind": st.sampled_from(KINDS).map(lambda kind: f'"{kind}"'),
    "cluster": st.just('"C"'),
    "snapshot_time": st.just('"2026-01-05T09:00:00Z"'),
    "collected_at": st.just('"2026-01-05T09:00:00.250Z"'),
    **{name: st.just('"x"') for name in ("broker_name", "consumer_group", "topic", "client_id")},
    **{name: st.just('"10.0.0.1:1"') for name in ("client_addr", "namesrv_addr", "broker_addr")},
    "broker_id": st.sampled_from(("0", '"0"')),
    "body": st.sampled_from(('"{}"', '"{\\"status\\":-1}"', "null")),
    "error_code": st.sampled_from(("null", "0", "206")),
}
ENVELOPES = st.fixed_dictionaries(
    {}, optional={name: right | st.sampled_from(ODD_VALUES) for name, right in FIELDS.items()}
).map(
    lambda fields: ("{" + ",".join(f'"{name}":{it}' for name, it in fields.items()) + "}").encode(
        "utf-8", "surrogatepass"
    )
)
ANY_LINE = changed_lines() | ENVELOPES | st.binary() | st.text().map(str.encode)

#: Remembers what it read of earlier lines, as the reader of a task does.
_OLD_READER = StatementReader(DEFAULT_BOUNDS, None)


def read(line: bytes) -> list[Statement] | RefusedLine:
    return StatementReader(DEFAULT_BOUNDS, None).read(line)


@given(ANY_LINE)
def test_a_line_is_read_or_refused_for_a_reason(line: bytes) -> None:
    came = read(line)
    if isinstance(came, RefusedLine):
        assert came.reason.strip()
        came.reason.encode()
    else:
        repr(came).encode()
        json.dumps(came, ensure_ascii=False).encode()
        for said in came:
            assert said.kind in (*KINDS, LEFT_OUT)
            assert said.cluster
            # A broker that does not tell its modes or its flags says so of no group.
            is_of_all = said.kind in (MESSAGE_REQUEST_MODE, SUBSCRIPTION_GROUP)
            assert said.subject or (is_of_all and said.content is None) or said.kind == LEFT_OUT


@given(ANY_LINE)
def test_what_was_read_before_changes_nothing(line: bytes) -> None:
    assert repr(_OLD_READER.read(line)) == repr(read(line))


#: Values that are equal in Python, or nearly, and not the same in a line.
ALIKE = ("0", "-0", "0.0", "false", '"0"', "1", "1.0", "true", '"1"', "[]", "{}", "null", '""')


@given(
    st.sampled_from(KINDS),
    st.sampled_from(["broker_id", "error_code", "cluster", "broker_addr", "process", "topic"]),
    st.lists(st.sampled_from(ALIKE), min_size=2, max_size=4),
)
def test_lines_that_are_nearly_equal_are_not_mixed_up(
    kind: str, name: str, values: list[str]
) -> None:
    reader = StatementReader(DEFAULT_BOUNDS, None)
    for value in values:
        line = f'{sample_line(kind)[:-1]}, "{name}": {value}}}'.encode()
        assert repr(reader.read(line)) == repr(read(line))


@given(ANY_LINE)
def test_every_parser_reads_the_same(line: bytes) -> None:
    fastest = repr(read(line))
    with reading_by(standard):
        assert repr(read(line)) == fastest
    with reading_by(none):
        assert repr(read(line)) == fastest


@given(st.lists(ANY_LINE.map(lambda line: line.replace(b"\n", b"")), max_size=5))
def test_lines_become_statements_or_quarantine_rows_and_are_all_counted(lines: list[bytes]) -> None:
    content = b"".join(line + b"\n" for line in lines)
    slice_ = Slice(0, "dump", "file:/f", len(content))
    pieces = list(DumpStep(3, Bounds())([(slice_, pa.py_buffer(content))]))

    expected = [StatementReader(DEFAULT_BOUNDS, None).read(line) for line in lines]
    refused = [
        (at, it.reason, lines[at - 1])
        for at, it in enumerate(expected, 1)
        if isinstance(it, RefusedLine)
    ]
    every = [each for it in expected for each in (it.polls if isinstance(it, RefusedLine) else it)]
    said = [each for each in every if each.kind != LEFT_OUT]
    quarantined = [
        (row["line_number"], row["reason"], row["line_bytes"] or row["line"].encode())
        for _, rows in all_values(pieces, QUARANTINE.name)
        for row in rows
    ]
    assert quarantined == refused
    came = [each for it in statements_of(pieces).values() for each in it]
    came.sort(key=lambda each: each.order)
    assert sorted(repr(it._replace(order=0)) for it in came) == sorted(map(repr, said))
    counts = Counts.of(all_values(pieces, COUNTS))
    assert (counts.lines[0], counts.refused) == (len(lines), len(refused))

"""Texts in rows of report tables: what they are made of goes through tables and masking."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.config.masking import Masking
from jobs.engines.pieces import pack_value, unpack_value
from jobs.judge.observe.arrow_tables import to_table
from jobs.judge.observe.evaluation import to_verdict
from jobs.languages.language import Language, language
from jobs.languages.translated_rows import with_texts
from jobs.reports.tables import declared_table
from jobs.schemas import REPORT_TABLES, Table
from rebalance_core import Situation, StrategyRules, evaluate
from rebalance_core.texts import Text, encode
from tests.core.test_causes import FAULTY

#: Names that are a template, or JSON, or look like an end of it.
HOSTILE = [
    "{x}",
    "{client}",
    "{",
    "}}",
    '"',
    "\\",
    "\\u0041",
    "'",
    "\n",
    "\0",
    "订单",
    "🐇",
    "",
    "]",
]
names = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(exclude_categories=["Cs"])))
halves = st.text(st.characters(categories=["Cs"]), max_size=3)
numbers = st.integers(-(1 << 70), 1 << 70) | st.floats(allow_nan=False)


def texts(of_names: st.SearchStrategy[str]) -> st.SearchStrategy[Text]:
    """Texts of names and numbers, within each other."""
    return st.recursive(
        st.builds(Text, st.just("{number} of {client}"), number=numbers, client=of_names),
        lambda within: st.builds(
            Text, st.just("{why}; {client} does not"), why=within, client=of_names
        ),
        max_leaves=4,
    )


#: Whatever a template is, its translation has the slots the other way round.
TURNED = {
    "{number} of {client}": "von {client} {number}",
    "{why}; {client} does not": "{client} nicht; {why}",
}
GERMAN, CHINESE = Language("de", TURNED), language("zh")


def published(text: str, masking: Masking | None = None) -> dict[str, object]:
    """The row of a stalled queue with the text, as it leaves the judgement and as it is read."""
    schema = declared_table("stalled_queues").schema
    row = dict.fromkeys(schema.names, None) | {"why": text}
    del row["texts"]
    made = Table("t", "", pa.schema([field.with_nullable(True) for field in schema]))
    ((read,),) = [to_table(made, [(masking or Masking()).mask_all(row)]).to_pylist()]
    return read


@given(texts(names))
def test_texts_of_any_names_go_through_a_table(text: Text) -> None:
    row = published(text)
    assert row["why"] == text
    read = with_texts(row)["why"]
    assert isinstance(read, Text)
    assert (read, read.parts()) == (text, text.parts())
    assert GERMAN.of(read) == GERMAN.of(text)


@given(texts(names | halves))
def test_half_a_character_is_kept_as_it_is(text: Text) -> None:
    """No table can hold it: the dumps' reader replaces it. Nothing else may fail for it."""
    row = {"why": text, "texts": encode({"why": text})}
    assert with_texts(row)["why"].parts() == text.parts()
    assert Masking().mask_all(row)["why"].parts() == text.parts()


SECRET = "pa55w0rdOfNobody"  # noqa: S105 - of nobody
ids = st.sampled_from(
    [f"10.0.0.1@RocketMQ|{SECRET}|T|1", f"10.0.0.1@token={SECRET}", f"a://u:{SECRET}@host"]
)


@given(texts(names | ids), st.sampled_from([(), ("number",), (SECRET[3:8],), ("does not",)]))
def test_no_secret_is_in_what_a_text_is_made_of(text: Text, patterns: tuple[str, ...]) -> None:
    masking = Masking(patterns=patterns)
    row = published(text, masking)
    assert row["why"] == masking.mask(str(text))
    assert SECRET not in str(row)
    assert with_texts(row)["why"] == row["why"]
    for pattern in patterns:
        assert pattern not in GERMAN.of(with_texts(row)["why"])


def test_a_secret_that_no_value_shows_by_itself_leaves_plain_english() -> None:
    text = Text("{client}|{key}|T|1", client="10.0.0.1@RocketMQ", key=SECRET)
    row = published(text)
    assert row["why"] == Masking().mask(str(text))
    assert SECRET not in row["why"]
    assert row["texts"] is None


def test_a_row_without_parts_of_texts_stays_english() -> None:
    row = {"remedy": "restart a", "client_ids": ["a"], "queues_affected": 1, "texts": None}
    assert with_texts(row) == row


@pytest.mark.parametrize(
    "damaged",
    [
        *("", "{", "[]", "1", '"remedy"', "null", '{"remedy":1}', '{"remedy":[]}'),
        *('{"remedy":["{client}"]}', '{"remedy":["{client}",[]]}', '{"remedy":["a",{"b":[1]}]}'),
        "[" * 100_000,
        '{"remedy":' + '["{a}",{"a":' * 20_000,
        '{"remedy":' + '["{a}",{"a":' * 400 + "1" + "}]" * 400 + "}",
        '{"remedy":' + '["{a}{a}",{"a":' * 40 + "1" + "}]" * 40 + "}",
    ],
    ids=lambda text: text[:20] or "nothing",
)
def test_what_cannot_be_read_stays_english(damaged: str) -> None:
    row = {"remedy": "restart a", "texts": damaged}
    read = with_texts(row)
    assert read == row
    assert not isinstance(read["remedy"], Text)


def test_no_other_column_becomes_a_text() -> None:
    row = {"client_ids": ["a"], "severity": None, "texts": '{"client_ids":["b"],"severity":["c"]}'}
    assert with_texts(row) == row


@pytest.mark.parametrize("fault", FAULTY)
def test_an_evaluation_has_the_same_texts_wherever_it_was_made(fault: str) -> None:
    situation = FAULTY[fault]
    here = to_verdict(evaluate(situation.state, situation.rules), situation)
    there = unpack_value(pack_value(0, "verdict", here).data)
    found = [*here.faults, *here.verdict.stacked]
    assert found
    for one, other in zip(found, [*there.faults, *there.verdict.stacked], strict=True):
        assert_same(one.evidence, other.evidence)
        assert_same(one.remedy, other.remedy)


def test_so_has_one_of_what_cannot_be_recomputed() -> None:
    state = replace(FAULTY["GHOST_MEMBER"].state, topic_routes=())
    rules = StrategyRules()
    here = to_verdict(evaluate(state, rules), Situation(state, rules)).verdict.reason
    assert_same(here, unpack_value(pack_value(0, "reason", here).data))


def assert_same(text: object, came: object) -> None:
    assert isinstance(text, Text)
    assert isinstance(came, Text)
    assert (came, came.parts()) == (text, text.parts())
    assert CHINESE.of(came) == CHINESE.of(text) != text


def test_whatever_table_has_texts_has_them_in_one_column() -> None:
    """What a person reads of a row is made of words; what is a code or a name is not."""
    having = {table.name for table in REPORT_TABLES if "texts" in table.schema.names}
    of_groups = {"group_faults", "stacked_client_ids", "stalled_queues", "group_health"}
    assert having == of_groups | {"events", "problems", "verdict", "gaps"}


def test_a_row_without_a_text_has_no_parts() -> None:
    assert published(None)["texts"] is None  # type: ignore[arg-type]
    assert json.loads(published(Text("no lock"))["texts"]) == {"why": ["no lock"]}  # type: ignore[arg-type]

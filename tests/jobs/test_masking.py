"""Secrets in client ids: found in what clients make of them, and in nothing else."""

from __future__ import annotations

import pickle
import random
import string
import time

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.config.masking import Masking, is_masked, shows_secret
from jobs.texts.secret_patterns import DEFAULT_PATTERNS
from rebalance_core.texts import Text

MASKING = Masking()
SECRET = "s3cr3tKeyOfThisUser0123456789"  # noqa: S105 - of nobody


@pytest.mark.parametrize(
    ("client_id", "secret"),
    [
        # What the binder of spring-cloud-alibaba before 2021.0.5.0 makes, whatever the secret is.
        (f"10.42.0.11@LTAI4FhXXXXXXXXXXXXXXXX|{SECRET}|MQ_INST_1_BXY%pay-topic|1", SECRET),
        ("10.0.0.1@RocketMQ|12345678|order-topic|1", "12345678"),
        ("10.0.0.1@rocketmq2|mysecret|order-topic|-1", "mysecret"),
        ("10.0.0.1@RocketMQ|12345678|order-topic|1@unit1@STREAM", "12345678"),
        ("10.0.0.1@ak-name|a+b/c=d#e$f@g|order-topic|7", "a+b/c=d#e$f@g"),
        # rocketmq-spring 2.0: without the process id.
        (f"10.0.0.1@LTAI4FhXXXXXXXXXXXXXXXX|{SECRET}|GID_order", SECRET),
        ("10.0.0.1@user|Xb7Qm2LkP9sTfR4vWz8dYc3N|GID_order", "Xb7Qm2LkP9sTfR4vWz8dYc3N"),
        # What people write by hand.
        ("10.0.0.1@app,secretKey=abc123", "abc123"),
        ("10.0.0.1@password:hunter22", "hunter22"),
        ("10.0.0.1@app?token=abc;x=1", "abc"),
        ("10.0.0.1@http://user:pa55@host:9876", "pa55"),
        # Of a store the id of the key, too: it names the account.
        ("s3://AKIAEXAMPLE:a%2Fb@lake/x", "AKIAEXAMPLE:a%2Fb"),
        ("see s3a://AKIAEXAMPLE:a/b+c@lake/x.", "AKIAEXAMPLE:a/b+c"),
        ("s3n://AKIAEXAMPLE@lake", "AKIAEXAMPLE"),
        ("s3://lake/x?region=a&access_key=AKIAEXAMPLE&scheme=http", "AKIAEXAMPLE"),
        ("https://h/x?X-Amz-Credential=AKIAEXAMPLE%2F2026&x=1", "AKIAEXAMPLE%2F2026"),
        ("10.0.0.1@app|0123456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcdef"),
    ],
)
def test_a_secret_is_replaced_and_nothing_else(client_id, secret) -> None:
    masked = MASKING.mask(client_id)
    before, after = client_id.split(secret)
    assert masked.startswith(f"{before}(secret ")
    assert masked.endswith(f"){after}")
    assert secret not in masked
    assert MASKING.mask(masked) == masked
    assert is_masked(client_id, masked)
    assert shows_secret(masked)


@pytest.mark.parametrize(
    "text",
    [
        "10.0.0.1@1#123456789012345",
        "10.0.0.1@LTAI5tAbCdEf9GhIjKlMnOpQ|GID_order|1|17r9k3h8x",
        "10.0.0.1@Xb7Qm2LkP9sTfR4vWz8dYc3N|GID_order|1|17r9k3h8x",
        "10.0.0.1@GID_order|1|17r9k3h8x",
        "10.0.0.1@GID_order_service|1",
        "10.0.0.1@LTAI5tAbCdEf9GhIjKlMnOpQ|GID_order|1",
        "10.0.0.1@blue|green|red",
        "10.0.0.1@team|OrderServiceConsumerV2Prod01|eu",
        "10.0.0.1@svc|550e8400-e29b-41d4-a716-446655440000",
        "10.0.0.1@svc|550e8400e29b41d4a716446655440000",
        "10.0.0.1@secret-ns:9876;token:9876@1",
        "10.0.0.1@token-service-5d8f7c9b4-x2x7k",
        "10.0.0.1@1#-1204#7781#123456789012345",
        "${secretKey}@1",
        "10.0.0.1@secret=${SECRET}",
        "SECRET_IN_CLIENT_ID: 10.0.0.1@1",
        "filter by TAG a || b",
        "s3://lake/night@1:x@2?region=eu-west-1&scheme=http",
        "abfs://container@account.dfs.core.windows.net/x",
        "s3://${KEY}:${SECRET}@lake/x",
        "| table | of | markdown | 1 |",
    ],
)
def test_what_is_no_secret_stays(text) -> None:
    assert MASKING.mask(text) is text


ADDRESSES = st.ip_addresses().map(str)
PIDS = st.integers(1, 99_999).map(str)
NANOS = st.integers(-(10**18), 10**18).map(str)
WORDS = st.sampled_from(["order", "pay", "GID_Order", "TokenService", "svc-2", "prod01", "Secret"])
PODS = st.builds(
    lambda name, one, other: f"{name.lower()}-{one}-{other}",
    WORDS,
    st.text("bcdf0123456789ghjk", min_size=9, max_size=10),
    st.text("bcdf0123456789ghjk", min_size=5, max_size=5),
)
USUAL = st.one_of(
    PIDS,
    st.builds("{}#{}".format, PIDS, NANOS),
    st.builds("{}#DEFAULT".format, PIDS),
    st.just("DEFAULT"),
    PODS,
    st.uuids().map(str),
    st.uuids(version=4).map(lambda each: f"svc|{each.hex}"),
    st.builds("{}|{}".format, WORDS, PIDS),
    st.builds("{}|{}|{}".format, WORDS, PIDS, st.integers(10**9, 10**15).map(lambda n: f"{n:x}")),
    st.builds("{}:9876;{}:10911@{}".format, PODS, ADDRESSES.filter(lambda a: "." in a), PIDS),
)


@given(ADDRESSES, USUAL, st.sampled_from(["", "@unit", "@STREAM"]))
def test_usual_ids_hold_no_secret(address, instance_name, suffix) -> None:
    client_id = f"{address}@{instance_name}{suffix}"
    assert MASKING.mask(client_id) == client_id


KEY_TEXT = st.text(string.ascii_letters + string.digits + "+/=", min_size=6, max_size=64)


@given(ADDRESSES, KEY_TEXT, KEY_TEXT, WORDS, PIDS)
def test_the_binders_secret_is_in_no_masked_text_and_the_id_stays_the_same(
    address, access_key, secret, topic, pid
) -> None:
    client_id = f"{address}@{access_key}|{secret}|{topic}|{pid}"
    masked = MASKING.mask(client_id)
    assert f"|{secret}|" not in masked
    text = f"of {client_id}, and {client_id} (process 2): {client_id}; it"
    assert MASKING.mask(text) == f"of {masked}, and {masked} (process 2): {masked}; it"


def test_random_keys_beside_a_bar_are_found_and_almost_all_of_them() -> None:
    draw = random.Random(7)  # noqa: S311 - of nobody
    keys = ["".join(draw.choices(string.ascii_letters + string.digits, k=30)) for _ in range(500)]
    found = sum(
        MASKING.mask(f"10.0.0.1@user|{key}|blue") != f"10.0.0.1@user|{key}|blue" for key in keys
    )
    assert found >= 0.95 * len(keys)


OF_BINDER = "10.0.0.1@ak|12345678|T|1"
MASKED = MASKING.mask(OF_BINDER)


def test_a_key_makes_other_hashes_and_equal_secrets_have_equal_ones() -> None:
    other = MASKING.mask("10.0.0.2@ak|12345678|T|1")
    assert MASKED.partition("@")[2] == other.partition("@")[2]
    assert Masking(key=b"k").mask(OF_BINDER) != MASKED
    assert MASKING.mask(OF_BINDER.replace("12345678", "12345679")) != MASKED


def test_patterns_of_ones_own_count_and_defaults_can_be_left_out() -> None:
    own = Masking((), (r"#k(?P<secret>\w+)", "top.?secret"))
    assert own.mask("10.0.0.1@app#kABC") == "10.0.0.1@app#k(secret b5d404)"
    assert "top secret" not in own.mask("a top secret")
    assert own.mask(OF_BINDER) == OF_BINDER


def test_all_texts_of_a_value_are_masked_and_one_without_secrets_stays() -> None:
    row = {"a": [OF_BINDER, 1, None], "b": ({"c": OF_BINDER},), "d": 0.5, "e": OF_BINDER.encode()}
    masked = {"a": [MASKED, 1, None], "b": ({"c": MASKED},), "d": 0.5, "e": MASKED.encode()}
    assert MASKING.mask_all(row) == masked
    plain = {"a": ["x", ("y",)], "b": 1, "c": b"\xff|"}
    assert MASKING.mask_all(plain) == plain
    not_utf_8 = b"\xff" + OF_BINDER.encode()
    assert MASKING.mask_all(not_utf_8) == b"\xff" + MASKED.encode()


def test_a_column_keeps_its_nulls_and_its_type() -> None:
    column = pa.array([OF_BINDER, None, "b", OF_BINDER])
    masked = MASKING.mask_column(column)
    assert masked.type == pa.string()
    assert masked.to_pylist() == [MASKED, None, "b", MASKED]
    plain = pa.array(["a", None])
    assert MASKING.mask_column(plain) is plain


def test_texts_within_lists_and_structs_of_a_column_are_masked() -> None:
    type_ = pa.list_(pa.struct([("ids", pa.list_(pa.string())), ("n", pa.int64())]))
    id_ = "10.0.0.1@RocketMQ|12345678|order-topic|1"
    rows = [[{"ids": [id_, "plain", None], "n": 1}, {"ids": None, "n": None}], None, []]
    masked = MASKING.mask_column(pa.array(rows, type_))
    assert masked.type == type_
    assert masked.to_pylist() == MASKING.mask_all(rows)
    assert "12345678" not in str(masked)
    sliced = MASKING.mask_column(pa.array([[], *rows[::2]], type_).slice(1))
    assert sliced.to_pylist() == MASKING.mask_all(rows[::2])


def test_it_travels_to_workers() -> None:
    assert pickle.loads(pickle.dumps(Masking(key=b"k"))) == Masking(key=b"k")  # noqa: S301


@pytest.mark.house
@pytest.mark.parametrize(
    "text",
    [
        "a" * 1_000_000 + "|",
        "|a" * 500_000,
        "|aaaaaaa" * 150_000,
        "secret" * 150_000,
        "://a:" * 200_000,
        ("a" * 30 + "|") * 30_000,
        "LTAI" * 250_000 + "|",
        "token=" * 150_000,
    ],
    ids=lambda text: text[:8],
)
def test_the_time_grows_with_the_length_alone(text) -> None:
    started = time.monotonic()
    MASKING.mask(text)
    assert time.monotonic() - started < 10


def test_the_settings_name_the_patterns_that_are_there() -> None:
    from typing import get_args  # noqa: PLC0415

    from jobs.config.settings import DefaultPattern  # noqa: PLC0415

    assert get_args(DefaultPattern) == tuple(DEFAULT_PATTERNS)


def test_a_text_that_is_made_of_values_is_masked_value_by_value() -> None:
    who = Text("{client} and {number} more", client=OF_BINDER, number=2)
    row = {"evidence": Text("{who} hold it", who=who), "client_ids": [OF_BINDER]}
    evidence = MASKING.mask_all(row)["evidence"]
    assert evidence == f"{MASKED} and 2 more hold it"
    assert evidence.parts() == [
        "{who} hold it",
        {"who": ["{client} and {number} more", {"client": MASKED, "number": 2}]},
    ]
    plain = {"evidence": Text("{who} hold it", who=Text("{number} more", number=2))}
    assert MASKING.mask_all(plain) == plain


def test_a_value_that_no_slot_shows_is_masked_too() -> None:
    text = Text("restart it", client=OF_BINDER)
    assert "12345678" not in str(MASKING.mask_all(text).parts())


def test_a_text_keeps_its_parts_where_a_mark_follows_a_secret() -> None:
    """In the English text the colon looks like a part of the secret."""
    client = "10.0.0.1@password=hunter22"
    masked = Masking().mask_all(Text("{client}: {number} queues", client=client, number=2))
    assert isinstance(masked, Text)
    assert masked.values["client"] == Masking().mask(client)
    assert masked == f"{Masking().mask(client)}: 2 queues"

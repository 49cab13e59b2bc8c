"""What strangers send: log lines, client ids, frames. It is read, or refused in words."""

from __future__ import annotations

import re
import struct
from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from jobs.collect import frames
from jobs.collect.frames import FrameError
from jobs.config.masking import Masking
from jobs.dumps.queues import parse_message_queue, parse_rebalance_line
from jobs.dumps.values import LineError
from jobs.texts.shown import visible
from rebalance_core import parse_client_id
from tests.dumps.test_client_log import BY_BROKER, V4, V5
from tests.fuzz.mutations import changed_bytes, changed_texts
from tests.support.frames import Frame, decode, encode, encode_binary
from tests.support.replay import recorded

# ------------------------------------------------------------------ log lines


@given(changed_texts([V4, V5, BY_BROKER, "", "2026-11-21 02:03:06,167 INFO x"]) | st.text())
def test_a_log_line_is_read_whole_or_refused_or_another_line(line: str) -> None:
    try:
        said = parse_rebalance_line(line)
    except LineError as error:
        assert str(error)
        return
    assert (said is None) == ("rebalanced result changed." not in line)
    if said is not None:
        group, result = said
        for name in (group, result.topic, result.client_id, result.strategy):
            assert name in line
        assert all(-(2**31) <= queue_id < 2**31 for _, _, queue_id in result.queues)
        assert result.by_broker == (result.client_count is None)
        sizes = re.findall("rebalanceResultSize=([0-9]+)", line)
        assert result.by_broker or len(result.queues) in map(int, sizes)


_BROKERS = st.text() | st.sampled_from(["a, brokerName=b", "a, queueId=1]", "", "]"])


@given(st.text(), _BROKERS, st.integers(-(2**31), 2**31 - 1))
def test_a_queue_that_java_prints_is_read_back(topic: str, broker: str, number: int) -> None:
    # Of two brokerName= the first separates: RocketMQ lets no comma into a topic.
    topic = topic.replace(",", "")
    text = f"MessageQueue [topic={topic}, brokerName={broker}, queueId={number}]"
    assert parse_message_queue(text) == (topic, broker, number)


# ------------------------------------------------------------------ client ids

CLIENT_IDS = (
    "10.0.0.11@1#123456789012345",
    "[fe80::1%eth0]@1#123456789012345",
    "10.0.0.1@10.0.0.9:9876;10.0.0.10:9876@1",
    "10.0.0.1@accessKey|secretKey0123|group|1|17r9k3h8x",
    "10.0.0.1@LTAIaccess|s3cr3tOfACloud|group",
    "host@1#3_1726738800000",
    "macbook-pro@90009@0@2dyeb8lep",
    "10.0.0.11@order-service-0@unit@STREAM",
    "amqp://user:password@host:1/?token=abcdefgh&secretKey='s3cr3t'",
)
LANGUAGES = st.none() | st.sampled_from(["JAVA", "RUST", "go", ""]) | st.text(max_size=6)


@given(changed_texts(CLIENT_IDS) | st.text(), LANGUAGES)
def test_a_client_id_is_taken_apart_and_nothing_of_it_is_lost(
    client_id: str, language: str | None
) -> None:
    parsed = parse_client_id(client_id, language)
    if "@" in client_id:
        assert f"{parsed.address}@{parsed.instance_name}" == client_id
        assert "@" not in parsed.address or parsed.address.startswith("[")
    else:
        assert (parsed.address, parsed.instance_name) == ("", client_id)


@given(changed_texts(CLIENT_IDS) | st.text())
def test_what_is_masked_and_shown_stays_so(text: str) -> None:
    masked = Masking().mask(text)
    assert Masking().mask(masked) == masked
    shown = visible(masked)
    assert shown.isprintable()
    assert visible(shown) == shown


# ------------------------------------------------------------------ frames

_LENGTHS = st.sampled_from([0, 1, 2, 7, 2**15 - 1, 2**31 - 1, -1, -(2**31)])


@cache
def _payloads() -> tuple[bytes, ...]:
    """Recorded frames without their length, short ones, in both forms of the header."""
    exchanges = [each for name in ("494", "514", "mqadmin_wire") for each in recorded(name)]
    payloads = [data[4:2_000] for each in exchanges for data in (each.request, each.response)]
    binary = [encode_binary(decode(data))[4:] for data in payloads[:40] if data]
    return tuple(payloads + binary)


@st.composite
def changed_frames(draw: st.DrawFn) -> bytes:
    """Recorded frames with a change, often one of a length."""
    random = draw(st.randoms(use_true_random=False))
    payload = random.choice(_payloads())
    if random.choice((True, False)) and len(payload) > 8:
        place = random.randrange(len(payload) - 4)
        return payload[:place] + struct.pack(">i", draw(_LENGTHS)) + payload[place + 4 :]
    return changed_bytes(payload, random)


@given(changed_frames() | st.binary())
def test_bytes_are_a_frame_that_can_be_written_again_or_an_error(payload: bytes) -> None:
    try:
        read = frames.decode(payload)
    except FrameError as error:
        assert str(error)
        return
    sent = Frame(read.code, read.opaque, read.flag, 0, read.remark, {}, read.body)
    assert frames.decode(encode(sent)[4:]) == read

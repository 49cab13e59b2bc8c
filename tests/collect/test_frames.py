"""The codec, both ways: recorded frames, generated frames, and bytes that are none."""

from __future__ import annotations

import asyncio
import struct
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jobs.collect import frames
from jobs.collect.frames import Account, FrameError, decode, read_frame
from jobs.collect.questions import RequestCode, members, route
from tests.support.frames import Frame, encode, encode_binary, header_of
from tests.support.frames import decode as decode_request
from tests.support.replay import recorded

RECORDINGS = ("494", "514", "494acl", "494acl_badkey", "494acl_denied", "mqadmin_wire")

_TEXTS = st.text(max_size=30)
_INTS = st.integers(-(2**31), 2**31 - 1)
_SHORTS = st.integers(-(2**15), 2**15 - 1)
_FRAMES = st.builds(
    Frame,
    code=_SHORTS,
    opaque=_INTS,
    flag=_INTS,
    version=_SHORTS,
    # The binary form has no remark that is there and empty.
    remark=st.none() | st.text(min_size=1, max_size=30),
    fields=st.dictionaries(_TEXTS, _TEXTS, max_size=5),
    body=st.binary(max_size=200),
)


@given(_FRAMES)
def test_a_frame_is_read_back_as_it_was(frame: Frame) -> None:
    for data in (encode(frame), encode_binary(frame)):
        assert int.from_bytes(data[:4], "big") == len(data) - 4
        assert decode(data[4:]) == frame.as_read


@given(st.binary(max_size=300))
@example(b"")
@example(b"\x00\x00\x00\x09[[[[[[[[[")
@example(b"\x02\x00\x00\x00")
@example(b'\x00\x00\x00\x0c{"code":NaN}')
@example(b"\x00\x00\x13\x8a" + b"[" * 5002)
@example(b"\x00\x00\x13\x93" + b'{"code":' + b"1" * 5002 + b"}")
def test_bytes_are_a_frame_or_an_error_and_nothing_else(payload: bytes) -> None:
    with suppress(FrameError):
        assert isinstance(decode(payload), frames.Frame)


def read_of(data: bytes, most: int = 100) -> frames.Frame:
    """The first frame of a stream that ends with the data."""

    async def read() -> frames.Frame:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        return await read_frame(reader, most)

    return asyncio.run(read())


@given(_FRAMES)
def test_no_part_of_a_frame_is_a_frame_of_its_own_stream(frame: Frame) -> None:
    data = encode(frame)
    assert read_of(data, 1 << 20) == frame.as_read
    with pytest.raises(asyncio.IncompleteReadError):
        read_of(data[:-1], 1 << 20)


@pytest.mark.parametrize("name", RECORDINGS)
def test_recorded_answers_are_read(name: str) -> None:
    exchanges = recorded(name)
    assert exchanges
    for each in exchanges:
        if data := each.response:
            frame, header = decode(data[4:]), header_of(data[4:])
            expected = [header["code"], header["opaque"], header["flag"], header.get("remark")]
            assert [*frame[:4]] == expected
            assert frame.is_answer
            assert data.endswith(frame.body)
            size = 8 + int.from_bytes(data[4:8], "big")
            assert len(frame.body) == len(data) - size


@pytest.mark.parametrize(
    ("length", "says"), [(0, "came 0"), (3, "came 3"), (101, "came 101"), (2**32 - 1, "4294967295")]
)
def test_a_length_out_of_bounds_is_refused_before_it_is_read(length: int, says: str) -> None:
    with pytest.raises(FrameError, match=says):
        read_of(struct.pack(">I", length))


def test_an_answer_in_http_is_named() -> None:
    with pytest.raises(FrameError, match="it answers in HTTP: is this a dashboard's or a proxy's"):
        read_of(b"HTTP/1.1 400 Bad Request")


def test_what_a_header_cannot_hold_is_an_error() -> None:
    with pytest.raises(ValueError, match="surrogates not allowed"):
        frames.request(105, 0, 401, {"topic": "\ud83d"})


def test_a_request_is_what_mqadmin_sends_field_by_field() -> None:
    account = Account("rocketmq2", "12345678")
    asked = {
        ("broker494_conn1", 401): members("G_DUP"),
        ("broker514_conn1", 441): members("GV_OK"),
        ("brokeracl494_conn1", 401): members("G_X"),
        ("ns494_conn1", 401): route("T_DUP"),
        ("ns514_conn1", 441): route("V_OK"),
    }
    recordings = {each.name: each for each in recorded("mqadmin_wire")}
    assert set(recordings) == {name for name, _ in asked}
    for (name, version), question in asked.items():
        fields = account.sign(dict(question.fields))
        sent = frames.request(question.code, 0, version, fields)
        assert header_of(sent[4:]) == header_of(recordings[name].request[4:])
        assert decode_request(sent[4:]) == recordings[name].asked


def test_the_signature_is_the_recorded_one() -> None:
    for each in recorded("494acl"):
        fields = {
            name: value
            for name, value in each.asked.fields.items()
            if name not in ("AccessKey", "Signature")
        }
        signed = Account("auditReader", "12345678abc").sign(fields)
        assert signed == each.asked.fields


def test_a_token_is_signed_too() -> None:
    plain = Account("key", "secret").sign({"topic": "T"})
    with_token = Account("key", "secret", "token").sign({"topic": "T"})
    assert with_token["SecurityToken"] == "token"
    assert with_token["Signature"] != plain["Signature"]


def test_the_list_of_requests_is_closed() -> None:
    # All of them read. Whoever adds one says here that it does, too.
    assert sorted(RequestCode) == [105, 106, 201, 202, 203, 208, 307, 343, 402]

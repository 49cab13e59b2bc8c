r"""Frames of the remoting protocol: a request or an answer as bytes, and back.

A frame is 4 bytes length of what follows, 4 bytes mark (the high byte is how the header is
written, the other three how long it is), header, body; all big endian. The header is JSON, or the
binary form of a server that runs with ``-Drocketmq.serialize.type=ROCKETMQ``. The collector sends
JSON and reads both.

Source: ``RemotingCommand``, ``RemotingSerializable`` and ``RocketMQSerializable`` of 4.9.4 and
5.1.4, the same in both.

>>> frame = Frame(code=203, opaque=7, version=401, fields={"consumerGroup": "G"})
>>> encode(frame)[8:60]
b'{"code":203,"extFields":{"consumerGroup":"G"},"flag"'
>>> decode(encode(frame)[4:]) == frame
True
"""

import json
import struct
from asyncio import IncompleteReadError, StreamReader
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

#: No frame is shorter: it has at least the mark.
_SHORTEST = 4
#: What the collector says it is written in (``LanguageCode``); what others say is not read.
_LANGUAGE = "JAVA"
_RESPONSE = 1
#: What a server answers is in the body; a header has no more than a message.
_LONGEST_HEADER = 1 << 16
#: A frame is taken from its stream in such pieces.
_PIECE = 1 << 16

#: What an answer in HTTP begins with.
_HTTP = b"HTTP"

#: How a header is written (``SerializeType``). The collector writes JSON, and reads both.
_JSON, ROCKETMQ = 0, 1
FIXED = struct.Struct(">hBhii")
_INT = struct.Struct(">i")
_SHORT = struct.Struct(">h")


class FrameError(ValueError):
    """Bytes that are no frame, or a frame that cannot be written so."""


class Frame(NamedTuple):
    """One request or one answer (``RemotingCommand``).

    ``code`` of a request is what is asked, of an answer 0 or an error. ``opaque`` is the number of
    the request; its answer has the same.
    """

    code: int
    opaque: int
    flag: int = 0
    version: int = 0
    remark: str | None = None
    fields: Mapping[str, str] = {}
    body: bytes = b""

    @property
    def is_answer(self) -> bool:
        """Whether it answers a request: servers send requests, too."""
        return bool(self.flag & _RESPONSE)


def encode(frame: Frame) -> bytes:
    """The bytes of a frame, its length first.

    Raises FrameError for what its header cannot hold.
    """
    try:
        header = _json_header(frame)
    except UnicodeEncodeError as error:
        raise FrameError(f"cannot be written as a header: {error}") from error
    if len(header) >= 1 << 24:
        raise FrameError(f"expected a header below 16 MiB, came {len(header)} bytes")
    return framed(_JSON, header, frame.body)


def framed(form: int, header: bytes, body: bytes) -> bytes:
    """A header of a form and a body behind their lengths."""
    mark = form << 24 | len(header)
    return struct.pack(">II", 4 + len(header) + len(body), mark) + header + body


def decode(payload: bytes | bytearray) -> Frame:
    """The frame of all its bytes but those of the length.

    Raises FrameError for bytes that are none.
    """
    if len(payload) < _SHORTEST:
        raise FrameError(f"expected a frame of 4 bytes at least, came {len(payload)}")
    mark = int.from_bytes(payload[:4], "big")
    end = 4 + (mark & 0xFFFFFF)
    if end > len(payload):
        raise FrameError(f"expected a header of {end - 4} bytes, came {len(payload) - 4}")
    header, body = bytes(payload[4:end]), bytes(memoryview(payload)[end:])
    try:
        if mark >> 24 == _JSON:
            return _from_json(header, body)
        if mark >> 24 == ROCKETMQ:
            return _from_binary(header, body)
    except (ValueError, RecursionError, struct.error) as error:
        raise FrameError(f"the header cannot be read: {error}") from error
    raise FrameError(f"expected a header of type 0 (JSON) or 1 (ROCKETMQ), came {mark >> 24}")


async def read_frame(
    reader: StreamReader, most_bytes: int, take: Callable[[int, int], Awaitable[None]] | None = None
) -> Frame:
    """The next frame of a stream; ``take`` gets the size of each piece, and the frame's length.

    Raises FrameError for one that is longer than ``most_bytes`` or is none, IncompleteReadError
    where the stream ends, and what ``take`` raises.
    """
    start = await reader.readexactly(4)
    length = int.from_bytes(start, "big")
    if not _SHORTEST <= length <= most_bytes:
        hint = "; it answers in HTTP: is this a dashboard's or a proxy's port?"
        raise FrameError(
            f"expected a frame of 4 to {most_bytes} bytes, came {length}"
            + (hint if start == _HTTP else "")
        )
    payload = bytearray()
    while len(payload) < length:
        piece = await reader.read(min(length - len(payload), _PIECE))
        if not piece:
            raise IncompleteReadError(bytes(payload), length)
        if take is not None:
            await take(len(piece), length)
        payload += piece
    if int.from_bytes(payload[1:_SHORTEST], "big") > _LONGEST_HEADER:
        raise FrameError(f"expected a header of at most {_LONGEST_HEADER} bytes")
    return decode(payload)


def _json_header(frame: Frame) -> bytes:
    header = {
        "code": frame.code,
        "extFields": dict(frame.fields),
        "flag": frame.flag,
        "language": _LANGUAGE,
        "opaque": frame.opaque,
        **({} if frame.remark is None else {"remark": frame.remark}),
        "serializeTypeCurrentRPC": "JSON",
        "version": frame.version,
    }
    return json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()


def _from_json(header: bytes, body: bytes) -> Frame:
    values = json.loads(header)
    if not isinstance(values, dict):
        raise FrameError("expected an object")
    fields = values.get("extFields") or {}
    if not isinstance(fields, dict) or not all(isinstance(each, str) for each in fields.values()):
        raise FrameError("expected extFields to be texts")
    code, opaque, flag = (_integer(values, name) for name in ("code", "opaque", "flag"))
    version, remark = _integer(values, "version", 0), _text(values, "remark")
    return Frame(code, opaque, flag, version, remark, fields, body)


def _integer(values: dict[str, Any], name: str, default: int | None = None) -> int:
    value = values.get(name, default)
    if type(value) is not int or not -(1 << 31) <= value < 1 << 31:
        raise FrameError(f"expected {name} to be an integer of 32 bits")
    return value


def _text(values: dict[str, Any], name: str) -> str | None:
    value = values.get(name)
    if value is not None and not isinstance(value, str):
        raise FrameError(f"expected {name} to be a text")
    # No file in UTF-8 can have half a surrogate pair.
    return None if value is None else value.encode(errors="replace").decode()


def _from_binary(header: bytes, body: bytes) -> Frame:
    code, _, version, opaque, flag = FIXED.unpack_from(header)
    remark, place = _counted(header, FIXED.size, _INT)
    packed, place = _counted(header, place, _INT)
    if place != len(header):
        raise FrameError(f"expected {place} bytes, came {len(header)}")
    fields: dict[str, str] = {}
    place = 0
    while place < len(packed):
        name, place = _counted(packed, place, _SHORT)
        value, place = _counted(packed, place, _INT)
        fields[name.decode()] = value.decode()
    return Frame(code, opaque, flag, version, remark.decode() or None, fields, body)


def _counted(data: bytes, place: int, count: struct.Struct) -> tuple[bytes, int]:
    """The bytes that follow their number, and the place behind them."""
    (length,) = count.unpack_from(data, place)
    start = place + count.size
    if not 0 <= length <= len(data) - start:
        raise FrameError(f"expected {length} bytes at {start}, came {len(data) - start}")
    return data[start : start + length], start + length

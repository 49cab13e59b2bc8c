"""Frames as a server reads and writes them, with all of a header, in both forms.

Apart from the collector's own code, which writes requests and reads answers alone.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import NamedTuple

from jobs.collect import frames

_FIXED = struct.Struct(">hBhii")
_INT = struct.Struct(">i")
_SHORT = struct.Struct(">h")


class Frame(NamedTuple):
    """One request or one answer (``RemotingCommand``)."""

    code: int
    opaque: int
    flag: int = 0
    version: int = 0
    remark: str | None = None
    fields: Mapping[str, str] = {}
    body: bytes = b""

    @property
    def as_read(self) -> frames.Frame:
        """What the collector reads of it."""
        return frames.Frame(self.code, self.opaque, self.flag, self.remark, self.body)


def header_of(payload: bytes) -> dict[str, object]:
    """The JSON header of a frame's bytes but those of its length."""
    mark = int.from_bytes(payload[:4], "big")
    values: dict[str, object] = json.loads(payload[4 : 4 + mark])
    return values


def decode(payload: bytes) -> Frame:
    """The frame of all its bytes but those of the length; its header is JSON."""
    mark = int.from_bytes(payload[:4], "big")
    header = json.loads(payload[4 : 4 + mark])
    return Frame(
        header["code"],
        header["opaque"],
        header["flag"],
        header["version"],
        header.get("remark"),
        header.get("extFields") or {},
        bytes(payload[4 + mark :]),
    )


def encode(frame: Frame) -> bytes:
    """The bytes of a frame, its length first."""
    header = {
        "code": frame.code,
        "extFields": dict(frame.fields),
        "flag": frame.flag,
        "language": "JAVA",
        "opaque": frame.opaque,
        **({} if frame.remark is None else {"remark": frame.remark}),
        "serializeTypeCurrentRPC": "JSON",
        "version": frame.version,
    }
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":"))
    return _framed(0, text.encode(), frame.body)


def encode_binary(frame: Frame) -> bytes:
    """The same with RocketMQ's binary header; an empty remark is none."""
    remark = (frame.remark or "").encode()
    fields = b"".join(
        _SHORT.pack(len(name)) + name + _INT.pack(len(value)) + value
        for name, value in ((name.encode(), it.encode()) for name, it in frame.fields.items())
    )
    header = b"".join(
        (
            _FIXED.pack(frame.code, 0, frame.version, frame.opaque, frame.flag),
            _INT.pack(len(remark)) + remark,
            _INT.pack(len(fields)) + fields,
        )
    )
    return _framed(1, header, frame.body)


def _framed(form: int, header: bytes, body: bytes) -> bytes:
    mark = form << 24 | len(header)
    return struct.pack(">II", 4 + len(header) + len(body), mark) + header + body

"""Frames with RocketMQ's binary header, as a server may answer; the collector writes none."""

from __future__ import annotations

import struct

from jobs.collect.frames import FIXED, ROCKETMQ, Frame, FrameError, framed

_INT = struct.Struct(">i")
_SHORT = struct.Struct(">h")


def encode_binary(frame: Frame) -> bytes:
    """The bytes of a frame, its length first; FrameError for what its header cannot hold."""
    try:
        return framed(ROCKETMQ, _header(frame), frame.body)
    except (struct.error, UnicodeEncodeError) as error:
        raise FrameError(f"cannot be written as a header: {error}") from error


def _header(frame: Frame) -> bytes:
    remark = (frame.remark or "").encode()
    fields = b"".join(
        _SHORT.pack(len(name)) + name + _INT.pack(len(value)) + value
        for name, value in ((name.encode(), it.encode()) for name, it in frame.fields.items())
    )
    return b"".join(
        (
            FIXED.pack(frame.code, 0, frame.version, frame.opaque, frame.flag),
            _INT.pack(len(remark)) + remark,
            _INT.pack(len(fields)) + fields,
        )
    )

r"""Frames of the remoting protocol: a request as bytes, signed by an account, and an answer.

A frame is 4 bytes length of what follows, 4 bytes mark (the high byte is how the header is
written, the other three how long it is), header, body; all big endian. The header is JSON, or the
binary form of a server that runs with ``-Drocketmq.serialize.type=ROCKETMQ``. The collector sends
JSON and reads both.

A request may be signed by an account (ACL 1.0; 2.0, of 5.3 and later, reads the same three fields).
The secret key is in no argument, no log and no dump: it comes from the environment or from a file,
and it leaves this module as a signature alone.

Source: ``RemotingCommand``, ``RemotingSerializable``, ``RocketMQSerializable``,
``AclClientRPCHook`` and ``AclUtils`` of 4.9.4 and 5.1.4, the same in both.

>>> request(203, 7, 401, {"consumerGroup": "G"})[8:60]
b'{"code":203,"extFields":{"consumerGroup":"G"},"flag"'
>>> decode(b'\0\0\0\x21{"code":17,"flag":1,"opaque":7}  ')
Frame(code=17, opaque=7, flag=1, remark=None, body=b'')
"""

import base64
import hashlib
import hmac
import json
import logging
import re
import stat
import struct
from asyncio import IncompleteReadError, StreamReader
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import SettingsError

#: No frame is shorter: it has at least the mark.
_SHORTEST = 4
#: The language that the collector gives as its own (``LanguageCode``); that of others is not read.
_LANGUAGE = "JAVA"
_RESPONSE = 1
#: The longest header; a server's answer is in the body, and a header has no more than a message.
_LONGEST_HEADER = 1 << 16
#: A frame is taken from its stream in such pieces.
_PIECE = 1 << 16

#: The beginning of an answer in HTTP.
_HTTP = b"HTTP"

#: Forms of a header (``SerializeType``). The collector writes JSON, and reads both.
_JSON, _ROCKETMQ = 0, 1
#: The fixed part of a binary header: code, language, version, opaque, flag, and the length of the
#: remark.
_FIXED = struct.Struct(">hBhiii")


class FrameError(ValueError):
    """Bytes that are not a frame, or a request that cannot be written as one."""


class Frame(NamedTuple):
    """The parts of an answer that are read (``RemotingCommand``), without fields and version.

    ``code`` is 0 or an error. ``opaque`` is the number of the request that is answered.
    """

    code: int
    opaque: int
    flag: int
    remark: str | None
    body: bytes

    @property
    def is_answer(self) -> bool:
        """True if it answers a request: servers send requests, too."""
        return bool(self.flag & _RESPONSE)


def request(code: int, opaque: int, version: int, fields: Mapping[str, str]) -> bytes:
    """The bytes of a request, its length first.

    ``code``: what is asked; ``opaque``: its number; ``version``: an ordinal of ``MQVersion``.
    Raises ValueError for fields that a header cannot hold.
    """
    values = {
        "code": code,
        "extFields": dict(fields),
        "flag": 0,
        "language": _LANGUAGE,
        "opaque": opaque,
        "serializeTypeCurrentRPC": "JSON",
        "version": version,
    }
    header = json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode()
    if len(header) >= 1 << 24:
        raise FrameError(f"expected a header below 16 MiB, came {len(header)} bytes")
    return struct.pack(">II", 4 + len(header), len(header)) + header


def decode(payload: bytes | bytearray) -> Frame:
    """The frame of all its bytes but those of the length.

    Raises FrameError for bytes that are none.
    """
    mark = int.from_bytes(payload[:4], "big")
    end = 4 + (mark & 0xFFFFFF)
    if end > len(payload):
        raise FrameError(f"expected a header of {end - 4} bytes, came {len(payload) - 4}")
    header, body = bytes(payload[4:end]), bytes(memoryview(payload)[end:])
    try:
        if mark >> 24 == _JSON:
            return _from_json(header, body)
        if mark >> 24 == _ROCKETMQ:
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


def _from_json(header: bytes, body: bytes) -> Frame:
    values = json.loads(header)
    if not isinstance(values, dict):
        raise FrameError("expected an object")
    code, opaque, flag = (_integer(values, name) for name in ("code", "opaque", "flag"))
    remark = values.get("remark")
    if remark is not None and not isinstance(remark, str):
        raise FrameError("expected remark to be a text")
    # No file in UTF-8 can have half a surrogate pair.
    text = None if remark is None else remark.encode(errors="replace").decode()
    return Frame(code, opaque, flag, text, body)


def _integer(values: dict[str, Any], name: str) -> int:
    value = values.get(name)
    if type(value) is not int or not -(1 << 31) <= value < 1 << 31:
        raise FrameError(f"expected {name} to be an integer of 32 bits")
    return value


def _from_binary(header: bytes, body: bytes) -> Frame:
    code, _, _, opaque, flag, length = _FIXED.unpack_from(header)
    end = _FIXED.size + length
    if not _FIXED.size <= end <= len(header):
        raise FrameError(f"expected a remark of {length} bytes, came {len(header) - _FIXED.size}")
    return Frame(code, opaque, flag, header[_FIXED.size : end].decode() or None, body)


# ---------------------------------------------------------------- the account

#: The environment variables of the account.
ACCESS_KEY = "REBALANCE_AUDIT_ACCESS_KEY"
SECRET_KEY = "REBALANCE_AUDIT_SECRET_KEY"  # noqa: S105 - the name of a variable
SECURITY_TOKEN = "REBALANCE_AUDIT_SECURITY_TOKEN"  # noqa: S105 - the name of a variable

_LOGGER = logging.getLogger(__name__)
_KEY_LINE = re.compile(r"\s*(accessKey|secretKey|securityToken)\s*[:=]\s*(.*?)\s*")


@dataclass(frozen=True)
class Account:
    """The account; its ``repr`` shows no secret."""

    access_key: str
    secret_key: str = field(repr=False)
    security_token: str | None = field(default=None, repr=False)

    def sign(self, fields: Mapping[str, str]) -> dict[str, str]:
        """The fields with the account and the signature.

        Signed are the values of all fields, in the order of their names; no question has a body.

        >>> signed = Account("rocketmq2", "12345678").sign({"consumerGroup": "G_X"})
        >>> signed["AccessKey"], signed["Signature"]
        ('rocketmq2', '3uHz0TO9SnoDNTGMy/blSDuBuHk=')
        """
        signed = {**fields, "AccessKey": self.access_key}
        if self.security_token is not None:
            signed["SecurityToken"] = self.security_token
        content = "".join(signed[name] for name in sorted(signed)).encode()
        digest = hmac.digest(self.secret_key.encode(), content, hashlib.sha1)
        return {**signed, "Signature": base64.b64encode(digest).decode()}


def find_account(environment: Mapping[str, str], file: str | None) -> Account | None:
    """The account of the file, else of the environment; None where there is none.

    The file has the lines ``accessKey: ...`` and ``secretKey: ...``, as mqadmin's conf/tools.yml.
    Raises SettingsError, without the secret in it, for half an account.
    """
    if file is not None:
        keys, source = _read(file), file
    else:
        names = {"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY, "securityToken": SECURITY_TOKEN}
        keys = {key: environment.get(name, "").strip() for key, name in names.items()}
        source = f"the environment ({ACCESS_KEY}, {SECRET_KEY})"
        if not any(keys.values()):
            return None
    access_key, secret_key = keys.get("accessKey"), keys.get("secretKey")
    if not access_key or not secret_key:
        missing = "accessKey" if not access_key else "secretKey"
        raise SettingsError(
            f"{source}: expected an access key and a secret key, {missing} is empty"
        )
    return Account(access_key, secret_key, keys.get("securityToken") or None)


def _read(file: str) -> dict[str, str]:
    try:
        if Path(file).stat().st_mode & stat.S_IROTH:
            _LOGGER.warning("account file %s: everybody on this machine may read it", file)
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"account file {file}: {type(error).__name__}") from None
    found = (_KEY_LINE.fullmatch(line) for line in lines)
    return {match.group(1): match.group(2).strip("\"'") for match in found if match}

"""dump files -> records of one group, without Spark: for a question about one group and one time.

By the same rules as ``records.read_records``: the same kinds, the same demands on envelope and
body, the same tokenizer. A line that these rules refuse is counted and left out; ``ingest`` keeps
it in quarantine and says what is wrong with it.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from glob import glob
from pathlib import Path
from typing import Any

from jobs.dumps.bodies import (
    CLIENT_LOG,
    CONSUMER_CONNECTION,
    CONSUMER_RUNNING_INFO,
    HEARTBEAT,
    KINDS,
    TOPIC_ROUTE,
)
from jobs.dumps.client_log import ClientLogError, RebalanceResult, parse_rebalance_line
from jobs.dumps.fastjson import FastjsonError, to_standard_json
from jobs.dumps.records import MAY_FAIL, MOST_QUEUES, REQUIRED
from jobs.errors import InputError

_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:?\d{2})")
_INTEGER = re.compile(r"-?\d{1,18}")
_TIMES = ("snapshot_time", "collected_at")
_NUMBERS = ("broker_id", "error_code")


@dataclass(frozen=True, slots=True)
class Record:
    """One line: its envelope by key, and its body.

    ``body`` has the fields that RocketMQ's server sent, bare even where the dashboard wrapped
    them; empty where an error came in its place. ``code`` and ``message`` are that error, None
    where there was none. ``rebalance`` is what a client's log line tells.
    """

    kind: str
    cluster: str
    snapshot_time: datetime | None
    collected_at: datetime
    envelope: Mapping[str, Any]
    body: Mapping[str, Any] = field(default_factory=dict)
    code: int | None = None
    message: str | None = None
    rebalance: RebalanceResult | None = None


@dataclass(slots=True)
class Dumps:
    """The records of some dump files that may concern a group, and the names that are in them.

    ``groups`` are the groups that were polled, ``topics`` those whose routes were; ``refused`` is
    the number of lines that were not understood, of those that were looked into.
    """

    records: list[Record]
    clusters: set[str]
    groups: set[str]
    topics: set[str]
    refused: int = 0


def find_dump_files(paths: Sequence[str]) -> list[Path]:
    """Every local file that the paths name: files, folders (with all below them) and globs.

    Names that begin with ``_`` or ``.`` are no dumps. Raises InputError for a path that names
    nothing.
    """
    found: dict[Path, None] = {}
    for path in paths:
        # Path.glob takes no absolute pattern.
        globbed = sorted(glob(path))  # noqa: PTH207
        named = [Path(path)] if Path(path).exists() else [Path(each) for each in globbed]
        if not named:
            raise InputError(f"no dump at {path}; only local files are read here")
        for each in named:
            found.update(dict.fromkeys(_files_below(each) if each.is_dir() else _unhidden(each)))
    return list(found)


def _files_below(folder: Path) -> list[Path]:
    files = (file for file in sorted(folder.rglob("*")) if file.is_file())
    return [file for file in files if not any(map(_is_hidden, file.relative_to(folder).parts))]


def _unhidden(file: Path) -> list[Path]:
    return [] if _is_hidden(file.name) else [file]


def _is_hidden(name: str) -> bool:
    return name.startswith(("_", "."))


def read_dumps(paths: Sequence[str], group: str) -> Dumps:
    """What the dump files hold of a group: its polls, its clients, and every topic's route.

    Raises InputError where there is no file, or one cannot be read to its end.
    """
    dumps = Dumps([], set(), set(), set())
    files = find_dump_files(paths)
    if not files:
        raise InputError(f"no dump file below {', '.join(paths)}")
    for file in files:
        for line in _lines(file):
            _read_line(line, group, dumps)
    return dumps


def _lines(file: Path) -> Iterator[str]:
    opened = gzip.open if file.suffix == ".gz" else open
    try:
        with opened(file, "rt", encoding="utf-8", errors="surrogateescape", newline="\n") as stream:
            for line in stream:
                yield line.removesuffix("\n").removeprefix("\ufeff")
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{file}: {error}") from error


def _read_line(line: str, group: str, dumps: Dumps) -> None:
    try:
        envelope = _envelope(line)
    except (ValueError, RecursionError):
        dumps.refused += 1
        return
    dumps.clusters.add(envelope["cluster"])
    if envelope["kind"] == TOPIC_ROUTE:
        dumps.topics.add(envelope["topic"])
    elif envelope.get("consumer_group"):
        dumps.groups.add(envelope["consumer_group"])
    if not _may_concern(envelope, group):
        return
    try:
        record = _record(envelope)
    except (ValueError, TypeError, AttributeError):
        dumps.refused += 1
        return
    dumps.records.append(record)


def _may_concern(envelope: Mapping[str, Any], group: str) -> bool:
    """Whether the line may tell of the group, judged without reading its body."""
    if envelope["kind"] == TOPIC_ROUTE:
        return True
    if envelope["kind"] in (HEARTBEAT, CLIENT_LOG):
        body = envelope["body"]
        return group in body or (envelope["kind"] == HEARTBEAT and "\\" in body)
    return bool(envelope["consumer_group"] == group)


def _envelope(line: str) -> dict[str, Any]:
    """The line's object, with its times and numbers as such; ValueError where one is wrong."""
    line.encode()  # bytes that are no UTF-8 came as halves of pairs
    values = json.loads(line)
    if not isinstance(values, dict) or values.get("kind") not in KINDS:
        raise ValueError("no object of a known kind")
    values = {key: _text(value) for key, value in values.items() if value is not None}
    for name in _TIMES:
        if name in values:
            values[name] = _instant(values[name])
    for name in _NUMBERS:
        if name in values:
            values[name] = int(values[name]) if _INTEGER.fullmatch(values[name]) else None
    for name in ("cluster", "collected_at", *REQUIRED[values["kind"]]):
        if values.get(name) in (None, ""):
            raise ValueError(f"no {name}")
    if "error_code" in values and values["error_code"] is None:
        raise ValueError("error_code is no integer")
    failed = values["kind"] in MAY_FAIL and values.get("error_code", 0) != 0
    if "body" not in values and not failed:
        raise ValueError("no body")
    return values


def _text(value: Any) -> str:
    """A value as Spark reads a text: what is none is its JSON (a body that is an object, say)."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _instant(text: str) -> datetime | None:
    if not _TIME.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        return None


def _record(envelope: Mapping[str, Any]) -> Record:
    kind = envelope["kind"]
    plain = Record(
        kind, envelope["cluster"], envelope.get("snapshot_time"), envelope["collected_at"], envelope
    )
    if kind == CLIENT_LOG:
        try:
            return replace(plain, rebalance=parse_rebalance_line(envelope["body"]))
        except ClientLogError as error:
            raise ValueError(str(error)) from error
    code = envelope.get("error_code") or None
    message = envelope.get("error_message")
    if "body" not in envelope:
        return replace(plain, code=code, message=message)
    try:
        body = json.loads(to_standard_json(envelope["body"]))
    except FastjsonError as error:
        raise ValueError(str(error)) from error
    if not isinstance(body, dict):
        raise TypeError("body is no object")
    status = body.get("status") or 0
    data = body.get("data")
    if isinstance(data, dict):
        body = {**data, **{key: each for key, each in body.items() if each is not None}}
    if status != 0:
        return replace(plain, code=code or -1, message=message or body.get("errMsg"))
    if not _is_as_demanded(kind, body):
        raise ValueError(f"body is no {kind}")
    return replace(plain, body=body, code=code, message=message)


def _is_as_demanded(kind: str, body: Mapping[str, Any]) -> bool:
    """What ``records`` demands of a body of the kind, in order."""
    if kind == HEARTBEAT:
        return bool(body.get("clientID")) and all(
            each.get("groupName") for each in body.get("consumerDataSet") or ()
        )
    if kind == CONSUMER_CONNECTION:
        return body.get("connectionSet") is not None and all(
            each.get("clientId") and each.get("clientAddr") for each in body["connectionSet"]
        )
    if kind == TOPIC_ROUTE:
        queues = body.get("queueDatas")
        addresses = body.get("brokerDatas")
        return (
            (queues is not None or addresses is not None)
            and all(each.get("brokerName") for each in addresses or ())
            and all(
                each.get("brokerName")
                and each.get("perm") is not None
                and 0 <= each.get("readQueueNums", -1) <= MOST_QUEUES
                and 0 <= each.get("writeQueueNums", -1) <= MOST_QUEUES
                for each in queues or ()
            )
        )
    if kind == CONSUMER_RUNNING_INFO:
        return body.get("properties") is not None or body.get("mqTable") is not None
    return body.get("offsetTable") is not None

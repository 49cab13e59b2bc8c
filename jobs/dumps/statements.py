"""lines -> statements: each line of a dump read once, or the reason why it was not.

A line is an envelope, which the collector writes, and a body, the text that a server or a client
sent. The envelope is JSON. Of its fields those that the kind must have are checked; others may be
missing, and count as missing where they are not what they should be.

Most lines of a day differ from an earlier one in their times alone, and mean the same, at other
times. Such a line needs no JSON: with other digits between the same two quotes it has the same
structure. What a line asks for is counted against the bounds, not made.
"""

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias, TypeVar

from rebalance_core.errors import nearest

from ..config.bounds import Bounds, beyond
from ..declared.instants import SECOND, Instant, in_calendar, to_instant
from ..schemas import LIST_REFUSED
from .counts import MOST_SENDERS, OTHERS, LineSender, PlausibleTimes, iso_of, sender_of
from .parsing import parse_json
from .statement import (
    CONSUMER_CONNECTION,
    KINDS,
    Connections,
    Content,
    LineSource,
    LogLine,
    Route,
    Statement,
)
from .typed import LINES, LineKind, ParsedBody, read_body
from .values import BoundError, LineError, as_text, expected, integer_in, is_java_int

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
    r"(?:Z|[+-](?:(?:0[0-9]|1[0-7]):?[0-5][0-9]|18:?00))"
)
#: Characters that count as blank in a line that is otherwise empty.
_BLANKS = " \t\n\x0b\f\r"
_BOMS_OF_UTF16 = (BOM_UTF16_LE, BOM_UTF16_BE)

#: The fields that are times, as a line has them.
_TIMES = {"collected_at": b'"collected_at"', "snapshot_time": b'"snapshot_time"'}
_NUMBERS = ("broker_id", "error_code")

#: The bytes that a memory may hold, and those of an entry beside what its maker counts.
MEMORY_BYTES = 32 << 20
ENTRY_BYTES = 500


class Cache(dict[_Key, _Value]):
    """A dict that forgets all of its entries when it is full.

    All, and not the oldest: what repeats itself is soon there again, and no entry costs more than
    in a plain dict.
    """

    def __init__(self, most_bytes: int = MEMORY_BYTES) -> None:
        super().__init__()
        self._most_bytes = most_bytes
        self._bytes = 0

    def remember(self, key: _Key, value: _Value, size: int) -> _Value:
        """Keeps the value, of about ``size`` bytes with its key, and gives it back."""
        self._bytes += size + ENTRY_BYTES
        if self._bytes > self._most_bytes:
            self.clear()
            self._bytes = size + ENTRY_BYTES
        self[key] = value
        return value


class RefusedLine(NamedTuple):
    """A line that is not a statement: what was expected and what came.

    ``kind``: that of the line; empty where it has none. ``sender``: None where the line is no
    object, or another count has it (``PlausibleTimes.apart``). ``polls``: that a broker was asked
    for a list, and gave one that is no evidence: the poll has the reason in place of an answer.
    """

    reason: str
    kind: str = ""
    sender: LineSender | None = None
    polls: tuple[Statement, ...] = ()


class _TimesApartError(LineError):
    """A line is of another time than most: its cluster is reported by that."""


class _RefusedBodyError(LineError):
    """A body is refused, of a line whose envelope is understood."""

    def __init__(self, reason: str, times: "_LineTimes", who: "_Who") -> None:
        super().__init__(reason)
        self.times, self.who = times, who


def as_quarantined(line: bytes) -> tuple[str, bytes | None]:
    r"""A line as the quarantine has it: its text, and its bytes where that is another.

    >>> as_quarantined(b"a"), as_quarantined(b"\xff") == ("\ufffd", b"\xff")
    (('a', None), True)
    """
    try:
        return line.decode(), None
    except UnicodeDecodeError:
        return line.decode(errors="replace"), line


#: The time of a line's round, and when it was collected.
_LineTimes: TypeAlias = tuple[Instant | None, Instant]
#: The cluster, the subject where the envelope names it, and who was asked and who spoke.
_Who: TypeAlias = tuple[str, str | None, LineSource]


class _Meaning(NamedTuple):
    """All that a line says but for its times."""

    kind: str
    cluster: str
    source: LineSource
    #: Contents by subject.
    contents: tuple[tuple[str, Content], ...]
    #: The number of lines of its sender that were understood: one list of it, which is shared.
    understood: list[int]

    def at(self, times: _LineTimes, order: int) -> list[Statement]:
        """The statements of the line, which is understood with this."""
        self.understood[0] += 1
        return [
            Statement(self.kind, self.cluster, subject, *times, order, self.source, content)
            for subject, content in self.contents
        ]


class StatementReader:
    """Reads the lines of dumps; to be kept, because it remembers what repeats itself.

    What is equal is mostly the same object in all statements of a reader: sources and, of
    heartbeats, lists and routes, contents.

    >>> line = b'''{"kind":"topic_route", "cluster":"C", "namesrv_addr":"ns:9876", "topic":"T",
    ... "snapshot_time":"1970-01-01T00:00:01Z", "collected_at":"1970-01-01T00:00:02Z",
    ... "error_code":17, "error_message":"No topic route info"}'''
    >>> reader = StatementReader(Bounds(), None)
    >>> [statement] = reader.read(line)
    >>> statement.subject, statement.collected_at, statement.source.error_code, statement.content
    ('T', 2000000, 17, None)
    >>> reader.read(b"17").reason, list(reader.understood.values())
    ("expected one JSON object, came '17'", [[1]])
    """

    def __init__(self, bounds: Bounds, plausible: PlausibleTimes | None) -> None:
        self._bounds = bounds
        self._plausible = plausible
        self._meanings: Cache[bytes, _Meaning] = Cache()
        self._values: Cache[Any, Any] = Cache()
        #: The number of lines of each sender that were understood, in a list.
        self.understood: dict[LineSender, list[int]] = {}
        self._tallies: Cache[tuple[str, _Who], list[int]] = Cache()

    def read(self, line: bytes, order: int = 0) -> list[Statement] | RefusedLine:
        """The statements of a line, or why it has none.

        A heartbeat has one for each of its groups. A line that was understood and is about no
        group (a log line of something else, a heartbeat of a producer) has none, nor has one of a
        kind that is not in ``KINDS``.
        """
        rest, given = without_times(line)
        # The meaning of a line that came before with other times.
        meaning = self._meanings.get(rest)
        if meaning is not None:
            collected_at, snapshot_time = map(_instant, map(given.get, _TIMES))
            is_time = snapshot_time is not None or "snapshot_time" not in given
            if collected_at is not None and is_time:
                times = snapshot_time, collected_at
                if self._impossible(meaning.kind, times) is None:
                    return meaning.at(times, order)
        if _is_utf16(line):
            return RefusedLine("expected UTF-8 text, came UTF-16")
        try:
            text = line.decode().removeprefix("\ufeff")
        except UnicodeError:
            return RefusedLine("expected UTF-8 text, came bytes that are none")
        try:
            envelope = parse_json(text)
        except ValueError:
            envelope = None
        if not isinstance(envelope, dict):
            if not text.strip(_BLANKS):
                return RefusedLine("expected a JSON object, came an empty line")
            return RefusedLine(expected("one JSON object", text))
        try:
            meaning, times = self._read(envelope)
        except LineError as error:
            return _refused(error, sender_of(envelope), order)
        if LINES[meaning.kind].comes_again and _are_its_times(given, rest, envelope):
            self._meanings.remember(rest, meaning, len(rest))
        return meaning.at(times, order)

    def _read(self, envelope: dict[str, Any]) -> tuple[_Meaning, _LineTimes]:
        name = envelope.get("kind")
        kind = LINES.get(name) if isinstance(name, str) else None
        if name is None or kind is None:
            raise LineError(_no_kind(name))
        fields = _fields(kind, envelope, self._bounds)
        times = fields["snapshot_time"], fields["collected_at"]
        if (impossible := self._impossible(name, times)) is not None:
            raise impossible
        who = cluster, subject, source = self._same(_who(kind, fields, envelope))
        read = _NOTHING
        body = as_text(envelope.get("body"))
        if body is not None:
            try:
                read = self._body(name, body)
            except LineError as error:
                whose = f" of '{subject}'" if isinstance(error, BoundError) else ""
                raise _RefusedBodyError(f"body{whose}: {error}", times, who) from error
        elif source.error_code is None:
            neither = "expected body or error_code, came neither"
            neither = neither if kind.may_fail else "expected body, came none"
            raise _RefusedBodyError(neither, times, who)
        if read.code is not None:
            # The error of the envelope goes before that of the dashboard's status.
            code = read.code if source.error_code is None else source.error_code
            message = read.message if source.error_message is None else source.error_message
            source = self._same(source._replace(error_code=code, error_message=message))
        contents = read.contents if source.error_code is None else _NOTHING.contents
        statements = tuple(
            (subject or group or "", content)
            for group, content in contents
            if name in KINDS or content is not None
        )
        return _Meaning(name, cluster, source, statements, self._tally(name, who, envelope)), times

    def _tally(self, kind: str, who: _Who, envelope: dict[str, Any]) -> list[int]:
        """The number of lines of the sender that were understood."""
        tally = self._tallies.get((kind, who))
        if tally is None:
            sender = sender_of(envelope)
            if len(self.understood) >= MOST_SENDERS and sender not in self.understood:
                sender = OTHERS
            tally = self.understood.setdefault(sender, [0])
            self._tallies.remember((kind, who), tally, 0)
        return tally

    def _impossible(self, kind: str, times: _LineTimes) -> LineError | None:
        """The reason why the times of a line cannot be; None where they can."""
        snapshot_time, collected_at = times
        hours = self._bounds.round_hours
        if (
            snapshot_time is not None
            and abs(collected_at - snapshot_time) > hours * 3600 * SECOND
            and "snapshot_time" in LINES[kind].required
        ):
            return LineError(
                f"expected snapshot_time and collected_at at most {hours:,} hours apart "
                f"(bounds.round_hours), came {iso_of(snapshot_time)} and {iso_of(collected_at)}"
            )
        problem = self._plausible and self._plausible.problem(kind, collected_at)
        return _TimesApartError(problem) if problem else None

    def _body(self, kind: str, body: str) -> ParsedBody:
        read = read_body(kind, body)
        for group, content in read.contents:
            _check_names([("a consumer group", group)], self._bounds)
            _check_content(content, len(body), self._bounds)
        if not LINES[kind].comes_again:
            return read
        # A broker prints its set in another order each time, and a subscription's version changes
        # at every rebalance.
        contents = tuple((group, self._same(it, len(body))) for group, it in read.contents)
        return read._replace(contents=contents)

    def _same(self, value: _Value, size: int | None = None) -> _Value:
        """The equal value of its type that came before, else this one; of about so many bytes."""
        key = (type(value), value)
        same: _Value | None = self._values.get(key)
        if same is None:
            size = len(repr(value)) if size is None else size
            same = self._values.remember(key, value, size)
        return same


def _refused(error: LineError, sender: LineSender, order: int) -> RefusedLine:
    """The refusal of a line; that of a list is a poll in which no list came."""
    kind = sender.kind if sender.kind in KINDS else ""
    if isinstance(error, _TimesApartError):
        return RefusedLine(str(error), kind)
    polls: tuple[Statement, ...] = ()
    if isinstance(error, _RefusedBodyError) and kind == CONSUMER_CONNECTION:
        cluster, group, asked = error.who
        source = asked._replace(error_code=LIST_REFUSED, error_message=str(error))
        polls = (Statement(kind, cluster, group or "", *error.times, order, source, None),)
    return RefusedLine(str(error), kind, sender, polls)


_NOTHING = ParsedBody(((None, None),))
#: No name that is longer is a misspelt kind; to compare it with them takes its time.
_LONGEST_NAME = 60


def _no_kind(name: Any) -> str:
    reason = expected(f"kind to be one of {', '.join(LINES)}", as_text(name))
    near = nearest(name, LINES) if isinstance(name, str) and len(name) <= _LONGEST_NAME else []
    return f"{reason}: did you mean {' or '.join(near)}?" if near else reason


# ------------------------------------------------------------------ envelopes


def without_times(line: bytes) -> tuple[bytes, dict[str, str]]:
    """The line without the values of its times, and these by name.

    >>> without_times(b'{"collected_at":"2026-01-05T00:00:00Z","kind":"heartbeat"}')
    (b'{"collected_at":"","kind":"heartbeat"}', {'collected_at': '2026-01-05T00:00:00Z'})
    """
    times = {}
    for name, key in _TIMES.items():
        place = line.find(key)
        start = line.find(b'"', place + len(key)) + 1 if place >= 0 else 0
        end = line.find(b'"', start) if start else -1
        if end >= 0:
            times[name] = line[start:end].decode("ascii", "replace")
            line = line[:start] + line[end:]
    return line, times


def _are_its_times(times: Mapping[str, str], rest: bytes, envelope: dict[str, Any]) -> bool:
    """True if these times are those of the envelope: without them the line differs in them alone.
    They could be of an object in it, or of a key that comes twice.
    """
    if "collected_at" not in times:
        return False
    try:
        without = parse_json(rest.decode().removeprefix("\ufeff"))
    except ValueError:  # it was not a whole text that was left out
        return False
    return bool(without == envelope | dict.fromkeys(times, ""))


def _fields(kind: LineKind, envelope: dict[str, Any], bounds: Bounds) -> dict[str, Any]:
    """The fields of an envelope, each None where it is not what it should be.

    Raises LineError: for one that is missing, an error code that is none, a name that is too long.
    """
    fields = {name: _value(name, envelope.get(name)) for name in kind.fields}
    for name in ("cluster", "collected_at", *kind.required):
        if fields[name] in (None, ""):
            demand = "an integer" if name in _NUMBERS else "a text that is not empty"
            demand = "a time as ISO 8601 with zone" if name in _TIMES else demand
            raise LineError(expected(f"{name} to be {demand}", as_text(envelope.get(name))))
    _check_names(((name, it) for name, it in fields.items() if isinstance(it, str)), bounds)
    code = envelope.get("error_code")
    if code is not None and fields["error_code"] is None:
        raise LineError(expected("error_code to be an integer", as_text(code)))
    return fields


def _who(kind: LineKind, fields: dict[str, Any], envelope: dict[str, Any]) -> _Who:
    """The cluster, the subject, and who was asked and who spoke."""
    source = LineSource(**{name: fields[name] for name in kind.source})
    if kind.may_fail:
        message = as_text(envelope.get("error_message"))
        source = source._replace(error_code=fields["error_code"] or None, error_message=message)
    return fields["cluster"], fields[kind.subject] if kind.subject else None, source


def _value(name: str, raw: Any) -> Any:
    """A field's value; None where it is not what the field should be."""
    if name in _TIMES:
        return _instant(raw) if isinstance(raw, str) else None
    if name not in _NUMBERS:
        return as_text(raw)
    # An integer of at most 18 digits, or the text of one.
    number = integer_in(as_text(raw))
    is_code = number is not None and is_java_int(number)
    return number if is_code or name != "error_code" else None


@lru_cache(maxsize=10_000)  # a round's time comes with each of its lines
def _instant(text: str | None) -> Instant | None:
    """A time as ISO 8601 in microseconds; one without a zone could be any."""
    if text is None or _TIME.fullmatch(text) is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return to_instant(time) if in_calendar(time) else None


def _is_utf16(line: bytes) -> bool:
    """True for a line of UTF-16: the first one begins with a mark, each has a NUL beside a letter.

    >>> _is_utf16('{"kind": 1}'.encode("utf-16")), _is_utf16('{"kind": 1}'.encode("utf-16-be"))
    (True, True)
    >>> _is_utf16(b'{"kind": 1}'), _is_utf16(bytes(9) + b'{"kind": 1}')
    (False, False)
    """
    nul_bytes = line.count(0)
    # A crash of the machine leaves many NULs in a row.
    is_spread = nul_bytes * 3 > len(line) and bytes(2) not in line
    return is_spread or (nul_bytes > 0 and line.startswith(_BOMS_OF_UTF16))


# ------------------------------------------------------------------ bounds

#: The thing that each field names, in whatever content.
_NAMES = {
    "strategy": "a strategy's name",
    "topic": "a topic",
    "client_id": "a client id",
    "client_addr": "a client's address",
    "broker_name": "a broker's name",
    "zone_name": "a zone's name",
    "client_version": "a client's version",
}
#: The fields that have contents themselves.
_PARTS = ("connections", "brokers", "offsets", "queues")


def _check_names(names: Iterable[tuple[str, str | None]], bounds: Bounds) -> None:
    """Raises BoundError for the first name that is too long, by what it names."""
    for what, name in names:
        if name is not None and len(name) > bounds.name_length:
            problem = beyond("name_length", bounds.name_length, f"characters in {what}", len(name))
            raise BoundError(f"{problem}: '{name[:60]}...'")


def _check_content(content: Content, size: int, bounds: Bounds) -> None:
    """Raises BoundError where a content of a body of ``size`` characters exceeds a bound.

    >>> from .statement import RouteEntry
    >>> broker = RouteEntry("b", (0,), 6, 100_000, 4, None)
    >>> _check_content(Route((broker,) * 100), 15_000, Bounds())
    ... # doctest: +ELLIPSIS
    Traceback (most recent call last):
    jobs.dumps.values.BoundError: expected at most 100,000 queues of a topic (bounds.top...
    """
    for bound, what, came in _sizes(content):
        if came > (most := getattr(bounds, bound)):
            raise BoundError(beyond(bound, most, what, came))
    if size > bounds.name_length:  # a short body has no long name
        _check_names(_names(content), bounds)


def _sizes(content: Content) -> Iterator[tuple[str, str, int]]:
    """The bounded sizes of a content: the bound, what is counted, and the number."""
    if isinstance(content, Connections):
        yield "group_members", "connections in a broker's list of a group", len(content.connections)
    topics = getattr(content, "subscriptions", None) or ()
    yield "group_topics", "topics that a group subscribes to", len(topics)
    if isinstance(content, Route):
        yield "route_brokers", "brokers in a topic's route", len(content.brokers)
        # Queues that are written and not read count too.
        queues = (max(entry.read_queue_nums, entry.write_queue_nums) for entry in content.brokers)
        yield "topic_queues", "queues of a topic", sum(queues)


def _names(content: Any) -> Iterator[tuple[str, str | None]]:
    for field, value in zip(content._fields, content, strict=True):
        if field in _NAMES:
            yield _NAMES[field], value
        elif field == "subscriptions":
            yield from (("a topic", topic) for topic, _, _ in value or ())
        elif field == "broker_addrs":
            yield from (("a broker's address", address) for address in value or ())
        elif field == "queues" and isinstance(content, LogLine):
            yield from (("a name in a queue", name) for queue in value for name in queue[:2])
        elif field in _PARTS:
            for part in value or ():
                yield from _names(part)

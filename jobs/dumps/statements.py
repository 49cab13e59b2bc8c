"""lines -> statements: each line of a dump read once, or the reason why it was not.

A line is an envelope, which the collector writes, and a body, the text that a server or a client
sent. The envelope is JSON. Of its fields those that the kind must have are checked; others may be
missing, and count as missing where they are not what they should be.
"""

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from rebalance_core.errors import nearest

from ..config.bounds import Bounds
from ..declared.instants import SECOND, Instant, in_calendar, to_instant
from ..schemas import LIST_REFUSED
from .cache import Cache
from .parsing import parse_json
from .repeated import Timeless, without_times
from .senders import MOST_SENDERS, OTHERS, LineSender, sender_of
from .statement import CONSUMER_CONNECTION, KINDS, Content, LineSource, Statement
from .times import PlausibleTimes, iso_of
from .typed import LINES, LineKind, ParsedBody, read_body
from .values import BoundError, LineError, Value, as_text, expected, integer_in, is_java_int
from .within import check_content, check_names

_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
    r"(?:Z|[+-](?:(?:0[0-9]|1[0-7]):?[0-5][0-9]|18:?00))"
)
#: Characters that count as blank in a line that is otherwise empty.
_BLANKS = " \t\n\x0b\f\r"
_BOMS_OF_UTF16 = (BOM_UTF16_LE, BOM_UTF16_BE)

_TIMES = ("collected_at", "snapshot_time")
_NUMBERS = ("broker_id", "error_code")


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
        """The statements of the line."""
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
        timeless = without_times(line)
        found = None if timeless is None else self._again(timeless, order)
        return self._anew(line, timeless, order) if found is None else found

    def _again(self, line: Timeless, order: int) -> list[Statement] | RefusedLine | None:
        """The statements of a line that came before with other times; None where none did."""
        meaning = self._meanings.get(line.rest)
        if meaning is None:
            return None
        collected_at, snapshot_time = _instant_of(line.collected_at), _instant(line.snapshot_time)
        if collected_at is None or (snapshot_time is None and line.snapshot_time is not None):
            return None
        times = snapshot_time, collected_at
        if self._impossible(meaning.kind, times) is not None:
            return None
        meaning.understood[0] += 1
        return meaning.at(times, order)

    def _anew(
        self, line: bytes, timeless: Timeless | None, order: int
    ) -> list[Statement] | RefusedLine:
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
        meaning.understood[0] += 1
        comes_again = LINES[meaning.kind].comes_again
        if comes_again and timeless is not None and timeless.has_its_times(envelope):
            self._meanings.remember(timeless.rest, meaning, len(timeless.rest))
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
                of_whom = f" of '{subject}'" if isinstance(error, BoundError) else ""
                raise _RefusedBodyError(f"body{of_whom}: {error}", times, who) from error
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
        if name not in KINDS:
            contents = tuple(each for each in contents if each[1] is not None)
        of_subjects = [(subject or group or "", content) for group, content in contents]
        understood = self._tally((name, who), envelope)
        return _Meaning(name, cluster, source, tuple(of_subjects), understood), times

    def _tally(self, key: tuple[str, _Who], envelope: dict[str, Any]) -> list[int]:
        """The number of lines of the sender that were understood; ``key``: it and more."""
        tally = self._tallies.get(key)
        if tally is None:
            sender = sender_of(envelope)
            if len(self.understood) >= MOST_SENDERS and sender not in self.understood:
                sender = OTHERS
            tally = self.understood.setdefault(sender, [0])
            self._tallies.remember(key, tally, 0)
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
            check_names([("a consumer group", group)], self._bounds)
            check_content(content, len(body), self._bounds)
        if not LINES[kind].comes_again:
            return read
        # A broker prints its set in another order each time, and a subscription's version changes
        # at every rebalance.
        contents = tuple((group, self._same(it, len(body))) for group, it in read.contents)
        return read._replace(contents=contents)

    def _same(self, value: Value, size: int | None = None) -> Value:
        """The equal value of its type that came before, else this one; of about so many bytes."""
        key = (type(value), value)
        same: Value | None = self._values.get(key)
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


def _fields(kind: LineKind, envelope: dict[str, Any], bounds: Bounds) -> dict[str, Any]:
    """The fields of an envelope, each None where it is not what it should be.

    Raises LineError: for one that is missing, an error code that is none, a name that is too long.
    """
    fields = {name: _value(name, envelope.get(name)) for name in kind.fields}
    for name in ("cluster", "collected_at", *kind.required):
        if fields[name] in (None, ""):
            raise LineError(expected(f"{name} to be {_demand(name)}", as_text(envelope.get(name))))
    check_names(((name, it) for name, it in fields.items() if isinstance(it, str)), bounds)
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


def _demand(name: str) -> str:
    if name in _NUMBERS:
        return "an integer"
    return "a time as ISO 8601 with zone" if name in _TIMES else "a text that is not empty"


def _value(name: str, raw: Any) -> Any:
    """A field's value; None where it is not what the field should be."""
    if name in _TIMES:
        return _instant(raw)
    if name not in _NUMBERS:
        return as_text(raw)
    # An integer of at most 18 digits, or the text of one.
    number = integer_in(as_text(raw))
    is_code = number is not None and is_java_int(number)
    return number if is_code or name != "error_code" else None


def _instant(raw: Any) -> int | None:
    """A time as ISO 8601 in microseconds; one without a zone could be any."""
    return _instant_of(raw) if isinstance(raw, str) else None


@lru_cache(maxsize=10_000)  # a round's time comes with each of its lines
def _instant_of(text: str) -> int | None:
    if _TIME.fullmatch(text) is None:
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

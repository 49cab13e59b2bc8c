"""Counts of all lines, and who sent them: all that the driver knows of a dump.

A refused line has a sender, too: one whose time has no zone still names its cluster, its kind, its
broker and its group. So what was refused is counted beside what was understood of the same sender.

A clock that is off by years is found out: one line with a time of another age would become a
snapshot, a date of the reports, and the end of the window. So a dump's lines are compared with each
other, by the day of ``collected_at``. Lines of client logs are compared among themselves, for logs
are gathered at another time. The clock of this machine plays no part: the same dumps give the same
tables on every day.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from sys import intern
from typing import Any, NamedTuple, TypeAlias, TypeVar

from rebalance_core.texts import Text

from ..config.bounds import Bounds
from ..declared.instants import SECOND, Instant, to_datetime
from . import statement
from .typed import LINES
from .values import as_text, integer_in

_Key = TypeVar("_Key")
_Inner = TypeVar("_Inner")
_Value = TypeVar("_Value")

BROKER, NAMESERVER, CLIENT, PROCESS = "broker", "nameserver", "client", "process"
GROUP, TOPIC = "consumer_group", "topic"
#: The fields that name the client, or the process that writes a log, and the server.
_CLIENTS = {"client_id": CLIENT, "client_addr": CLIENT, "process": PROCESS}
_SERVERS = {"namesrv_addr": NAMESERVER, "broker_name": BROKER, "broker_addr": BROKER}
_SUBJECTS = {GROUP: GROUP, TOPIC: TOPIC}
#: The characters of a name by which a sender is known. A longer one is a stranger's.
_LONGEST_NAME = 200
#: The senders of a slice that are counted each by itself, for strangers choose their names. 5,000
#: groups on 40 brokers have fewer.
MOST_SENDERS = 1_000_000
#: And of them those of refused lines, each with its reason.
MOST_REFUSED = 10_000

#: BROKER or the like, and its name; none: it cannot be read, or the kind has none.
Named: TypeAlias = tuple[()] | tuple[str, str]


class LineSender(NamedTuple):
    """The sender of a line; the texts are empty where they cannot be read.

    ``client``: who reports of itself, through the ``server``, or the process that writes a log.
    ``subject``: the group or topic that the envelope names; where the body does, there is none.
    """

    cluster: str
    kind: str = ""
    server: Named = ()
    client: Named = ()
    subject: Named = ()
    #: The error that it gave in place of a list, or of what is in ``ERRORS``.
    error: str = ""


#: The kinds whose errors no rule of time knows: for lists, routes and running infos there is one.
ERRORS = frozenset(
    {
        *(statement.CLUSTER_INFO, statement.CONSUMER_TOPICS, statement.SUBSCRIPTION_GROUP),
        *(statement.CONSUME_STATS, statement.MESSAGE_REQUEST_MODE, statement.TOPIC_STATS),
    }
)
#: Errors that are answers: no such topic, nobody of the group, a request that brokers of this
#: version do not have.
_EXPECTED = {17, 206, 3}
#: The code of a collector for a server that it did not reach.
_NOT_REACHED = -2

#: All that have no place among the others.
OTHERS = LineSender("")


def sender_of(envelope: Mapping[str, Any]) -> LineSender:
    """The sender of a line of whatever kind.

    >>> sender_of({"cluster": "C", "kind": "consume_stats", "broker_name": "b", "broker_id": 0})[:3]
    ('C', 'consume_stats', ('broker', 'b/0'))
    """
    kind = envelope.get("kind")
    name = kind if isinstance(kind, str) and kind in LINES else ""
    server, client, subject = (_named(fields, envelope) for fields in _naming_fields(name))
    if server and (broker_id := envelope.get("broker_id")) is not None and server[0] == BROKER:
        server = BROKER, f"{server[1]}/{_name(broker_id)}"
    error = _error_in(name, envelope) if "error_code" in envelope else ""
    return LineSender(_name(envelope.get("cluster")), name, server, client, subject, error)


def _error_in(kind: str, envelope: Mapping[str, Any]) -> str:
    code = integer_in(as_text(envelope.get("error_code")))
    if not code or code in _EXPECTED:
        return ""
    # Whoever cannot be reached says nothing of this kind alone; of nameservers no other rule knows.
    is_error = kind in ERRORS and (code != _NOT_REACHED or kind == statement.CLUSTER_INFO)
    is_error = is_error or kind == statement.CONSUMER_CONNECTION
    return f"error {code}: {_name(envelope.get('error_message'))}" * is_error


@lru_cache
def _naming_fields(kind: str) -> list[dict[str, str]]:
    """The fields that may name server, client and subject of a kind, the best one first."""
    every = _SERVERS, _CLIENTS, _SUBJECTS
    if not kind:
        return [*every]
    names = {*LINES[kind].source, LINES[kind].subject}
    return [{name: role for name, role in fields.items() if name in names} for fields in every]


def _named(fields: Mapping[str, str], envelope: Mapping[str, Any]) -> Named:
    given = ((role, value) for field, role in fields.items() if (value := envelope.get(field)))
    return next(((role, _name(value)) for role, value in given), ())


def _name(value: Any) -> str:
    text = value if isinstance(value, str) else as_text(value) or ""
    return text[:_LONGEST_NAME]


# ------------------------------------------------------------------ counts

#: The most things left out that are counted each by itself, and the word for the others: there are
#: some ten.
_MOST_LEFT_OUT, _OTHERS_LEFT_OUT = 100, "other things"


@dataclass
class RefusedLines:
    """The refused lines of a sender: how many, and the reason of the first.

    ``polls``: how many of them are polls all the same (``RefusedLine.polls``).
    """

    lines: int
    polls: int
    reason: str


@dataclass
class Damage:
    """Lines without a kind and their bytes, with those that are NUL; and apart from these the lines
    that are longer than the bounds allow, and their bytes.
    """

    lines: int = 0
    bytes: int = 0
    nul_bytes: int = 0
    long_lines: int = 0
    long_bytes: int = 0

    def add(self, other: "Damage") -> None:
        """Adds that of another part of the file."""
        for name, number in vars(other).items():
            setattr(self, name, getattr(self, name) + number)


@dataclass
class Counts:
    """Counts of lines; ``lines`` and ``bytes`` (of text) by slice.

    ``refused``, ``refused_bytes``: of the lines that were not understood. ``kinds``: of the lines
    that have statements, and ``refused_kinds`` of those that were refused, how many there are of
    each kind. ``refused_by``: by slice those of each sender, but for damage and for what is of
    another time than most. ``answers``: the lines of each server, by kind and error, of lists and
    of ``ERRORS``. ``left_out``: by cluster and what it is the number that a collector left
    out in each round. ``clusters``: by cluster and broker name those in which a nameserver has the
    name, in each round in which they are several. ``damage``: by slice. ``endings``: by slice why
    its file lacks lines.
    ``days``: the statements by whether they are log lines, by day of ``collected_at``, and cluster.
    ``ahead``: by log by how much its printed times, taken for UTC, are at most ahead of
    ``collected_at``. ``mapped``: by cluster and static topic where its logical queues lie.
    ``configured``: the groups of which masters have a configuration; it grows with the changes.
    """

    lines: Counter[int] = field(default_factory=Counter)
    bytes: Counter[int] = field(default_factory=Counter)
    refused: int = 0
    refused_bytes: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    refused_kinds: Counter[str] = field(default_factory=Counter)
    refused_by: dict[int, dict[LineSender, RefusedLines]] = field(default_factory=dict)
    answers: Counter[LineSender] = field(default_factory=Counter)
    left_out: dict[tuple[str, str], dict[Instant, int]] = field(default_factory=dict)
    clusters: dict[tuple[str, str], dict[Instant, set[str]]] = field(default_factory=dict)
    damage: dict[int, Damage] = field(default_factory=dict)
    endings: dict[int, Text] = field(default_factory=dict)
    days: Counter[tuple[bool, int, str]] = field(default_factory=Counter)
    ahead: dict[statement.Log, Instant] = field(default_factory=dict)
    mapped: dict[tuple[str, str], statement.FirstMapped] = field(default_factory=dict)
    configured: statement.Configured = field(default_factory=dict)

    @classmethod
    def of(cls, parts: "Iterable[Counts]") -> "Counts":
        """The counts of all slices."""
        whole = cls()
        for part in parts:
            whole.refused += part.refused
            whole.refused_bytes += part.refused_bytes
            for name in ("lines", "bytes", "kinds", "refused_kinds", "answers", "endings", "days"):
                getattr(whole, name).update(getattr(part, name))
            for number, sender, refused in _entries(part.refused_by):
                whole.add_refused(number, sender, refused)
            for key, round_, left_out in _entries(part.left_out):
                whole.add_left_out(key, round_, left_out)
            for cluster_and_name, round_, clusters in _entries(part.clusters):
                whole.add_clusters(cluster_and_name, round_, clusters)
            for topic, logical, round_ in _entries(part.mapped):
                whole.add_mapped(topic, logical, round_)
            for number, damage in part.damage.items():
                whole.damage.setdefault(number, Damage()).add(damage)
            for log, by in part.ahead.items():
                whole.add_ahead(log, by)
            for groups, answers in part.configured.items():
                whole.add_configured(groups, answers)
        return whole

    def add_ahead(self, log: statement.Log, by: Instant) -> None:
        """Adds by how much a printed time of a log is ahead."""
        self.ahead[log] = max(self.ahead.get(log, by), by)

    def add_mapped(
        self, topic: tuple[str, str], logical: tuple[statement.LogicalQueue, int], round_: Instant
    ) -> None:
        """Adds where a logical queue lies; the first round of each mapping counts."""
        first = self.mapped.setdefault(topic, {})
        first[logical] = min(round_, first.get(logical, round_))

    def add_configured(
        self,
        groups: tuple[str, statement.GroupNames],
        answers: Mapping[tuple[str, Instant], Instant],
    ) -> None:
        """Adds answers of masters of a cluster that have a configuration of just these groups."""
        if groups not in self.configured:
            # Of two lists that differ nearly all names are the same.
            groups = groups[0], tuple(map(intern, groups[1]))
        self.configured.setdefault(groups, {}).update(answers)

    def add_refused(self, number: int, sender: LineSender, refused: RefusedLines) -> None:
        """Adds what was refused of a sender in a slice, or in some of its rows."""
        there = self.refused_by.setdefault(number, {})
        refused_there = there.setdefault(sender, RefusedLines(0, 0, refused.reason))
        refused_there.lines += refused.lines
        refused_there.polls += refused.polls
        refused_there.reason = min(refused_there.reason, refused.reason)

    def add_left_out(self, key: tuple[str, str], round_: Instant, number: int) -> None:
        """Adds what a collector left out; of two collectors in a round the larger number counts."""
        if key not in self.left_out and len(self.left_out) >= _MOST_LEFT_OUT:
            key = key[0], _OTHERS_LEFT_OUT
        number_by_round = self.left_out.setdefault(key, {})
        number_by_round[round_] = max(number, number_by_round.get(round_, 0))

    def add_clusters(
        self, cluster_and_name: tuple[str, str], round_: Instant, clusters: Iterable[str]
    ) -> None:
        """Adds the clusters in which a nameserver has a broker name in a round."""
        self.clusters.setdefault(cluster_and_name, {}).setdefault(round_, set()).update(clusters)


def _entries(
    nested: Mapping[_Key, Mapping[_Inner, _Value]],
) -> Iterator[tuple[_Key, _Inner, _Value]]:
    return ((key, inner, value) for key, entry in nested.items() for inner, value in entry.items())


# ------------------------------------------------------------------ days

DAY: Instant = 86_400 * SECOND


class Days(NamedTuple):
    """The days of most lines (since 1970), and how many days around them are plausible."""

    first_seen: int
    last_seen: int
    around: int


class ImplausibleLines(NamedTuple):
    """Statements that are not plausible: how many, and of which days."""

    lines: int
    days: str


@dataclass(frozen=True)
class PlausibleTimes:
    """The plausible days by whether they are those of log lines; none: nothing to compare.

    >>> of_dump = PlausibleTimes.of({(False, 20_778, "C"): 40, (False, 47_482, "D"): 2}, Bounds())
    >>> of_dump.problem("topic_route", 47_482 * DAY)
    ... # doctest: +NORMALIZE_WHITESPACE
    'expected collected_at within 366 days (bounds.dump_days) of most lines of the dumps, which are
     of 2026-11-21, came 2100-01-01T00:00:00Z'
    """

    days: Mapping[bool, Days]

    @classmethod
    def of(cls, counts: Mapping[tuple[bool, int, str], int], bounds: Bounds) -> "PlausibleTimes":
        """Finds the plausible days from the number of statements by day, for log lines by
        themselves.
        """
        lines: dict[bool, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        for (is_log, day, _), number in counts.items():
            lines[is_log][day] += number
        return cls({is_log: _days(by_day, bounds.dump_days) for is_log, by_day in lines.items()})

    def problem(self, kind: str, collected_at: Instant) -> str | None:
        """The reason why a line of a kind cannot be of that time; None where it can."""
        days = self.days.get(kind == statement.CLIENT_LOG)
        if days is None or _holds(days, day_of(collected_at)):
            return None
        most = _dates(days.first_seen, days.last_seen)
        return (
            f"expected collected_at within {days.around:,} days (bounds.dump_days) of most lines "
            f"of the dumps, which are of {most}, came {iso_of(collected_at)}"
        )

    def apart(self, counts: Mapping[tuple[bool, int, str], int]) -> "dict[str, ImplausibleLines]":
        """The statements of each cluster whose times are not plausible.

        >>> counts = {(False, 20_778, "C"): 40, (False, 47_482, "D"): 2, (False, 47_483, "D"): 1}
        >>> PlausibleTimes.of(counts, Bounds()).apart(counts)
        {'D': ImplausibleLines(lines=3, days='2100-01-01 to 2100-01-02')}
        """
        out: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        for (is_log, day, cluster), number in counts.items():
            if not _holds(self.days.get(is_log), day):
                out[cluster][day] += number
        return {
            cluster: ImplausibleLines(sum(days.values()), _dates(min(days), max(days)))
            for cluster, days in sorted(out.items())
        }


def day_of(time: Instant) -> int:
    """The day of a time, as days since 1970.

    >>> day_of(0), day_of(-1)
    (0, -1)
    """
    return time // DAY


def iso_of(time: Instant) -> str:
    """A time as ISO 8601 in UTC."""
    return to_datetime(time).isoformat().replace("+00:00", "Z")


def _dates(first_seen: int, last_seen: int) -> str:
    dates = (to_datetime(day * DAY).date().isoformat() for day in (first_seen, last_seen))
    return " to ".join(dict.fromkeys(dates))


def _holds(days: Days | None, day: int) -> bool:
    return days is None or days.first_seen - days.around <= day <= days.last_seen + days.around


def _days(counts: Mapping[int, int], most_days: int) -> Days:
    """The days around the middle third of the lines, which fewer than a third cannot move.

    ``most_days``, or twice the length of the middle third, before and after it: dumps that go over
    years stay whole. Neither of two lines is the odd one.

    >>> _days({20_000: 2, 0: 1}, 366)
    Days(first_seen=20000, last_seen=20000, around=366)
    >>> _holds(_days({20_000: 1, 0: 1}, 366), 0)
    True
    """
    days = sorted(counts)
    passed = list(accumulate(counts[day] for day in days))
    last = passed[-1] - 1
    low, high = sorted(days[bisect_right(passed, at)] for at in (-(-last // 3), 2 * last // 3))
    return Days(low, high, around=max(most_days, 2 * (high - low)))

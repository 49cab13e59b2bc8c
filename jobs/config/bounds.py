"""Bounds on the input, so that no line, route or archive costs the night.

Anybody who can write into a topic's route or register a client decides how large they are. Beyond a
bound one line is left out, by name and with the bound's name, and the rest is audited. The bounds
are the section ``[bounds]`` of the settings. Workers need them too: nothing but plain values here.
"""

from dataclasses import dataclass, field
from typing import Any

from rebalance_core.strategy_rules import MOST_TOPIC_QUEUES


def _bound(default: int, ge: int = 1, le: int | None = None) -> Any:
    """A bound, and the limits that a setting of it has: pydantic takes the metadata for them."""
    return field(default=default, metadata={"strict": True, "ge": ge, "le": le})


@dataclass(frozen=True)
class Bounds:
    """Limits on what one line of a dump, one route or one archive may ask for.

    Beyond a bound the line goes to the quarantine, or the topic is not audited; the reason names
    the bound, and all else is audited.
    """

    #: Bytes of a line. A connection takes some 150 bytes of a broker's list, a queue 150 of an
    #: offset table.
    line_bytes: int = _bound(64 << 20, ge=1 << 10, le=1 << 30)
    #: Characters of a cluster, group, topic, client id, broker name or address.
    name_length: int = _bound(4_096)
    #: Queues of a topic over all its brokers, read or only written, in any snapshot tables.
    topic_queues: int = _bound(MOST_TOPIC_QUEUES, le=10_000_000)
    #: Brokers of a route.
    route_brokers: int = _bound(10_000)
    #: Connections in a broker's list of a group.
    group_members: int = _bound(200_000)
    #: Topics that a group, or a member, subscribes to: 20,000 take some 20 s of one core and 1 GiB.
    group_topics: int = _bound(50_000)
    #: Lines of a `.gz`, of which no more are read.
    archive_lines: int = _bound(100_000_000)
    #: Bytes of text for each byte of a `.gz`; a line counts as 100 at least. Lines that repeat
    #: themselves have up to some 140.
    archive_expansion: int = _bound(300)
    #: Lines of a file, or of 128 MB of a large one, in the quarantine; one row counts the others.
    quarantined_lines: int = _bound(10_000)
    #: Hours between `snapshot_time` and `collected_at` of a line: a round takes minutes.
    round_hours: int = _bound(24, le=100_000_000)
    #: Days between a line and most lines of the dumps (the middle third, by `collected_at`): beyond
    #: them its collector's clock was wrong. Dumps over years stay whole.
    dump_days: int = _bound(366, le=4_000_000)
    #: Days that a snapshot may be ahead of this machine's clock. Later ones are not audited, and no
    #: later date is published or counts as the last one, unless `--date` asks for it.
    future_days: int = _bound(1, ge=0, le=4_000_000)


#: The defaults, for what is read without settings.
DEFAULT_BOUNDS = Bounds()


def beyond(name: str, most: int, what: str, came: int) -> str:
    """The sentence on what was expected and came, with the setting.

    >>> beyond("topic_queues", 100_000, "queues of topic 'T'", 10_000_000)
    "expected at most 100,000 queues of topic 'T' (bounds.topic_queues), came 10,000,000"
    """
    return f"expected at most {most:,} {what} (bounds.{name}), came {came:,}"

"""What the page calls things: a title, a sentence and a page of its own for every kind."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Kind:
    """A kind of finding or fault, in words."""

    name: str
    title: str
    meaning: str

    @property
    def page(self) -> str:
        """The file name of the page on it: what it means, how to confirm it, how to repair it."""
        return f"{self.name.lower()}.md"


KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "ORPHANED",
            "Orphaned queue",
            "Nobody consumes the queue: its messages wait until somebody does.",
        ),
        Kind(
            "DUPLICATE",
            "Duplicate queue",
            "Several processes consume the queue: every message is handled more than once.",
        ),
        Kind(
            "STALLED",
            "Stalled queue",
            "Somebody owns the queue and does not move it, while other queues of the topic move.",
        ),
        Kind(
            "UNREADABLE",
            "Unreadable queue",
            "Producers write the queue and no consumer can read it: the read queue number is "
            "lower than the write queue number, or the broker may not be read.",
        ),
        Kind(
            "DUPLICATE_CLIENT_ID",
            "Several processes share one client id",
            "All of them compute the share of the first; the shares of the others have no owner.",
        ),
        Kind(
            "STALE_CHANNEL",
            "An old connection is still listed",
            "One process reconnected and its old connection holds a slot until the broker drops "
            "it, within about 130 s.",
        ),
        Kind(
            "GHOST_MEMBER",
            "A member is listed and gone",
            "A broker still lists a member long after its last heartbeat; nobody consumes its "
            "share.",
        ),
        Kind(
            "STRATEGY_MISMATCH",
            "Members allocate by different strategies",
            "Each computes another division of the queues, so that shares overlap and leave gaps.",
        ),
        Kind(
            "SUBSCRIPTION_MISMATCH",
            "A member does not subscribe to the topic",
            "The list of members is that of the group: it takes a slot of the topic and consumes "
            "nothing of it.",
        ),
        Kind(
            "MANUAL_ASSIGNMENT",
            "A member chooses its queues itself",
            "By assign() or as a pull consumer it takes a slot all the same, and nobody consumes "
            "that share.",
        ),
        Kind(
            "MIXED_MESSAGE_MODEL",
            "Broadcasting members in a clustering group",
            "They read every queue and take slots of the others.",
        ),
        Kind(
            "BROKER_VIEW_DIVERGENCE",
            "Brokers list different members",
            "A client asks a random broker at each rebalance, so that the shares change from one "
            "to the next.",
        ),
        Kind(
            "ROUTE_DIVERGENCE",
            "Nameservers give different routes",
            "Clients of different nameservers divide different lists of queues.",
        ),
        Kind(
            "ROOM_NOT_SERVED",
            "No member serves a broker's room",
            "The queues of a machine room that is in nobody's consumeridcs have no owner.",
        ),
        Kind(
            "CONFIG_OVERLAP",
            "Several CONFIG lists have the same queue",
            "All that list it consume it.",
        ),
        Kind("CONFIG_GAP", "A queue is in no CONFIG list", "Nobody consumes it."),
        Kind(
            "EXPRESSION_MISMATCH",
            "Members filter the topic differently",
            "Messages that an owner's filter drops are gone for the group: no orphan and no "
            "backlog shows it.",
        ),
        Kind(
            "ROUTE_CHANGED",
            "The readable queues changed",
            "For up to 50 s clients work from different lists; it passes by itself.",
        ),
        Kind(
            "FROZEN_PROCESS",
            "A process is frozen",
            "None of a client's queues moves while those of others do.",
        ),
        Kind(
            "GROUP_OFFLINE",
            "The group has no member",
            "No broker knows any member: nobody consumes the topic.",
        ),
        Kind(
            "UNEXPLAINED",
            "Unexplained",
            "None of the known faults, mended alone or together, clears the finding.",
        ),
    )
}


def kind_of(name: str) -> Kind:
    """The kind of a name; one that this version does not know is called by its name.

    >>> kind_of("A_LATER_ONE").title
    'A later one'
    """
    return KINDS.get(name) or Kind(name, name.replace("_", " ").capitalize(), "")


def count(number: int, singular: str, plural: str | None = None) -> str:
    """A number with its noun.

    >>> count(1, "queue"), count(1200, "queue"), count(2, "is", "are")
    ('1 queue', '1,200 queues', '2 are')
    """
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def list_of(parts: list[str]) -> str:
    """The parts as a person lists them.

    >>> list_of(["a"]), list_of(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def span(since: datetime, until: datetime) -> str:
    """From when until when; the date of the end only where it is another.

    >>> begin = datetime(2026, 11, 20, 2, 4, 7)
    >>> span(begin, begin.replace(hour=3)), span(begin, begin)
    ('2026-11-20 02:04:07 to 03:04:07', '2026-11-20 02:04:07')
    >>> span(begin, begin.replace(day=21))
    '2026-11-20 02:04:07 to 2026-11-21 02:04:07'
    """
    start = f"{since:%Y-%m-%d %H:%M:%S}"
    if since == until:
        return start
    return (
        f"{start} to {until:%H:%M:%S}"
        if since.date() == until.date()
        else (f"{start} to {until:%Y-%m-%d %H:%M:%S}")
    )

"""What an input may ask for at most, so that no line, route or archive costs the night.

Anybody who can write into a topic's route or register a client decides how large they are. Beyond a
bound one line is left out, by name and with the bound's name, and the rest is audited. The bounds
are the section ``[bounds]`` of the settings. Workers need them too: nothing but plain values here.
"""

from dataclasses import dataclass

from rebalance_core.strategy_rules import MOST_QUEUES


@dataclass(frozen=True)
class Bounds:
    """The bounds with their generous defaults; docs/all_settings.md has what each is for."""

    line_bytes: int = 64 << 20
    name_length: int = 4_096
    topic_queues: int = MOST_QUEUES
    route_brokers: int = 10_000
    group_members: int = 200_000
    group_topics: int = 50_000
    archive_lines: int = 100_000_000
    archive_expansion: int = 300
    quarantined_lines: int = 10_000
    round_hours: int = 24
    dump_days: int = 366
    future_days: int = 1


#: The defaults, for what is read without settings.
DEFAULT_BOUNDS = Bounds()


def beyond(name: str, most: int, what: str, came: int) -> str:
    """What was expected and what came, with the setting that demands it.

    >>> beyond("topic_queues", 100_000, "queues of topic 'T'", 10_000_000)
    "expected at most 100,000 queues of topic 'T' (bounds.topic_queues), came 10,000,000"
    """
    return f"expected at most {most:,} {what} (bounds.{name}), came {came:,}"

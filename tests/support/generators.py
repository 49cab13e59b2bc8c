"""Hypothesis generators of queues, client ids and machine rooms."""

from __future__ import annotations

from hypothesis import strategies as st

from rebalance_core import MessageQueue

ROOMS = ("room1", "room2", "room10", "\uff21", "\U0001f600")

# Few, and close to each other, so that ties, digits against "@" and Java's order all come up.
topics = st.sampled_from(["T", "%RETRY%G", "\u4e3b\u9898", "\uff21", "\U0001f600"])
broker_names = st.one_of(
    st.integers(0, 12).map("broker-{}".format),
    st.builds("{}@b{}".format, st.sampled_from(ROOMS), st.integers(0, 3)),
    st.sampled_from(["\uff21", "\U0001f600", "\U0001f600\uff21", "@", "a@"]),
)
client_ids = st.one_of(
    st.builds("10.0.0.{}@{}".format, st.integers(1, 12), st.sampled_from(["1", "1#77", "DEFAULT"])),
    st.builds("{}@1".format, st.sampled_from(["\uff21", "\U0001f600", "\ue000", "\U0001f600b"])),
    st.text(min_size=1, max_size=5),
)


def message_queues(min_size: int = 1, max_size: int = 40) -> st.SearchStrategy[list[MessageQueue]]:
    """Distinct queues in any order, of one or more topics."""
    queue = st.builds(MessageQueue, topics, broker_names, st.integers(0, 12))
    return st.lists(queue, min_size=min_size, max_size=max_size, unique=True)


def distinct_client_ids(min_size: int = 1, max_size: int = 12) -> st.SearchStrategy[list[str]]:
    """Client ids of which none is repeated, in any order."""
    return st.lists(client_ids, min_size=min_size, max_size=max_size, unique=True)


@st.composite
def stacked_client_ids(draw: st.DrawFn, max_size: int = 8) -> list[str]:
    """Client ids of which at least one is repeated, in any order."""
    distinct = draw(distinct_client_ids(max_size=max_size))
    copies = draw(st.lists(st.sampled_from(distinct), min_size=1, max_size=4))
    return draw(st.permutations(distinct + copies))


def rooms_of(names: list[str]) -> st.SearchStrategy[dict[str, str]]:
    """A room for each of the names."""
    return st.fixed_dictionaries({name: st.sampled_from(ROOMS) for name in names})

"""Facts that the two tables of the contract lack: what cannot be seen without them is said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from jobs.api import audit
from jobs.schemas import HEARTBEATS, TOPIC_ROUTES
from jobs.verdict.gaps import gaps_of
from tests.support.snapshots import Row, at, heartbeat_row, route_row, table

pytestmark = pytest.mark.long

BROKERS = ("broker-a", "broker-b")
ROUNDS = range(12)
#: Of the number of a member, of a round, and a broker's name.
Address = Callable[[int, int, str], str | None]


def gaps_in(lists: list[Row], routes: list[Row]) -> tuple[str, list[str]]:
    """The state of a run of these rows, and its gaps."""
    tables = {"heartbeats": table(HEARTBEATS, lists), "topic_routes": table(TOPIC_ROUTES, routes)}
    summary = audit(tables).summary
    return summary["verdict"]["state"], [str(gap.text) for gap in gaps_of(summary)]


def its_own(member: int, _: int, broker: str) -> str:
    return f"h{member}:4000{BROKERS.index(broker)}"


def audited(
    client_ids: str = "abc",
    address: Address = its_own,
    at_ids: Callable[[int], Sequence[int]] = lambda _: [0],
    broker_ids: list[int] | None = None,
) -> Any:
    """What is said of a group whose members two brokers list."""
    lists = [
        heartbeat_row(
            client_id=client_id,
            client_addr=address(member, number, broker),
            snapshot_time=at(60 * number),
            broker_name=broker,
            broker_id=broker_id,
        )
        for number in ROUNDS
        for broker in BROKERS
        for member, client_id in enumerate(client_ids)
        for broker_id in at_ids(member)
    ]
    ids = [0] if broker_ids is None else broker_ids
    routes = [
        route_row(snapshot_time=at(60 * number), broker_name=broker, broker_ids=ids)
        for number in ROUNDS
        for broker in BROKERS
    ]
    return gaps_in(lists, routes)


@pytest.mark.parametrize(
    "address",
    [
        lambda *_: None,
        lambda member, *_: None if member % 2 else f"h{member}:1",
        lambda member, number, _: None if (member + number) % 2 else f"h{member}:1",
        lambda *_: "h:1",
    ],
    ids=["no address", "half of the members", "half of the rows", "all the same one"],
)
def test_members_whose_addresses_tell_no_connections_apart(address: Address) -> None:
    state, (gap,) = audited("aab", address)
    assert state != "WELL"
    assert gap.startswith("cluster DefaultCluster: members of G have no address of their own")


def test_a_broker_that_lists_members_and_is_in_no_route() -> None:
    state, gaps = audited("abcd", at_ids=lambda member: [10**9 if member % 2 else 0])
    assert (state, len(gaps)) == ("INCOMPLETE", 2)
    assert gaps[0].startswith(
        "broker broker-a/1000000000 of cluster DefaultCluster lists members, and no route has"
    )


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"client_ids": "a", "address": lambda *_: "h:1"},
        {"at_ids": lambda _: [0, 1], "broker_ids": [0, 1]},
    ],
    ids=["whole", "one member", "a slave of the route"],
)
def test_what_lacks_nothing_is_well(given: Any) -> None:
    assert audited(**given) == ("WELL", [])


def test_a_member_that_flaps_and_has_an_address_at_times_only() -> None:
    lists = [
        heartbeat_row(
            client_id=f"10.0.0.{member}@1",
            client_addr=None if number % 2 else f"h{member}:{number // 6}",
            snapshot_time=at(60 * number),
        )
        for number in range(60)
        for member in range(4)
        if member < 3 or (number // 3) % 2
    ]
    routes = [route_row(snapshot_time=at(60 * number)) for number in range(60)]
    tables = {"heartbeats": table(HEARTBEATS, lists), "topic_routes": table(TOPIC_ROUTES, routes)}
    (fault,) = audit(tables)["group_faults"].to_pylist()
    assert fault["fault"] == "FLAPPING"


def two_clusters(*names: str) -> tuple[str, list[str]]:
    """The gaps of clusters that are well by themselves."""
    rounds = [{"cluster": name, "snapshot_time": at(60 * n)} for name in names for n in ROUNDS]
    lists = [
        heartbeat_row(client_id=client_id, client_addr=f"{client_id}:1", **of_round)
        for of_round in rounds
        for client_id in "ab"
    ]
    return gaps_in(lists, [route_row(**of_round) for of_round in rounds])


@pytest.mark.parametrize(
    ("one", "other", "shown"),
    [
        ("prod", "prod ", "prod␣"),
        ("prod", " prod", "␣prod"),
        ("pr od", "pr  od", "pr␣␣od"),
        ("prod", "prod\u3000", "prod␣"),
    ],
)
def test_clusters_whose_names_differ_by_blanks_are_one_that_was_cut(
    one: str, other: str, shown: str
) -> None:
    state, (gap,) = two_clusters(one, other)
    assert state == "INCOMPLETE"
    assert f'"{shown}"' in gap


def test_clusters_with_names_of_their_own_are_well() -> None:
    assert two_clusters("prod", "prod-2", "prod 2 11", "prod 21 1") == ("WELL", [])

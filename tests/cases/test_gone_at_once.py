"""All members of a group are gone: what the dumps show beside it."""

from __future__ import annotations

import pytest

from tests.cases.test_small_dumps import (
    MEMBERS,
    MINUTES,
    OFFLINE,
    TIMED_OUT,
    members,
    route,
)


def polled(listed, silent=()):
    """By (minute, broker name) whether a broker lists the members; ``silent``: when it is away."""
    for minute in MINUTES:
        yield route(60 * minute, "broker-a", "broker-b")
        for number, name in enumerate(("broker-a", "broker-b"), start=1):
            answer = MEMBERS if listed(minute, name) else OFFLINE
            is_away = (minute, name) in silent
            yield members(60 * minute + number, name, TIMED_OUT if is_away else answer)


def offline(found):
    """The last fault GROUP_OFFLINE."""
    every = [each for each in found["group_faults"] if each["fault"] == "GROUP_OFFLINE"]
    return max(every, key=lambda each: each["last_seen"])


BOTH = {(5, "broker-a"), (5, "broker-b")}


def test_members_that_vanished_as_their_brokers_restarted_did_not_come_back(audit):
    fault = offline(audit(polled(lambda minute, _: minute < 5, BOTH)))
    assert fault["evidence"].endswith(
        "; the members were listed until 10:04:00 UTC; broker-a did not answer at 10:05:00 UTC; "
        "broker-b did not answer at 10:05:00 UTC"
    )
    assert fault["remedy"].startswith("the members did not come back to broker-a and broker-b")


@pytest.mark.parametrize("silent", [(), {(5, "broker-a")}])
def test_members_that_left_a_broker_that_did_not_restart_were_stopped(audit, silent):
    fault = offline(audit(polled(lambda minute, _: minute < 5, silent)))
    assert "did not answer" not in fault["evidence"]
    assert fault["remedy"].startswith("start the group's consumers")


def test_members_that_were_dropped_and_came_back_send_heartbeats_too_rarely(audit):
    fault = offline(audit(polled(lambda minute, _: minute < 10 and minute % 3 != 2)))
    assert "the same members were dropped and came back 3 times" in fault["evidence"]
    assert fault["remedy"].startswith("check how often the members send heartbeats")


def test_other_members_that_come_are_deploys(audit):
    """Each time others come, as pods that are all replaced at once."""

    def lines():
        for each in polled(lambda minute, _: minute < 10 and minute % 3 != 2):
            if each["kind"] == "consumer_connection" and "body" in each:
                pods = int(each["snapshot_time"][14:16]) // 3
                each["body"] = each["body"].replace("10.0.0.", f"10.0.{pods}.")
            yield each

    assert "came back" not in offline(audit(lines()))["evidence"]


@pytest.mark.parametrize(
    ("answer", "namesrv", "is_said"),
    [(MEMBERS, "ns:9876", True), (OFFLINE, "ns:9876", False), (MEMBERS, "other:9876", False)],
)
def test_members_in_the_other_cluster_of_the_nameserver_are_named(audit, answer, namesrv, is_said):
    """Here 8 queues have messages and no member; the group's 4 members know another cluster."""

    def lines():
        yield from polled(lambda minute, _: minute < 5)
        for minute in MINUTES:
            for each in (
                route(60 * minute, "broker-c") | {"namesrv_addr": namesrv},
                members(60 * minute + 4, "broker-c", answer),
            ):
                yield each | {"cluster": "D"}

    found = audit(lines())
    fault = max(
        (each for each in found["group_faults"] if each["cluster"] == "C"),
        key=lambda each: each["last_seen"],
    )
    said = (
        "no broker of this cluster lists a member, while cluster D has 4 members at 10:14:00 UTC",
        "if the group is to be in D alone, consume what waits here",
    )
    assert (fault["evidence"].endswith(said[0]), fault["remedy"].startswith(said[1])) == (
        is_said,
        is_said,
    )
    reasons = {row["cluster"]: row["reason"] or "" for row in found["group_health"]}
    assert (said[0] in reasons["C"]) == is_said
    assert "no broker of this cluster" not in reasons["D"]


def test_several_other_clusters_are_one_sentence(audit):
    def lines():
        yield from polled(lambda minute, _: minute < 5)
        for minute in MINUTES:
            for each in (
                route(60 * minute, "broker-c"),
                members(60 * minute + 4, "broker-c", MEMBERS),
            ):
                yield from (each | {"cluster": cluster} for cluster in "DE")

    assert offline(audit(lines()))["evidence"].endswith(
        "while cluster D has 4 members at 10:14:00 UTC and cluster E has 4 members at 10:14:00 UTC"
    )

"""All members of a group are gone: what the dumps show beside it."""

import pytest

from tests.cases.small_dumps import (
    MEMBERS,
    MINUTES,
    OFFLINE,
    TIMED_OUT,
    holds,
    instant,
    members,
    minute_of,
    rounds,
    route,
)


def polled(listed, silent=()):
    """By minute whether the brokers list the members; ``silent``: (minute, broker) that is away."""

    def answer(minute, name):
        if (minute, name) in silent:
            return TIMED_OUT
        return MEMBERS if listed(minute) else OFFLINE

    return rounds(answer)


def until_5(minute):
    return minute < 5


def comes_back(minute):
    return minute < 10 and minute % 3 != 2


def last_offline(faults):
    return max(
        (each for each in faults if each["fault"] == "GROUP_OFFLINE"),
        key=lambda each: each["last_seen"],
    )


def offline(found):
    return last_offline(found["group_faults"])


BOTH = {(5, "broker-a"), (5, "broker-b")}


def test_members_that_vanished_as_their_brokers_restarted_did_not_come_back(audit):
    fault = offline(audit(polled(until_5, BOTH)))
    assert fault["evidence"].endswith(
        "; the members were listed until 10:04:00 UTC; broker-a did not answer at 10:05:00 UTC; "
        "broker-b did not answer at 10:05:00 UTC"
    )
    assert fault["remedy"].startswith("the members did not come back to broker-a and broker-b")


@pytest.mark.parametrize("silent", [(), {(5, "broker-a")}])
def test_members_that_left_a_broker_that_did_not_restart_were_stopped(audit, silent):
    fault = offline(audit(polled(until_5, silent)))
    assert "did not answer" not in fault["evidence"]
    assert fault["remedy"].startswith("start the group's consumers")


def test_members_that_were_dropped_and_came_back_send_heartbeats_too_rarely(audit):
    fault = offline(audit(polled(comes_back)))
    assert "the same members were dropped and came back 3 times" in fault["evidence"]
    assert fault["remedy"].startswith("check how often the members send heartbeats")


def test_processes_that_restart_under_their_ids_send_heartbeats_often_enough(audit):
    """Their start times say so: a crash loop of fixed ids."""

    def lines():
        yield from polled(comes_back)
        for minute in filter(comes_back, MINUTES):
            started = round(instant(180 * (minute // 3)).timestamp() * 1000)
            yield holds(
                *(60 * minute + 5, MEMBERS[0], []), PROP_CONSUMER_START_TIMESTAMP=str(started)
            )

    fault = offline(audit(lines()))
    assert "came back" not in fault["evidence"]
    assert not fault["remedy"].startswith("check how often the members send heartbeats")


def test_other_members_that_come_are_deploys(audit):
    """Each time others come, as pods that are all replaced at once."""

    def lines():
        for each in polled(comes_back):
            if each["kind"] == "consumer_connection" and "body" in each:
                pods = minute_of(each) // 3
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
        yield from polled(until_5)
        for minute in MINUTES:
            yield route(60 * minute, "broker-c") | {"namesrv_addr": namesrv, "cluster": "D"}
            yield members(60 * minute + 4, "broker-c", answer) | {"cluster": "D"}

    found = audit(lines())
    fault = last_offline(each for each in found["group_faults"] if each["cluster"] == "C")
    said = "no broker of this cluster lists a member, while cluster D has 4 members at 10:14:00 UTC"
    assert fault["evidence"].endswith(said) == is_said
    to_do = "if the group is to be in D alone, consume what waits here"
    assert fault["remedy"].startswith(to_do) == is_said
    reasons = {row["cluster"]: row["reason"] or "" for row in found["group_health"]}
    assert (said in reasons["C"]) == is_said
    assert "no broker of this cluster" not in reasons["D"]


OF_TWO = "while cluster D has 4 members at 10:14:00 UTC and cluster E has 4 members at 10:14:00 UTC"


@pytest.mark.parametrize(
    ("clusters", "said"), [("DE", OF_TWO), ("DEFGHIJ", "UTC and 2 more clusters have members")]
)
def test_several_other_clusters_are_one_sentence(audit, clusters, said):
    def lines():
        yield from polled(until_5)
        for minute in MINUTES:
            for cluster in clusters:
                yield route(60 * minute, "broker-c") | {"cluster": cluster}
                yield members(60 * minute + 4, "broker-c", MEMBERS) | {"cluster": cluster}

    here = (each for each in audit(lines())["group_faults"] if each["cluster"] == "C")
    assert last_offline(here)["evidence"].endswith(said)

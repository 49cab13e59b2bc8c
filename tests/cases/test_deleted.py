"""A topic that a group subscribes to and that no nameserver knows."""

from __future__ import annotations

import pytest

from tests.cases.small_dumps import (
    BROKERS,
    MEMBERS,
    MINUTES,
    OFFLINE,
    asked,
    in_turn,
    members,
    of_broker,
    offsets,
    route,
)
from tests.cases.test_who_a_broker_is import ONE, every_second, registering


def only(found, name):
    (fault,) = (each for each in found["group_faults"] if each["fault"] == name)
    return fault


@pytest.mark.parametrize("routed", [range(3), ()])
def test_a_topic_that_was_deleted_is_not_written_wrongly(audit, routed):
    """Of T there is a route all the time, of GONE in these minutes."""

    def lines():
        for minute in MINUTES:
            yield from asked(minute, topics=("T", "GONE"))
            yield route(60 * minute, *(["broker-a"] if minute in routed else []), topic="GONE")

    fault = only(audit(lines()), "UNKNOWN_TOPIC")
    deleted = "it had a route until 10:02:00 UTC: it was deleted"
    assert fault["evidence"].endswith(deleted) == bool(routed)
    assert ("whether the topic's name is written" in fault["remedy"]) != bool(routed)


@pytest.mark.parametrize(
    ("brokers_left", "says"),
    [((), "its messages are gone"), (("broker-b",), "bring broker-a back into the route")],
)
def test_unread_messages_of_a_topic_are_gone_and_those_of_a_broker_not(audit, brokers_left, says):
    """Queue 0 of broker-a has stood at 9,000 of 10,000 when its topic, or its broker, leaves."""

    def lines():
        for minute in MINUTES:
            names = BROKERS if minute < 8 else brokers_left
            yield route(60 * minute, *names)
            for name in BROKERS:
                yield members(60 * minute + 1, name, MEMBERS)
                if name in names:
                    read = 10_000 + 60 * minute
                    stuck = {0: (read, 9_000)} if name == "broker-a" else {}
                    now = dict.fromkeys(range(4), (read, read)) | stuck
                    yield offsets(60 * minute + 5, name, now)

    fault = only(audit(lines()), "QUEUES_LEFT_ROUTE")
    assert fault["unread_messages"] == 10_420 - 9_000
    assert says in fault["remedy"]


def configs(minute, name, *groups):
    """The subscription groups of a broker."""
    table = {group: {"groupName": group, "consumeEnable": True} for group in groups}
    return of_broker("subscription_group", 60 * minute + 1, name, {"subscriptionGroupTable": table})


def group_of(listed, has, names=BROKERS, minutes=MINUTES, other="OTHER"):
    """1,000 messages wait in each queue; ``listed`` and ``has`` by minute and broker."""
    for minute in minutes:
        yield from asked(minute, listed, (10_000, 9_000))
        for name in names:
            yield configs(minute, name, other, *(["G"] if has(minute, name) else []))


def nobody(*_):
    return OFFLINE


def offline(found):
    """The severity of its queues, what is said of it and what is to be done."""
    fault = only(found, "GROUP_OFFLINE")
    (severity,) = {each["severity"] for each in found["orphaned_queues"]}
    assert severity == fault["severity"]
    return severity, fault["evidence"], fault["remedy"]


START = "start the group's consumers, or delete the subscription group if it is no longer used"


def test_a_group_that_was_deleted_is_missed_by_nobody(audit):
    """Its processes are gone for weeks. It is deleted on broker-a first."""
    gone_at = {"broker-a": 3, "broker-b": 5}
    found = audit(group_of(nobody, lambda minute, name: minute < gone_at[name]))
    severity, evidence, remedy = offline(found)
    assert severity == "INFO"
    assert evidence.endswith(
        "broker-a and broker-b have no subscription group of this name since 10:05:00 UTC, and had "
        "it until 10:04:00 UTC: it was deleted"
    )
    assert remedy.startswith("nobody is missing: its offsets are left over; ")


@pytest.mark.parametrize(("gone_at", "severity"), [(3, "INFO"), (99, "WARNING")])
def test_of_a_group_that_was_deleted_no_client_starts_with_the_shorter_route(
    audit, gone_at, severity
):
    """A second nameserver lacks broker-b: who starts with it reads nothing there."""

    def lines():
        yield from group_of(nobody, lambda minute, _: minute < gone_at)
        for minute in MINUTES:
            yield route(60 * minute, "broker-a") | {"namesrv_addr": "10.9.0.2:9876"}

    found = audit(lines())
    assert only(found, "ROUTE_DIVERGENCE")["severity"] == severity
    (problem,) = found["problems"]
    assert problem["severity"] == ("INFO" if gone_at == 3 else "CRITICAL")


def test_a_broker_that_never_had_the_group_did_not_have_it_until_it_was_deleted(audit, run):
    def lines():
        yield from group_of(nobody, lambda minute, _: minute < 3)
        yield from (configs(minute, "broker-x", "OTHER") for minute in MINUTES)

    _, evidence, _ = offline(audit(lines()))
    assert "; broker-a and broker-b have no subscription group of this name since " in evidence
    _, said = run(lines())
    assert said.count("something does not count: ") == said.count("or harms nobody.") == 1
    # One that none ever had is missed by all that were asked.
    _, evidence, _ = offline(audit(lines_of_nothing()))
    assert "; broker-a, broker-b and broker-x have no subscription group of this name, " in evidence


def lines_of_nothing():
    """Offsets of a group of which no broker has a configuration."""
    yield from group_of(nobody, lambda *_: False)
    yield from (configs(minute, "broker-x", "OTHER") for minute in MINUTES)


@pytest.mark.parametrize(
    "has",
    [
        lambda *_: True,
        # On one broker alone it was deleted, or on none at last.
        lambda minute, name: minute < 3 or name == "broker-b",
        lambda minute, _: minute < 3 or minute > 8,
    ],
)
def test_a_group_that_some_broker_has_is_missed_as_before(audit, has):
    assert offline(audit(group_of(nobody, has)))[::2] == ("CRITICAL", START)


def test_of_a_broker_that_was_not_asked_for_its_groups_it_is_not_known(audit):
    of_one = group_of(nobody, lambda minute, _: minute < 3, names=["broker-a"])
    severity, evidence, remedy = offline(audit(of_one))
    assert severity == "CRITICAL"
    assert evidence.endswith("it was deleted; of broker-b it is not known")
    assert remedy.startswith("if the group was deleted on purpose, delete it on broker-b too, ")
    # A broker that answers with an error says of no group anything.
    error = {"error_code": 1, "error_message": "system error"}
    failed = [
        of_broker("subscription_group", 60 * minute + 2, "broker-b", error) for minute in MINUTES
    ]
    of_two = [*group_of(nobody, lambda minute, _: minute < 3, names=["broker-a"]), *failed]
    assert offline(audit(of_two))[:2] == (severity, evidence)
    # Nobody was asked: as before.
    assert offline(audit(group_of(nobody, nobody, names=())))[::2] == ("CRITICAL", START)


@pytest.mark.parametrize(
    ("answers", "routed", "severity", "said"),
    [
        # It went for good at 10:01: no list, no route, no configuration of it from then on.
        (range(1), range(1), "INFO", "it was deleted"),
        # Its master is down: the route of its slave gives the name.
        (range(1), MINUTES, "CRITICAL", "it was deleted; of broker-x it is not known"),
        # It answered up to two minutes ago, and has the group.
        (range(13), range(13), "CRITICAL", None),
    ],
)
def test_a_broker_that_went_for_good_does_not_keep_a_deleted_group(
    audit, answers, routed, severity, said
):
    """broker-x has the group at each of its answers; the others have it until 10:03."""

    def lines():
        yield from group_of(nobody, lambda minute, _: minute < 3)
        for minute in MINUTES:
            if minute in routed:
                yield route(60 * minute, *BROKERS, "broker-x")
            if minute in answers:
                yield members(60 * minute + 3, "broker-x", OFFLINE)
                yield configs(minute, "broker-x", "OTHER", "G")

    fault = only(audit(lines()), "GROUP_OFFLINE")
    assert fault["severity"] == severity
    assert fault["evidence"].endswith(said) if said else "deleted" not in fault["evidence"]


def test_a_group_that_no_broker_ever_had_says_so(audit):
    severity, evidence, remedy = offline(audit(group_of(nobody, lambda *_: False)))
    assert severity == "WARNING"
    assert evidence.endswith(
        "broker-a and broker-b have no subscription group of this name, and had none since "
        "10:00:00 UTC"
    )
    assert remedy.startswith("its offsets are left over if it was deleted before: ")


def test_members_that_lose_their_group_are_no_left_over(audit):
    """Brokers of 5.x take no heartbeat of a group that they do not have: 130 s later it is gone."""

    def until(minute):
        return lambda now, _: MEMBERS if now <= minute else OFFLINE

    severity, _, remedy = offline(audit(group_of(until(6), lambda minute, _: minute < 5)))
    assert severity == "CRITICAL"
    assert remedy.startswith("it was deleted while it had members: ")
    # They stopped, and a minute later the group was deleted.
    assert offline(audit(group_of(until(4), lambda minute, _: minute < 5)))[0] == "INFO"


def test_a_group_that_was_deleted_and_goes_on_is_told_with_its_health(audit):
    def lines():
        for minute in MINUTES:
            yield from asked(minute, read=lambda now, _: in_turn(now))
            yield from (configs(minute, name, *["G"] * (minute < 5)) for name in BROKERS)

    found = audit(lines())
    assert found["group_faults"] == []
    (reason,) = (each["reason"] for each in found["group_health"])
    assert "it was deleted, and still has members (4): a broker that does not create " in reason


def test_a_group_that_was_deleted_and_whose_pulls_are_refused_is_to_be_created_again(audit):
    """A broker of 4.9.8 takes the heartbeats all the same."""

    def lines():
        for minute in MINUTES:
            read = 100 * min(minute, 5)
            yield from asked(minute, read=lambda now, _, read=read: (100 * now + 9, read))
            yield from (configs(minute, name, *["G"] * (minute < 5)) for name in BROKERS)

    fault = only(audit(lines()), "GROUP_NOT_CONSUMING")
    assert "have no subscription group of this name since 10:05:00 UTC" in fault["evidence"]
    assert fault["remedy"].startswith("it was deleted while it had members: ")
    assert fault["severity"] == "CRITICAL"


@pytest.mark.parametrize("last", [{"other": OFFLINE}, {"other": MEMBERS}])
def test_a_group_that_another_broker_of_the_name_lacks_was_not_deleted(audit, last):
    """The last answer is of the one that never had it."""

    def lines():
        yield from registering(every_second, **last)
        for minute in range(20):
            addr = every_second(minute)
            here = ["G"] if addr == ONE else []
            yield configs(minute, "broker-a", "OTHER", *here) | {"broker_addr": addr}

    found = audit(lines())
    assert [each["fault"] for each in found["group_faults"]] == ["DUPLICATE_BROKER_NAME"]
    assert [each["reason"] for each in found["group_health"] if "deleted" in each["reason"]] == []


# ---------------------------------------------------------------- A topic that gets fewer queues


def lowered(waiting):
    """At 10:05 broker-b has two read queues in place of four; so many messages wait in the others.

    100 messages a minute come to all others, and are read.
    """

    def read(minute, name):
        left = (1_400, 1_400 - waiting) if name == "broker-b" and minute >= 5 else in_turn(minute)
        return dict.fromkeys((0, 1), in_turn(minute)) | dict.fromkeys((2, 3), left)

    for minute in MINUTES:
        _, *answers = asked(minute, read=read)
        yield route(60 * minute, *BROKERS, queues={"broker-b": 2} if minute >= 5 else 4)
        yield from answers


@pytest.mark.parametrize(
    ("waiting", "lost", "cost"),
    [
        (700, 2, "2 queues lost, 1,400 messages left unread"),
        (0, 0, "1 recovered by 10:06:00, no queue lost"),
    ],
)
def test_the_event_counts_the_queues_that_left_with_unread_messages(audit, waiting, lost, cost):
    found = audit(lowered(waiting))
    (event,) = found["events"]
    assert (event["kind"], event["queues_lost"]) == ("TOPIC_RESIZED", lost)
    assert event["messages_lost"] == 2 * waiting
    assert event["headline"].endswith(f"1 group touched, {cost}")
    left = [each for each in found["group_faults"] if each["fault"] == "QUEUES_LEFT_ROUTE"]
    assert [each["queues_affected"] for each in left] == [2][:lost]

"""Members of a group that are restarted one after the other, at coarse rounds."""

from __future__ import annotations

import json

import pytest

from tests.cases.small_dumps import (
    AVG,
    BROKERS,
    MEMBERS,
    OFFLINE,
    SHARES,
    asked,
    holds,
    instant,
    members,
    rounds,
    route,
    subscriptions,
)

#: Virtual machines, each with an id that is the same after a restart.
MACHINES = [f"10.0.0.{number}@app" for number in range(6)]


def polled(every, number, turn):
    """Lists alone; ``turn``: by machine and round how often its connection is another one."""
    for round_ in range(number):
        now = every * round_
        yield route(now, *BROKERS)
        for place, name in enumerate(BROKERS, start=1):
            ports = [40_000 + 100 * place + turn(machine, round_) for machine in range(6)]
            addrs = [f"10.0.0.{machine}:{port}" for machine, port in enumerate(ports)]
            yield members(now + place, name, MACHINES, addrs=addrs)


@pytest.mark.parametrize(
    ("turns", "reconnect"),
    [
        # Three deploys within 75 minutes, two machines a round.
        pytest.param(lambda machine: [start + machine // 2 for start in (2, 8, 14)], 0, id="turns"),
        # Within one round each time.
        pytest.param(lambda _: [2, 8, 14], 0, id="at once"),
        # A load balancer drops all connections.
        pytest.param(lambda _: [2, 5, 8, 11, 14], 6, id="again and again"),
        # Each loses its connection every 30 minutes, in its own rhythm.
        pytest.param(lambda machine: [1 + machine, 6 + machine, 11 + machine], 6, id="rhythms"),
    ],
)
def test_restarts_one_after_the_other_are_a_deploy_whatever_the_round(audit, turns, reconnect):
    """Rounds of 300 s; ``turns``: by machine the rounds that see it anew."""

    def restarted(machine, round_):
        return sum(turn <= round_ for turn in turns(machine))

    faults = [each["fault"] for each in audit(polled(300, 18, restarted))["group_faults"]]
    assert faults == ["RECONNECTING"] * reconnect


NEW = [f"10.0.1.{number}@{number}" for number in range(4)]
REPLACED = "10:05:00 4 of 4 members of G were replaced or restarted: "
NOTHING = "since then the group consumes nothing"


@pytest.mark.parametrize(
    ("reads", "came_of_it"),
    [
        (lambda _: True, "no queue lost"),
        # From the deploy on; the first polls after it still show what the old ones read.
        (lambda minute: minute < 5, NOTHING),
        (lambda minute: minute < 6, NOTHING),
        (lambda minute: not 5 <= minute < 11, "then the group consumes nothing until 10:10:00"),
        # It was so before, or is so long after.
        (lambda minute: minute < 3, "no queue lost"),
        (lambda minute: minute < 9, "no queue lost"),
    ],
)
def test_a_deploy_says_whether_the_group_consumes_since(audit, reads, came_of_it):
    """Rounds each minute; all pods are replaced at once at 10:05."""

    def read(minute, _):
        last = max(each for each in range(minute + 1) if reads(each))
        return 100 * minute + 9, 100 * last

    (event,) = audit(rounds(lambda n, _: MEMBERS if n < 5 else NEW, read, range(20)))["events"]
    assert event["headline"] == REPLACED + came_of_it


def of_version(line, version, consume_type="CONSUME_PASSIVELY"):
    """A list whose members are of this version."""
    body = json.loads(line["body"])
    for each in body["connectionSet"]:
        each["version"] = version
    return line | {"body": json.dumps(body | {"consumeType": consume_type})}


def deployed(at, before, now, minutes=20):
    """All members are replaced in one minute, and consume nothing since; ``before`` and ``now``:
    version and strategy.
    """
    for minute in range(minutes):
        (version, strategy), ids = (before, MEMBERS) if minute < at else (now, NEW)
        read = 100 * min(minute, at)
        for each in asked(minute, ids, (100 * minute + 9, read)):
            is_list = each["kind"] == "consumer_connection"
            yield of_version(each, version) if is_list else each
        for number, client_id in enumerate(ids):
            held = SHARES[MEMBERS[number]]
            yield holds(60 * minute + 20 + number, client_id, held, strategy=strategy)


CIRCLE = AVG + "ByCircle"


def test_a_deploy_says_what_its_members_changed_and_so_does_what_begins_there(audit):
    found = audit(deployed(8, (401, AVG), (479, CIRCLE)))
    (event,) = found["events"]
    changes = "the client's version from 4.9.4 to 5.3.3, its strategy from AVG to AVG_BY_CIRCLE"
    assert event["evidence"] == f"4 joined, 4 left; it changed {changes}"
    begun = [each["evidence"] for each in found["group_faults"] if each["event_id"]]
    assert begun
    said = f"it began with the deploy of G at 10:08:00, which changed {changes}"
    assert [each for each in begun if not each.endswith(said)] == []


def test_a_deploy_that_changes_nothing_says_nothing(audit):
    (event,) = audit(deployed(8, (401, AVG), (401, AVG)))["events"]
    assert event["evidence"] == "4 joined, 4 left"


@pytest.mark.parametrize(
    ("without", "ids", "kinds"),
    [
        # Ids with the time at which their processes began: it is these that come back.
        ((6,), [f"{each}#123456789012345" for each in MEMBERS], []),
        # Any process may have the others: a restart, as before.
        ((6,), MEMBERS, ["GROUP_DEPLOYED"]),
        # The last round alone; the last two.
        ((14,), MEMBERS, []),
        ((13, 14), MEMBERS, ["GROUP_SCALED"]),
    ],
)
def test_members_that_one_round_lacks_are_no_scaling(audit, without, ids, kinds):
    found = audit(rounds(lambda minute, _: OFFLINE if minute in without else ids))
    assert [each["kind"] for each in found["events"]] == kinds


def test_members_that_one_round_lacks_before_rounds_are_missing_are_no_scaling(audit):
    minutes = [*range(6), 13, 14]
    listed = rounds(lambda minute, _: OFFLINE if minute == 5 else MEMBERS, minutes=minutes)
    assert [each["kind"] for each in audit(listed)["events"]] != ["GROUP_SCALED", "GROUP_SCALED"]


def test_a_subscription_that_a_deploy_drops_is_one_to_no_topic(audit):
    """They choose their queues themselves from 10:08 on, and subscribe to no topic of theirs."""

    def lines():
        for minute in range(15):
            ids, topics = (MEMBERS, ("T",)) if minute < 8 else (NEW, ())
            yield from asked(minute, ids, topics=topics)
            for number, client_id in enumerate(ids):
                info = holds(60 * minute + 20 + number, client_id, SHARES[MEMBERS[number]])
                body = json.loads(info["body"]) | {"subscriptionSet": subscriptions(topics)}
                yield info | {"body": json.dumps(body)}

    (event,) = audit(lines())["events"]
    assert event["evidence"] == ("4 joined, 4 left; it changed its subscription from T to no topic")


@pytest.mark.parametrize(("changed", "now"), [(4, "AVG_BY_CIRCLE"), (2, "AVG and AVG_BY_CIRCLE")])
def test_a_list_that_came_before_the_new_running_info_has_the_strategy_that_was(
    audit, changed, now
):
    """All are restarted and keep their ids, and so many change their strategy. At 10:08 broker-a is
    asked before their running infos, broker-b after them.
    """

    def lines():
        for minute in range(15):
            is_new = minute >= 8
            yield from (each for each in asked(minute) if each["kind"] != "consumer_connection")
            for number, name in enumerate(BROKERS):
                port = 50_000 + 100 * is_new + 10 * number
                addrs = [f"10.0.0.{place}:{port + place}" for place, _ in enumerate(MEMBERS)]
                yield members(60 * minute + 1 + 40 * number, name, MEMBERS, addrs=addrs)
            started = str(round(instant(470 if is_new else -600).timestamp() * 1000))
            for number, client_id in enumerate(MEMBERS):
                yield holds(
                    60 * minute + 20 + number,
                    client_id,
                    SHARES[client_id],
                    strategy=CIRCLE if is_new and number < changed else AVG,
                    PROP_CONSUMER_START_TIMESTAMP=started,
                )

    (event,) = audit(lines())["events"]
    assert event["evidence"] == f"4 came back; it changed its strategy from AVG to {now}"


# ---------------------------------------------------------------- connections that are left


IDS = [f"10.0.0.{number}@app" for number in range(5)]
#: A broker lists a silent connection for so long.
KEPT = 130


def polled_lists(replaced):
    """``replaced``: by member the seconds at which it got a new connection to each broker."""
    for minute in range(50):
        now = 60 * minute
        yield route(now, *BROKERS)
        for place, name in enumerate(BROKERS, start=1):
            listed = [
                (client_id, f"{client_id.split('@')[0]}:4{place}{number:03}")
                for client_id, edges in zip(IDS, replaced, strict=True)
                for number, (begins, ends) in enumerate(
                    zip((-600, *edges), (*edges, 10_000), strict=True)
                )
                if begins <= now + place < ends + KEPT
            ]
            ids, addrs = zip(*listed, strict=True)
            yield members(now + place, name, ids, addrs=addrs)


def one_by_one(*begins):
    """One member every 30 s, in each deploy."""
    return [[first + 30 * turn for first in begins] for turn in range(len(IDS))]


@pytest.mark.parametrize("begins", [(400, 1100, 2100), (400, 900, 1400), (400, 1000, 1600, 2200)])
def test_deploys_of_all_members_are_no_reconnections(audit, begins):
    """While the old connections are listed nobody knows how many processes there are."""
    faults = {each["fault"] for each in audit(polled_lists(one_by_one(*begins)))["group_faults"]}
    assert not faults & {"RECONNECTING", "FLAPPING"}


@pytest.mark.parametrize(
    "replaced",
    [
        # Two of five.
        [[400, 1100, 2100], [430, 1130, 2130], [], [], []],
        # All of them, again and again.
        one_by_one(*range(400, 2800, 400)),
    ],
)
def test_who_reconnects_beside_the_others_or_all_the_time_does(audit, replaced):
    faults = [each["fault"] for each in audit(polled_lists(replaced))["group_faults"]]
    assert faults.count("RECONNECTING") == sum(map(bool, replaced))

"""What brokers give a group against what its offsets move by: the truth reckoned before the run."""

import json

import pytest

from tests.cases.small_dumps import (
    BROKERS,
    MEMBERS,
    TIMED_OUT,
    holds,
    instant,
    members,
    minute_of,
    offsets,
    route,
)
from tests.support.audited import queues

#: 400 messages a minute come to each broker, 100 to each queue.
EACH, OF_BROKER = 100, 400


def polled(
    minutes, given, *, waiting=lambda _: 9, every=1, client_ids=lambda _: MEMBERS, each=EACH
):
    """A group's polls; ``given``: by broker and minute how many messages it gave in that minute."""
    for minute in minutes:
        if minute % every:
            continue
        now = 60 * minute
        yield route(now, *BROKERS)
        for number, name in enumerate(BROKERS):
            yield members(now + 1 + number, name, client_ids(minute))
            written = 1_000 + each * minute
            read = written - waiting(minute)
            yield offsets(now + 10 + number, name, (written, read), given(name, minute) / 60)


def twice_at_a(name, minute):
    """From 10:05 on broker-a gives the group 660 messages a minute: 260 of them again."""
    return 660 if name == "broker-a" and minute > 5 else OF_BROKER


def test_messages_that_are_read_twice_are_found_though_no_list_shows_it(audit):
    found = audit(polled(range(25), twice_at_a))
    assert (found["duplicate_queues"], found["stalled_queues"]) == ([], [])
    (fault,) = found["group_faults"]
    assert (fault["fault"], fault["severity"]) == ("READ_TWICE", "WARNING")
    assert (fault["broker_names"], fault["ongoing"]) == (["broker-a"], True)
    assert (fault["first_seen"], fault["last_seen"]) == (instant(300), instant(60 * 24))
    assert fault["snapshots"] == 20
    # 19 minutes of 660 and of 400 messages; 260 of 400.
    assert fault["evidence"] == (
        "broker-a gave the group 11.0 messages a second from 10:05:00 to 10:24:00 UTC, and its "
        "offsets advanced by 6.7 a second; 4,940 messages were read again, 65% of those that were "
        "consumed, and no list shows by whom"
    )


def test_queues_that_two_processes_of_one_id_read_explain_it(audit):
    found = audit(polled(range(25), twice_at_a, client_ids=lambda _: [*MEMBERS, MEMBERS[0]]))
    assert {row["broker_name"] for row in found["duplicate_queues"]} >= {"broker-a"}
    assert "READ_TWICE" not in {row["fault"] for row in found["group_faults"]}


def test_where_members_choose_their_queues_two_may_have_taken_one(audit):
    """Before 5.1.1 no running info shows what they took."""

    def lines():
        for line in polled(range(25), twice_at_a):
            yield line
            if line["kind"] == "topic_route":
                second = 60 * minute_of(line) + 30
                for number, client_id in enumerate(MEMBERS):
                    told = holds(
                        second + number, client_id, [], PROP_CONSUME_TYPE="CONSUME_ACTIVELY"
                    )
                    subscribes = json.loads(told["body"]) | {"subscriptionSet": []}
                    yield told | {"body": json.dumps(subscribes)}

    (fault,) = audit(lines())["group_faults"]
    assert fault["fault"] == "READ_TWICE"
    assert "let it give each queue to one member" in fault["remedy"]
    assert "gRPC" not in fault["remedy"]


def popped(given):
    """The polls of a group whose members get their messages by POP."""
    for line in polled(range(25), given):
        yield line
        if line["kind"] == "topic_route":
            second = 60 * minute_of(line) + 30
            for number, client_id in enumerate(MEMBERS):
                yield holds(second + number, client_id, [], None, clientRebalance="false")


def test_by_pop_the_invisible_time_may_be_too_short(audit):
    (fault,) = audit(popped(twice_at_a))["group_faults"]
    assert (fault["fault"], fault["severity"]) == ("READ_TWICE", "WARNING")
    assert "4,940 messages were given again" in fault["evidence"]
    assert fault["remedy"].startswith("compare the invisible time")
    assert "proxy" not in fault["remedy"]


def test_a_time_ends_as_the_messages_are_new_again(audit):
    """Offsets move each second minute, by what came in both: one step shows nothing."""

    def waiting(minute):
        return 9 + EACH * (minute % 2)

    def given(name, minute):
        return 660 if 5 < minute <= 20 else OF_BROKER

    (fault,) = audit(polled(range(40), given, waiting=waiting))["group_faults"]
    assert (fault["fault"], fault["ongoing"]) == ("READ_TWICE", False)
    assert instant(60 * 19) <= fault["last_seen"] <= instant(60 * 22)


def always(number):
    return lambda _, __: number


def scaled(minute):
    """A member comes or goes every other minute, and each time the queues are read again."""
    return MEMBERS if minute % 4 < 2 else MEMBERS[:3]


def without_a_master(minutes, given):
    """The master of broker-a answers nothing in these minutes."""
    for each in polled(range(25), given):
        minute = minute_of(each)
        if each.get("broker_name") != "broker-a" or minute not in minutes:
            yield each
        elif each["kind"] == "consumer_connection":
            yield members(60 * minute + 1, "broker-a", TIMED_OUT)


def again_at(minutes):
    return lambda name, minute: 1_000 if name == "broker-a" and minute in minutes else OF_BROKER


@pytest.mark.parametrize(("first", "since"), [(11, []), (13, [12]), (14, [13])])
def test_soon_after_a_master_came_back_nobody_knows_what_was_read_twice(audit, first, since):
    """It is back at 10:08. A rate is of up to 70 s before its poll: nothing shows what was given
    by 10:12, and the two minutes of many messages that are left are too few.
    """
    given = again_at(range(first, first + 4))
    found = audit(without_a_master(range(5, 8), given))["group_faults"]
    times = [each["first_seen"] for each in found if each["fault"] == "READ_TWICE"]
    assert times == [instant(60 * each) for each in since]


@pytest.mark.parametrize(
    "lines",
    [
        polled(range(25), always(OF_BROKER)),
        # A rate that is a little off; a filter that all share.
        polled(range(25), always(440)),
        polled(range(25), always(OF_BROKER // 2)),
        # The group commits nothing of what it gets.
        polled(range(25), always(660), waiting=lambda minute: 9 + EACH * minute),
        # Each of four a minute is given three times.
        polled(range(25), always(12), each=1),
        # A quarter of what comes is committed: caches fill.
        polled(range(25), always(OF_BROKER), waiting=lambda minute: 9 + 75 * minute),
        # 2,000 come and are read within the last of five minutes.
        polled(range(0, 60), always(2_000), every=5),
        # Members come and go; one of them restarts.
        polled(range(25), always(660), client_ids=scaled),
        polled(range(25), lambda _, minute: 3_000 if minute == 15 else OF_BROKER),
    ],
)
def test_a_group_that_reads_each_message_once_is_not_said_to_read_twice(audit, lines):
    assert "READ_TWICE" not in {each["fault"] for each in audit(lines)["group_faults"]}


def filtering(tags):
    """The members filter by these tags in turn."""
    for minute in range(25):
        for number, client_id in enumerate(MEMBERS):
            of = tags[number % 2]
            yield holds(60 * minute + 20 + number, client_id, [], strategy=None, tags=of)


@pytest.mark.parametrize(("waits", "is_said"), [(7, True), (8, False)])
def test_of_how_many_messages_it_shows_that_a_broker_drops_them(audit, waits, is_said):
    """Four come to each queue a minute, and the brokers give none. Of the 32 that came to a queue
    in the window, up to its last rate, 25 were not there yet as it began: 100 of four queues.
    """
    lines = [*polled(range(25), always(0), each=4, waiting=lambda _: waits), *filtering("ab")]
    faults = {each["fault"]: each["evidence"] for each in audit(lines)["group_faults"]}
    said = "gave the group 0.0 messages a second"
    assert (said in faults["EXPRESSION_MISMATCH"]) == is_said


@pytest.mark.parametrize("tags", [("a", "b"), ("a", "a")])
def test_what_filters_that_differ_drop_is_in_the_evidence(audit, tags):
    lines = [*polled(range(25), always(OF_BROKER // 2)), *filtering(tags)]
    faults = {each["fault"]: each["evidence"] for each in audit(lines)["group_faults"]}
    assert ("EXPRESSION_MISMATCH" in faults) == (tags == ("a", "b"))
    if "EXPRESSION_MISMATCH" in faults:
        assert (
            "broker-a gave the group 3.3 messages a second from 10:00:00 to 10:24:00 UTC, and its "
            "offsets advanced by 6.7 a second" in faults["EXPRESSION_MISMATCH"]
        )
        assert faults["EXPRESSION_MISMATCH"].endswith("drop the others, and nobody gets them")
    assert "READ_TWICE" not in faults


@pytest.mark.parametrize("pulls", [True, False])
def test_what_a_member_pulls_beside_pop_is_read_twice(audit, pulls):
    """Its share is two of the eight queues: both of broker-a, where each message comes twice."""

    def lines():
        yield from polled(range(25), twice_at_a if pulls else always(OF_BROKER))
        for minute in range(25):
            for number, client_id in enumerate(MEMBERS):
                divides = {"clientRebalance": str(pulls and number == 0).lower()}
                yield holds(60 * minute + 20 + number, client_id, [], **divides)

    found = audit(lines())
    faults = {each["fault"]: each["evidence"] for each in found["group_faults"]}
    assert set(faults) == ({"MIXED_REQUEST_MODE"} if pulls else set())
    share = {("T", "broker-a", number) for number in (0, 1)}
    assert queues(found["duplicate_queues"]) == (share if pulls else set())
    assert found["orphaned_queues"] == found["allocation_drift"] == []
    if pulls:
        assert faults["MIXED_REQUEST_MODE"].startswith(
            "10.0.0.0@0 divides the queues itself (clientRebalance true) and pulls its share, "
            "while other members get messages of all queues by POP: what is pulled is read twice; "
            "queues 0-1 of broker-a are taken by several; "
            "broker-a gave the group 11.0 messages a second from 10:05:00 to 10:24:00 UTC"
        )

"""Groups whose shares nobody can compute: members use assign(), or a strategy of the company's own.

Only what the members hold, and the offsets, show who reads what.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from tests.cases.small_dumps import (
    AVG,
    MEMBERS,
    MINUTES,
    QUEUES,
    SHARES,
    asked,
    holds,
    in_turn,
    instant,
    of_broker,
    route,
)
from tests.support.audited import audit_dumps, lasting, queues

OWN = "com.example.ByCity"
LAST = QUEUES[-1]
#: The queues of three members: each once, but for b3.
THREE = [QUEUES[:3], QUEUES[3:5], QUEUES[5:7]]
#: Two members have a3, and nobody has b3, as in a cluster in which both were seen.
TWICE = [QUEUES[:4], QUEUES[3:7], []]
#: The minutes in which members are asked: in each, each fifth, and once alone.
OFTEN, SELDOM, ONCE = MINUTES, (2, 7, 12), (6,)


def read(unread=(LAST,), moves_until=0):
    """Offsets of queues that are read in turn, but for some from a minute on."""

    def offsets_of(minute, name):
        of_queue = {}
        for number in range(4):
            stands = (name, number) in unread and minute >= moves_until
            done = 100 * (moves_until if stands else minute)
            of_queue[number] = (100 * minute + 9, done + 1)
        return of_queue

    return offsets_of


def assigned(given):
    """The running info of a lite pull consumer that takes its queues by assign()."""
    body = json.loads(given["body"])
    body["subscriptionSet"] = []
    body["properties"]["PROP_CONSUME_TYPE"] = "CONSUME_ACTIVELY"
    return given | {"body": json.dumps(body)}


def lines(held, minutes, *, assigns, offsets_of=None, silent=(), version=479):
    """``held``: by member its queues, or a function of the minute."""
    topics = () if assigns else ("T",)
    for minute in MINUTES:
        for line in asked(minute, MEMBERS[:3], offsets_of, topics=topics):
            yield line | {"body": line["body"].replace('"version": 401', f'"version": {version}')}
        for number, client_id in enumerate(MEMBERS[:3]):
            if minute in minutes and number not in silent:
                its = held(minute)[number] if callable(held) else held[number]
                told = holds(60 * minute + 30 + number, client_id, its, OWN)
                yield assigned(told) if assigns else told


@pytest.mark.parametrize("assigns", [True, False])
@pytest.mark.parametrize("minutes", [OFTEN, SELDOM, ONCE])
def test_what_two_hold_and_what_nobody_holds_are_rows(audit, minutes, assigns):
    found = audit(lines(TWICE, minutes, assigns=assigns, offsets_of=read()))
    assert queues(lasting(found["duplicate_queues"])) == {("T", *QUEUES[3])}
    assert queues(lasting(found["orphaned_queues"])) == {("T", *LAST)}
    (twice,), (nobody,) = found["duplicate_queues"], found["orphaned_queues"]
    assert (nobody["certainty"], nobody["severity"]) == ("CERTAIN", "CRITICAL")
    assert twice["severity"] == "WARNING"
    assert nobody["first_seen"] <= instant(120), "its offset stands from the beginning"
    # One round shows that two hold it then, and not for how long.
    assert twice["certainty"] == ("POSSIBLE" if minutes == ONCE else "CERTAIN")
    assert {each["client_id"] for each in twice["claimants"]} == {*MEMBERS[:2]}
    causes = {cause for row in (twice, nobody) for cause in row["causes"]}
    by_strategy = {"ALLOCATES_OTHERWISE", "QUEUE_NOT_HELD"}
    assert causes == ({"MANUAL_ASSIGNMENT"} if assigns else by_strategy)
    assert [row["computed"] for row in (twice, nobody)] == [False, False]
    assert found["stalled_queues"] == []
    faults = lasting(found["group_faults"])
    assert {row["fault"] for row in faults} == causes
    if not assigns:
        assert all(OWN in row["evidence"] for row in faults)
    (problem,) = found["problems"]
    assert (problem["severity"], problem["ongoing"]) == ("CRITICAL", True)
    told = json.dumps([row["evidence"] + row["remedy"] for row in faults])
    for word in ("gRPC", "proxy", "load balancer", "thread dump"):
        assert word not in told


@pytest.mark.parametrize("assigns", [True, False])
@pytest.mark.parametrize("minutes", [OFTEN, SELDOM, ONCE])
def test_where_each_queue_has_one_reader_nothing_is_found(audit, minutes, assigns):
    held = [QUEUES[:3], QUEUES[3:5], QUEUES[5:]]
    found = audit(lines(held, minutes, assigns=assigns, offsets_of=read(unread=())))
    for table in ("orphaned_queues", "duplicate_queues", "stalled_queues", "group_faults"):
        assert found[table] == [], table


@pytest.mark.parametrize("assigns", [True, False])
def test_who_does_not_answer_may_hold_what_the_others_do_not(audit, assigns):
    """The third member never answers: that two hold a3 is known all the same."""
    found = audit(lines(TWICE, OFTEN, assigns=assigns, offsets_of=read(), silent=(2,)))
    assert found["orphaned_queues"] == []
    assert queues(lasting(found["duplicate_queues"])) == {("T", *QUEUES[3])}
    assert queues(lasting(found["stalled_queues"])) == {("T", *LAST)}


@pytest.mark.parametrize("assigns", [True, False])
def test_a_queue_in_which_nothing_waits_harms_nothing(audit, assigns):
    """b3 is nobody's, and all that came to it was read before."""

    def offsets_of(minute, name):
        idle = {number: (50, 50) for number in range(4) if (name, number) == LAST}
        return dict.fromkeys(range(4), (100 * minute + 9, 100 * minute + 1)) | idle

    found = audit(lines(THREE, SELDOM, assigns=assigns, offsets_of=offsets_of))
    assert {row["severity"] for row in found["orphaned_queues"]} == (set() if assigns else {"INFO"})
    assert not any(row["severity"] in ("WARNING", "CRITICAL") for row in found["problems"])


def test_without_offsets_nobody_knows_whether_a_queue_was_left_out_on_purpose(audit):
    found = audit(lines(TWICE, SELDOM, assigns=True))
    assert found["orphaned_queues"] == []
    assert queues(lasting(found["duplicate_queues"])) == {("T", *QUEUES[3])}
    (health,) = (row for row in found["group_health"] if row["consumer_group"] == "G")
    assert (health["topic"], health["coverage"]) == ("T", "QUEUES_CHOSEN")


def test_a_lite_pull_consumer_before_5_1_1_shows_no_queue(audit):
    """Its table is empty whatever it took: nothing is known, and nothing is said."""
    found = audit(lines([(), (), ()], OFTEN, assigns=True, offsets_of=read(), version=401))
    assert found["orphaned_queues"] == found["group_faults"] == []


def test_what_is_handed_over_by_assign_is_held_twice_for_a_moment_alone(audit):
    """One round came while a3 went from the first to the second member."""

    def held(minute):
        first = 3 if minute > 7 else 4
        return [*TWICE[:1], QUEUES[3:], []] if minute == 7 else [QUEUES[:first], QUEUES[first:], []]

    found = audit(lines(held, OFTEN, assigns=True, offsets_of=read(unread=())))
    assert found["duplicate_queues"] == found["orphaned_queues"] == []


def test_an_orphan_begins_as_its_offset_stops(audit):
    """The third member has b3 until 10:06, and assigns itself nothing from then on."""

    def held(minute):
        return [QUEUES[:4], QUEUES[4:7], [LAST] if minute < 6 else []]

    found = audit(lines(held, OFTEN, assigns=True, offsets_of=read(moves_until=6)))
    (row,) = found["orphaned_queues"]
    assert instant(360) <= row["first_seen"] <= instant(420)
    assert (row["persistence"], row["ongoing"], row["causes"]) == (
        "PERSISTENT",
        True,
        ["MANUAL_ASSIGNMENT"],
    )


def test_members_that_broadcast_by_assign_read_each_queue_for_themselves(audit):
    def told():
        for line in lines(TWICE, OFTEN, assigns=True, offsets_of=read()):
            yield line | {"body": line["body"].replace('"CLUSTERING"', '"BROADCASTING"')}

    found = audit(told())
    for table in ("orphaned_queues", "duplicate_queues", "stalled_queues"):
        assert found[table] == [], table


def test_two_real_members_of_which_one_answer_came():
    data = Path(__file__).parent.parent / "data" / "cases" / "assigned_queues"
    found = audit_dumps([data / "dump.jsonl.gz"])
    assert queues(lasting(found["duplicate_queues"])) == {("T_LASG", "broker-a", 3)}
    assert queues(lasting(found["orphaned_queues"])) == {("T_LASG", "broker-b", 3)}
    assert [row["certainty"] for row in found["orphaned_queues"]] == ["CERTAIN"]
    assert found["stalled_queues"] == []
    (fault,) = found["group_faults"]
    assert (fault["fault"], fault["severity"]) == ("MANUAL_ASSIGNMENT", "CRITICAL")
    (health,) = found["group_health"]
    assert (health["coverage"], health["queues"]) == ("QUEUES_CHOSEN", 8)


def of_two_nameservers(lines):
    """The lines, and those of a second nameserver that lacks broker-b."""
    for line in lines:
        yield line
        if line["kind"] == "topic_route" and "body" in line:
            second = (datetime.fromisoformat(line["collected_at"]) - instant(0)).total_seconds()
            yield route(second, "broker-a") | {"namesrv_addr": "other:9876"}


@pytest.mark.parametrize("assigns", [True, False])
def test_a_queue_that_one_nameserver_lacks_is_judged_by_what_is_held(audit, assigns):
    """Messages come to b3, so that somebody has its route: nobody reads it."""
    given = lines(TWICE, SELDOM, assigns=assigns, offsets_of=read())
    found = audit(of_two_nameservers(given))
    assert queues(lasting(found["orphaned_queues"])) == {("T", *LAST)}
    assert queues(lasting(found["duplicate_queues"])) == {("T", *QUEUES[3])}
    assert found["stalled_queues"] == []


def test_a_queue_that_one_nameserver_gives_still_is_nobodys_where_nothing_waits(audit):
    """broker-b is gone, but for one nameserver that did not notice: nobody has to read it."""
    held = [QUEUES[:2], QUEUES[2:3], QUEUES[3:4]]
    given = lines(held, SELDOM, assigns=False, offsets_of=None)
    found = audit(of_two_nameservers(given))
    assert found["orphaned_queues"] == []


@pytest.mark.parametrize("assigns", [True, False])
def test_an_orphan_ends_as_its_offset_moves_again(audit, assigns):
    """The third member takes b3 at 10:09; the round of 10:12 shows that it has it."""

    def held(minute):
        return [QUEUES[:4], QUEUES[4:7], [LAST] if minute > 8 else []]

    def offsets_of(minute, name):
        stands = {3: (100 * minute + 9, 1 if minute < 9 else 100 * minute + 1)}
        of_all = dict.fromkeys(range(4), (100 * minute + 9, 100 * minute + 1))
        return of_all | (stands if name == "broker-b" else {})

    found = audit(lines(held, SELDOM, assigns=assigns, offsets_of=offsets_of))
    (row,) = lasting(found["orphaned_queues"])
    assert (row["broker_name"], row["queue_id"], row["ongoing"]) == (*LAST, False)
    assert instant(480) <= row["last_seen"] <= instant(540)


# ---------------------------------------------------------------- computed, and held otherwise


AVG_OF_FOUR = [SHARES[client_id] for client_id in MEMBERS]
#: By the circle the last member has a3, which is the second one's by AVG, and b3: b2 is nobody's.
CIRCLE = "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle"


def said(held, minutes, *, silent=(), read=None):
    """Four members, of which the last says that it divides by the circle."""
    for minute in MINUTES:
        yield from asked(minute, MEMBERS, read)
        for number, client_id in enumerate(MEMBERS):
            if minute in minutes and number not in silent:
                its = held(minute)[number] if callable(held) else held[number]
                name = CIRCLE if number == 3 else AVG
                yield holds(60 * minute + 30 + number, client_id, its, name)


def computed_wrong(found):
    tables = ("orphaned_queues", "duplicate_queues")
    return {(table, row["certainty"]) for table in tables for row in lasting(found[table])}


@pytest.mark.parametrize("minutes", [OFTEN, SELDOM])
def test_what_all_members_hold_outweighs_what_is_computed(audit, minutes):
    """A setter changed the strategy back to AVG; the property has the name it had at the start."""
    found = audit(said(AVG_OF_FOUR, minutes))
    assert found["orphaned_queues"] == found["duplicate_queues"] == []
    (fault,) = found["group_faults"]
    assert (fault["fault"], fault["severity"]) == ("STRATEGY_MISMATCH", "WARNING")
    assert fault["queues_affected"] == 0
    assert fault["evidence"].endswith("what they hold shows none of this")


def test_one_answer_of_all_makes_what_is_computed_possible(audit):
    found = audit(said(AVG_OF_FOUR, ONCE))
    assert {certainty for _, certainty in computed_wrong(found)} == {"POSSIBLE"}
    assert {row["severity"] for row in found["duplicate_queues"]} == {"WARNING"}


def test_who_does_not_answer_may_hold_what_is_computed(audit):
    found = audit(said(AVG_OF_FOUR, OFTEN, silent=(0,)))
    assert ("duplicate_queues", "CERTAIN") in computed_wrong(found)


def test_what_is_held_as_it_is_computed_is_certain(audit):
    held = [*AVG_OF_FOUR[:3], [QUEUES[3], QUEUES[7]]]
    found = audit(said(held, SELDOM))
    assert computed_wrong(found) == {
        ("duplicate_queues", "CERTAIN"),
        ("orphaned_queues", "CERTAIN"),
    }


def test_a_duplicate_ends_as_all_hold_something_else(audit):
    """The setter ran at 10:06; the rounds of 10:07 and 10:12 show it."""

    def held(minute):
        return [*AVG_OF_FOUR[:3], [QUEUES[3], QUEUES[7]] if minute < 6 else QUEUES[6:]]

    found = audit(said(held, SELDOM))
    (row,) = lasting(found["duplicate_queues"])
    assert (row["certainty"], row["ongoing"]) == ("CERTAIN", False)
    assert row["last_seen"] == instant(420)


def test_an_orphan_ends_as_the_group_reads_it(audit):
    """From 10:05 on the offset of b2 moves at each poll, with no running info behind it."""

    def read(minute, name):
        of_all = dict.fromkeys(range(4), (100 * minute + 9, 100 * minute + 1))
        stands = {2: (100 * minute + 9, 1)} if name == "broker-b" and minute < 5 else {}
        return of_all | stands

    held = [*AVG_OF_FOUR[:3], [QUEUES[3], QUEUES[7]]]
    found = audit(said(held, (0,), read=read))
    (row,) = lasting(found["orphaned_queues"])
    assert (row["broker_name"], row["queue_id"]) == QUEUES[6]
    assert (row["certainty"], row["ongoing"], row["last_seen"]) == ("CERTAIN", False, instant(240))


@pytest.mark.parametrize(("given", "is_found"), [(5.0, False), (0.0, True)])
def test_who_chooses_its_queues_may_keep_its_offsets_elsewhere(audit, given, is_found):
    """No offset moves after 10:03: the broker's rate shows whether it gave them anything."""
    shares = [QUEUES[:3], QUEUES[3:6], QUEUES[6:]]
    polled = lines(shares, OFTEN, assigns=True, offsets_of=read(QUEUES, moves_until=3))
    rate = f'"consumeTps": {given}'
    found = audit(one | {"body": one["body"].replace('"consumeTps": 0.0', rate)} for one in polled)
    assert {row["coverage"] for row in found["group_health"]} == {"QUEUES_CHOSEN"}
    faults = {row["fault"] for row in found["group_faults"]}
    assert ("GROUP_NOT_CONSUMING" in faults) == is_found


# ---------------------------------------------------------------- no consumer any more


FIFTH = "10.0.0.4@4"
#: Of eight queues by AVG: two each of four members; of five members the last two have one each.
OF_FIVE = SHARES | {MEMBERS[3]: QUEUES[6:7], FIFTH: QUEUES[7:]}


def a_fifth_comes(at):
    """From that minute on; the fourth member holds two queues all the time."""
    for minute in MINUTES:
        shares = OF_FIVE if minute >= at else SHARES
        yield from asked(minute, sorted(shares))
        for number, (client_id, share) in enumerate(shares.items()):
            held = SHARES[client_id] if client_id == MEMBERS[3] else share
            yield holds(60 * minute + 5 + number, client_id, held)


@pytest.mark.parametrize(
    ("comes", "evidence", "remedy"),
    [
        # It has what it last had by the computation: it does not divide at all.
        (4, "still have what they had before the last change", f"restart {MEMBERS[3]}: "),
        # It never had its share: it divides in another way.
        (0, "holds queues other than its share", f"make {MEMBERS[3]} divide the queues as"),
    ],
)
def test_who_keeps_what_it_had_is_not_asked_for_its_strategy(audit, comes, evidence, remedy):
    found = audit(a_fifth_comes(comes))
    (fault,) = (each for each in found["group_faults"] if each["persistence"] == "PERSISTENT")
    assert (fault["fault"], fault["client_ids"]) == ("ALLOCATES_OTHERWISE", [MEMBERS[3]])
    (twice,) = found["duplicate_queues"]
    assert (twice["broker_name"], twice["queue_id"]) == ("broker-b", 3)
    assert evidence in fault["evidence"]
    assert fault["remedy"].startswith(remedy)


# ---------------------------------------------------------------- A process that runs


NONE_HERE = {"error_code": 1, "error_message": "The Consumer Group <G> not exist in this consumer"}
TIMED_OUT = {"error_code": 207, "error_message": "consumer <G> <10.0.0.3@3> timeout"}


def polled(answer, *, with_offsets=True):
    """From 10:04 on the fourth member answers so, and its queues, b2 and b3, do not move."""

    def read(minute, name):
        now = dict.fromkeys(range(4), in_turn(minute))
        if name == "broker-b":
            now |= dict.fromkeys((2, 3), (100 * minute + 9, 100 * min(minute, 4)))
        return now

    for minute in MINUTES:
        yield from asked(minute, read=read if with_offsets else None)
        for number, (client_id, share) in enumerate(SHARES.items()):
            second = 60 * minute + 20 + number
            if number == 3 and minute >= 4:
                of = {"client_id": client_id}
                yield of_broker("consumer_running_info", second, "broker-a", answer, **of)
            else:
                yield holds(second, client_id, share)


@pytest.mark.parametrize("with_offsets", [True, False])
def test_a_process_without_a_consumer_of_the_group_runs_and_holds_nothing(audit, with_offsets):
    found = audit(polled(NONE_HERE, with_offsets=with_offsets))
    assert queues(lasting(found["orphaned_queues"])) == {("T", "broker-b", 2), ("T", "broker-b", 3)}
    assert found["stalled_queues"] == []
    (fault,) = found["group_faults"]
    assert (fault["fault"], fault["client_ids"]) == ("QUEUE_NOT_HELD", [MEMBERS[3]])
    assert fault["first_seen"] == instant(263)
    assert fault["evidence"].endswith(
        "10.0.0.3@3 (JAVA) runs, but says that it has no consumer of the group any more; "
        "heartbeats of other groups keep it listed"
    )
    assert fault["remedy"].startswith("find in the log why the application shut down its")


def test_a_process_that_does_not_answer_may_hang(audit):
    faults = {row["fault"] for row in audit(polled(TIMED_OUT))["group_faults"]}
    assert faults == {"CLIENT_NOT_ANSWERING", "FROZEN_PROCESS"}

"""What offsets show, and what they do not: small dumps, the truth reckoned before the run."""

import pytest

from tests.cases.small_dumps import (
    BROKERS,
    MEMBERS,
    MINUTES,
    OFFLINE,
    SHARES,
    TIMED_OUT,
    asked,
    holds,
    in_turn,
    instant,
    members,
    minute_of,
    of_slave,
    offsets,
    rounds,
    route,
    with_slave,
)
from tests.support.audited import queues


def never_committed(comes_to=()):
    """Broker-a's queues are read; of broker-b's, 500 messages each, the group has no offset yet.

    To those of ``comes_to`` a message comes each minute. Broker-b's first two queues are the third
    member's, the other two the fourth's.
    """

    def read(minute, name):
        if name == "broker-a":
            return 2 * (100 * minute + 9,)
        return {number: (500 + minute * (number in comes_to), 0) for number in range(4)}

    return rounds(read=read)


def test_a_queue_without_a_committed_offset_and_without_new_messages_has_nothing_to_read(audit):
    found = audit(never_committed())
    assert (found["group_faults"], found["stalled_queues"]) == ([], [])
    # Nor does anything show that nothing waits in them: a client may begin at the first message.
    (row,) = (each for each in found["group_health"] if each["topic"] == "T")
    assert (row["backlog"], row["queues_without_offsets"]) == (0, 4)


def test_a_queue_whose_new_messages_are_never_committed_is_not_read(audit):
    found = audit(never_committed(comes_to=(0, 1)))
    assert queues(found["stalled_queues"]) == {("T", "broker-b", 0), ("T", "broker-b", 1)}
    (fault,) = found["group_faults"]
    assert (fault["fault"], fault["client_ids"]) == ("FROZEN_PROCESS", [MEMBERS[2]])
    assert fault["first_seen"] == instant(60)  # the first poll after a message came


def without_masters(brokers, minutes, of_copy, *, routed=False, has_slave=True):
    """The masters of these brokers are away in these minutes; their slaves answer.

    100 messages a minute come to each queue, of which 9 wait at a poll. ``of_copy``: by minute the
    offsets that a slave gives. ``routed``: the route names the master all the same.
    """
    for minute in MINUTES:
        addrs = {}
        for number, name in enumerate(BROKERS, start=1):
            second, is_away = 60 * minute + number, name in brokers and minute in minutes
            addrs |= with_slave(name) if has_slave else {name: {"0": f"{name}:10911"}}
            if is_away and not routed:
                del addrs[name]["0"]
            yield members(second, name, TIMED_OUT if is_away else MEMBERS)
            if has_slave:
                yield of_slave(members(second, name, MEMBERS))
            now = of_copy(minute) if is_away else in_turn(minute)
            if now:
                yield offsets(second + 10, name, now)
        yield route(60 * minute, *BROKERS, addrs=addrs)


def stands(_minute):
    """What the copy of a slave has where nobody reads it; nothing comes to it either."""
    return 509, 500


def test_queues_that_stand_without_a_master_stand_because_of_it(audit):
    found = audit(without_masters(["broker-a"], range(5, 15), stands))
    stalls = found["stalled_queues"]
    assert queues(stalls) == {("T", "broker-a", number) for number in range(4)}
    # The first poll of the slave, though until a minute after it nobody knows.
    assert {(row["first_seen"], row["ongoing"]) for row in stalls} == {(instant(300), True)}
    (why,) = {row["why"] for row in stalls}
    assert why.startswith("the master of broker-a has been away since 10:05:00 UTC: a slave serves")
    # Its owners are well.
    assert found["group_faults"] == []


def test_where_clients_read_from_the_slave_nothing_stands(audit):
    def read_later(minute):
        return (509, 500) if minute == 5 else (509, 509)

    found = audit(without_masters(["broker-a"], range(5, 15), read_later))
    assert (found["group_faults"], found["stalled_queues"]) == ([], [])


def test_a_slave_does_not_show_what_clients_do_at_a_master_that_the_collector_alone_misses(audit):
    found = audit(without_masters(["broker-a"], range(5, 15), stands, routed=True))
    assert (found["group_faults"], found["stalled_queues"]) == ([], [])


def test_a_group_whose_masters_are_all_away_consumes_nothing(audit):
    found = audit(without_masters(["broker-a", "broker-b"], range(5, 11), stands))
    assert found["stalled_queues"] == []
    (fault,) = found["group_faults"]
    assert (fault["fault"], fault["queues_affected"]) == ("GROUP_NOT_CONSUMING", 8)
    assert (fault["first_seen"], fault["last_seen"]) == (instant(300), instant(600))
    assert "the master of broker-a was away from 10:05:00 to 10:11:00 UTC" in fault["evidence"]
    assert fault["remedy"].startswith("bring the masters of broker-a and broker-b back")


@pytest.mark.parametrize(("read", "is_stalled"), [(0, True), (1, False)])
def test_a_broker_without_a_slave_has_one_copy_of_its_offsets(audit, read, is_stalled):
    """It gives none while it is away, and those of before when it is back, or later ones."""

    def lines():
        away = {"routed": True, "has_slave": False}
        for each in without_masters(["broker-a"], range(5, 14), lambda _: None, **away):
            is_copy = each["kind"] == "consume_stats" and each["broker_name"] == "broker-a"
            is_back = is_copy and minute_of(each) == 14
            yield offsets(844, "broker-a", (509, 400 + read)) if is_back else each

    found = audit(lines())
    since = {(row["queue_id"], row["first_seen"]) for row in found["stalled_queues"]}
    assert since == ({(number, instant(240)) for number in range(4)} if is_stalled else set())
    whys = {row["why"] for row in found["stalled_queues"]}
    assert all("was away from 10:05:00 to 10:14:00 UTC" in why for why in whys)
    assert found["group_faults"] == []


def restart(after):
    """Broker-a, which has no slave, restarts at 10:05; then its offsets are ``after`` and go on."""

    def is_away(minute, name):
        return minute == 5 and name == "broker-a"

    def read(minute, name):
        written = 10_000 + 100 * minute
        later = name == "broker-a" and minute > 5
        now = (written, after + 100 * (minute - 6) if later else written)
        return None if is_away(minute, name) else now

    return rounds(lambda *at: TIMED_OUT if is_away(*at) else MEMBERS, read)


def test_offsets_that_are_lost_at_a_restart_are_told_with_it(audit):
    (fault,) = audit(restart(after=0))["group_faults"]
    assert (fault["fault"], fault["broker_names"]) == ("OFFSETS_WENT_BACK", ["broker-a"])
    assert "41,600 messages are consumed again" in fault["evidence"]
    assert fault["evidence"].endswith("from 10,400 to 0; broker-a did not answer at 10:05:00 UTC")
    assert fault["remedy"].startswith("find out why broker-a came back with older offsets")


def test_the_last_seconds_that_a_restart_loses_are_none_that_went_back(audit):
    assert audit(restart(after=10_390))["group_faults"] == []


@pytest.mark.parametrize(
    ("answer", "coverage", "reason"),
    [
        (
            TIMED_OUT,
            "NO_BROKER_ANSWERED",
            "no broker said who the members of the group are; no list came from broker-a at "
            "172.17.0.2:10911: check whether",
        ),
        (OFFLINE, "NO_TOPIC", "no broker knows a member or a topic of the group"),
    ],
)
def test_who_does_not_answer_says_nothing_of_members(audit, answer, coverage, reason):
    (health,) = audit(
        members(60 * minute, "broker-a", answer) | {"broker_addr": "172.17.0.2:10911"}
        for minute in MINUTES
    )["group_health"]
    assert health["coverage"] == coverage
    assert health["reason"].startswith(reason)


def test_while_nobody_answers_nobody_comes_or_goes(audit):
    lines = rounds(lambda minute, _: TIMED_OUT if 5 <= minute < 9 else MEMBERS)
    assert {each["kind"] for each in audit(lines)["events"]} == {"MASTER_LEFT"}


def test_where_one_broker_alone_answers_the_others_are_named(audit):
    (health,) = audit(
        members(60 * minute + number, name, answer)
        for minute in MINUTES
        for number, (name, answer) in enumerate([("broker-a", OFFLINE), ("broker-b", TIMED_OUT)])
    )["group_health"]
    assert health["coverage"] == "NO_TOPIC"
    assert "; no list came from broker-b at broker-b:10911: check whether" in health["reason"]


def one_queue_stands(queue_ids=(0,), lock_ago=None, **process_queue):
    """Queue 0 of broker-a stands at 400 from 10:04 on; all members answer, and all else moves.

    ``queue_ids``: others of the first member that stand with it. ``lock_ago``: the members consume
    in order, and had the locks so many seconds ago.
    """

    def read(minute, name):
        stood = dict.fromkeys(queue_ids, (100 * minute + 9, min(100 * minute, 400)))
        now = dict.fromkeys(range(4), in_turn(minute))
        return now | (stood if name == "broker-a" else {})

    for minute in MINUTES:
        yield from asked(minute, read=read)
        for number, (client_id, share) in enumerate(SHARES.items()):
            second = 60 * minute + 20 + number
            now = round(1_000 * instant(second).timestamp())
            of_each = {"lastPullTimestamp": now, "lastConsumeTimestamp": now - 1_000}
            if lock_ago is not None:
                of_each["lastLockTimestamp"] = now - 1_000 * lock_ago
            held = {queue: dict(of_each) for queue in share}
            for queue in share[: len(queue_ids)] if number == 0 and minute >= 4 else ():
                held[queue] |= process_queue
                if lock_ago is not None:
                    held[queue]["lastConsumeTimestamp"] -= 90_000
            in_order = {} if lock_ago is None else {"PROP_CONSUMEORDERLY": "true"}
            yield holds(second, client_id, held, **in_order)


@pytest.mark.parametrize(
    ("process_queue", "why"),
    [
        # Newer messages are done, the first one is not: the committed offset is that of the first.
        (
            {"cachedMsgCount": 3, "cachedMsgMinOffset": 400, "cachedMsgMaxOffset": 900},
            "one message is not finished although newer ones are: the one at offset 400, since "
            "10:04:00 UTC; its listener waits, or fails on it again and again (mqadmin "
            "queryMsgByOffset -t T -b broker-a -i 0 -o 400)",
        ),
        # Pulls come, and nothing is there to consume.
        (
            {"cachedMsgCount": 0},
            "its process asks for messages and makes no progress: the application suspended "
            "the consumer, or the broker refuses its pulls (the subscription is not known "
            "there)",
        ),
    ],
)
def test_why_a_queue_stands_is_what_its_process_shows(audit, process_queue, why):
    (stall,) = audit(one_queue_stands(**process_queue))["stalled_queues"]
    assert (stall["broker_name"], stall["queue_id"], stall["why"]) == ("broker-a", 0, why)


@pytest.mark.parametrize("is_frozen", [False, True])
def test_a_process_that_finishes_newer_messages_is_not_frozen(audit, is_frozen):
    """All of its queues stand, each for one message; or its listener has consumed none since."""
    cached = {"cachedMsgCount": 3, "cachedMsgMinOffset": 400}
    if is_frozen:
        cached["lastConsumeTimestamp"] = round(1_000 * instant(240).timestamp())
    found = audit(one_queue_stands((0, 1), **cached))
    assert queues(found["stalled_queues"]) == {("T", "broker-a", 0), ("T", "broker-a", 1)}
    said = "a listener hangs" if is_frozen else "one message is not finished"
    assert all(row["why"].startswith(said) for row in found["stalled_queues"])
    faults = [row["fault"] for row in found["group_faults"]]
    assert faults == ["FROZEN_PROCESS"] * is_frozen


@pytest.mark.parametrize(
    ("locked", "why"),
    [
        # Asked each 20 s, and not given for 31 s: `locked` is true all the same.
        (31, "no lock: its process consumes in order"),
        (20, "a listener hangs"),
    ],
)
def test_a_lock_of_long_ago_is_why_what_is_cached_is_not_consumed(audit, locked, why):
    cached = {"locked": True, "cachedMsgCount": 3, "cachedMsgMinOffset": 400}
    (stall,) = audit(one_queue_stands(lock_ago=locked, **cached))["stalled_queues"]
    assert (stall["broker_name"], stall["queue_id"]) == ("broker-a", 0)
    assert stall["why"].startswith(why)


def gone_at(dropped_by, stop=(2, 3), since=4):
    """These queues of broker-b stop in the minute ``since``; at 10:07 these brokers drop the last
    member, which has the last two of them.
    """

    def read(minute, name):
        stopped = (100 * minute + 9, 100 * min(minute, since))
        stood = dict.fromkeys(stop, stopped) if name == "broker-b" else {}
        return dict.fromkeys(range(4), in_turn(minute)) | stood

    def listed(minute, name):
        return MEMBERS[:-1] if minute >= 7 and name in dropped_by else MEMBERS

    return rounds(listed, read)


def test_a_member_that_is_cut_off_from_a_broker_is_one_outage_since_its_queues_stopped(audit):
    found = audit(gone_at(["broker-b"]))
    (fault,) = found["group_faults"]
    assert (fault["fault"], fault["client_ids"]) == ("BROKER_VIEW_DIVERGENCE", [MEMBERS[3]])
    assert (fault["first_seen"], fault["ongoing"]) == (instant(240), True)
    assert "queues 2-3 of broker-b have not moved since 10:04:00 UTC" in fault["evidence"]
    (why,) = {row["why"] for row in found["stalled_queues"]}
    assert why.startswith("its process does not reach the broker")


def test_a_process_that_freezes_beside_a_member_that_is_cut_off_is_frozen(audit):
    faults = audit(gone_at(["broker-b"], stop=range(4)))["group_faults"]
    expected = {"BROKER_VIEW_DIVERGENCE": [MEMBERS[3]], "FROZEN_PROCESS": [MEMBERS[2]]}
    assert {each["fault"]: each["client_ids"] for each in faults} == expected
    assert len(faults) == 2


@pytest.mark.parametrize(("since", "frozen"), [(3, set()), (2, {"FROZEN_PROCESS"})])
def test_a_process_that_hung_long_before_a_broker_dropped_it_is_frozen(audit, since, frozen):
    """A broker drops a member 120 s after its last heartbeat; polls add up to two minutes."""
    found = audit(gone_at(["broker-b"], since=since))
    faults = {each["fault"] for each in found["group_faults"]}
    assert faults == {"BROKER_VIEW_DIVERGENCE"} | frozen


def test_a_process_that_every_broker_drops_is_frozen(audit):
    found = audit(gone_at(BROKERS))
    assert "FROZEN_PROCESS" in {each["fault"] for each in found["group_faults"]}


@pytest.mark.parametrize(
    ("in_order", "language", "read"),
    [
        (True, "JAVA", 500),
        (True, "JAVA", 509),
        (False, "JAVA", 509),
        (False, "GO", 500),
        (False, "GO", 509),
    ],
)
def test_consumers_in_order_and_in_go_read_nothing_of_a_broker_without_a_master(
    audit, in_order, language, read
):
    """They lock their queues there; others read from the slave, but for client-go. Where nothing
    waits nobody lost a queue: they are in the tables of who has them, and nothing comes to a broker
    without a master.
    """
    of_master = in_order or language == "GO"

    def lines():
        for each in without_masters(["broker-a"], range(5, 15), lambda _: (509, read)):
            if "body" in each:
                each["body"] = each["body"].replace('"JAVA"', f'"{language}"')
            yield each
        told = {"strategy": None, "PROP_CONSUMEORDERLY": str(in_order)}
        for minute in (0, 8):
            yield holds(60 * minute + 30, MEMBERS[0], SHARES[MEMBERS[0]], **told)

    found = audit(lines())
    assert queues(found["orphaned_queues"]) == (
        {("T", "broker-a", number) for number in range(4)} if read < 509 else set()
    )
    faults = {row["fault"]: row["remedy"] for row in found["group_faults"]}
    assert set(faults) == ({"MASTER_AWAY"} if of_master else set())
    # The first member still has them in its table, which is nothing odd.
    assert found["allocation_drift"] == []
    worst = {row["severity"] for row in found["group_faults"]}
    assert worst == ({"CRITICAL" if read < 509 else "INFO"} if of_master else set())
    what = "restart of the clients changes nothing" if in_order else "let a slave act for it"
    assert all(what in each for each in faults.values())


@pytest.mark.parametrize(
    ("ends", "who"), [(15, "the slave of broker-a"), (6, "broker-a came back")]
)
def test_who_has_older_offsets_is_who_serves_the_broker_then(audit, ends, who):
    """The slave's copy from 10:05 on, or the master's own when it is back at 10:06, is 9."""

    def lines():
        for each in without_masters(["broker-a"], range(5, ends), lambda _: (509, 9)):
            minute = minute_of(each)
            if each["kind"] == "consume_stats" and each["broker_name"] == "broker-a" and minute > 5:
                now = 100 * minute + 9, 9 + 10 * (minute - 6)
                yield offsets(60 * minute + 11, "broker-a", now)
            else:
                yield each

    (fault,) = (f for f in audit(lines())["group_faults"] if f["fault"] == "OFFSETS_WENT_BACK")
    assert fault["remedy"].startswith(f"find out why {who}")


@pytest.mark.parametrize("ahead", [300, 0])
def test_an_offset_beyond_the_brokers_is_said_and_is_no_backlog(audit, ahead):
    """Those of two queues are ahead of what was written; 9 messages wait in each other queue."""

    def read(minute, name):
        ahead_of = {0: (500, 500 + ahead), 1: (500, 600)} if name == "broker-a" and ahead else {}
        return dict.fromkeys(range(4), in_turn(minute)) | ahead_of

    found = audit(rounds(read=read))
    (health,) = (each for each in found["group_health"] if each["topic"] == "T")
    assert health["backlog"] == (54 if ahead else 72)
    said = "the group's offset is up to 300 beyond the last message in queues 0-1 of broker-a"
    assert (said in (health["reason"] or "")) == bool(ahead)
    assert (found["group_faults"], found["stalled_queues"]) == ([], [])


def test_members_that_are_all_cut_off_from_a_broker_are_one_outage_since_its_queues_stopped(audit):
    """No client reaches broker-b from 10:04 on; at 10:07 it drops the last of them."""

    def lines():
        for each in gone_at(["broker-b"], stop=range(4)):
            is_list = each["kind"] == "consumer_connection" and each["broker_name"] == "broker-b"
            if is_list and each["collected_at"] >= "2026-11-20T10:07":
                yield {**{k: v for k, v in each.items() if k != "body"}, **OFFLINE}
            else:
                yield each

    found = audit(lines())
    (fault,) = found["group_faults"]
    assert (fault["fault"], fault["first_seen"]) == ("GROUP_NOT_ON_BROKER", instant(240))
    assert "queues 0-3 of broker-b have not moved since 10:04:00 UTC" in fault["evidence"]
    (why,) = {row["why"] for row in found["stalled_queues"]}
    assert why.startswith("its process does not reach the broker")

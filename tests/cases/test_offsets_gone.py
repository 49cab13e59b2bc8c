"""A broker that lost its offsets, and answers: small dumps, the truth reckoned before the run."""

from __future__ import annotations

import json

import pytest

from jobs.cli import main
from tests.cases.small_dumps import (
    MEMBERS,
    MINUTES,
    OFFLINE,
    TIMED_OUT,
    asked,
    holds,
    instant,
    members,
    of_broker,
    offsets,
    rounds,
    route,
    with_slave,
)
from tests.support.audited import queues

LEFT = 3
LOST = 8


def away(minute, name=""):
    """The offsets of a group that left at 10:03; 100 messages a minute come to each queue."""
    return 100 * minute + 9, 100 * min(minute, LEFT)


def is_listed(minute, _name=""):
    return OFFLINE if minute >= LEFT else [f"10.0.0.{n}@{n}" for n in range(4)]


def lost(minute, name):
    """Broker-a has no offset from 10:08 on."""
    return {} if name == "broker-a" and minute >= LOST else away(minute)


def begins(lines, where):
    """The lists, whose members begin there without an offset."""
    for each in lines:
        if each["kind"] == "consumer_connection" and "body" in each:
            body = json.loads(each["body"]) | {"consumeFromWhere": where}
            yield each | {"body": json.dumps(body)}
        else:
            yield each


def of_kind(found, kind="OFFSETS_GONE"):
    return [each for each in found["group_faults"] if each["fault"] == kind]


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("CONSUME_FROM_LAST_OFFSET", "reads from the end"),
        ("CONSUME_FROM_FIRST_OFFSET", "reads from the beginning (consumeFromWhere"),
        ("CONSUME_FROM_TIMESTAMP", "reads from consumeTimestamp"),
        ("WHEREVER", "from the beginning or from the end"),
    ],
)
def test_offsets_that_are_gone_are_told_with_where_the_group_begins(audit, where, words):
    found = audit(begins(rounds(listed=is_listed, read=lost), where))
    (fault,) = of_kind(found)
    assert (fault["topic"], fault["broker_names"]) == ("T", ["broker-a"])
    assert (fault["first_seen"], fault["last_seen"]) == (instant(480), instant(840))
    assert (fault["ongoing"], fault["severity"]) == (True, "WARNING")
    assert fault["evidence"].startswith(
        "since 10:08:00 UTC broker-a answers without any offset of the group; until 10:07:00 UTC "
        "it had those of queues 0-3 of broker-a, where 1,636 messages waited; at its next start"
    )
    assert words in fault["evidence"]
    at = round(instant(420).timestamp() * 1000)
    assert f"mqadmin resetOffsetByTime -g G -t T -s {at}" in fault["remedy"]


def test_it_is_told_at_once(audit):
    (fault,) = of_kind(audit(rounds(is_listed, lost, minutes=range(LOST + 1))))
    assert (fault["first_seen"], fault["persistence"]) == (instant(480), "PERSISTENT")


def test_the_broker_that_came_back_without_them_is_its_event(audit):
    """Broker-a restarts: at 10:06 and 10:07 it does not answer, and no route has its master."""

    def lines(minute):
        is_away = minute in (6, 7)
        for each in asked(minute, is_listed, lost):
            is_of_a = each.get("broker_name") == "broker-a"
            if is_of_a and is_away and each["kind"] == "consume_stats":
                continue
            if is_of_a and is_away:
                yield {k: v for k, v in each.items() if k != "body"} | TIMED_OUT
            elif each["kind"] == "topic_route":
                addrs = with_slave("broker-a")
                if is_away:
                    del addrs["broker-a"]["0"]
                yield route(60 * minute, "broker-a", "broker-b", addrs=addrs)
            else:
                yield each

    found = audit(each for minute in MINUTES for each in lines(minute))
    (fault,) = of_kind(found)
    assert "the master of broker-a was away from 10:06:00 to 10:08:00 UTC" in fault["evidence"]
    (event,) = (each for each in found["events"] if each["event_id"] == fault["event_id"])
    assert (event["kind"], event["subject"]) == ("MASTER_LEFT", "broker-a")


def test_by_pop_the_broker_begins_anew(audit):
    def lines():
        yield from rounds(is_listed, lost)
        mode = {"topic": "T", "consumerGroup": "G", "mode": "POP", "popShareQueueNum": 0}
        for minute in MINUTES:
            body = {"messageRequestModeMap": {"T": {"G": mode}}}
            yield of_broker("message_request_mode", 60 * minute + 30, "broker-a", body)

    (fault,) = of_kind(audit(lines()))
    assert "by POP the broker itself keeps the offsets" in fault["evidence"]


def silent(minute, name):
    """No answer about the group's offsets at broker-a from 10:08 on."""
    return None if name == "broker-a" and minute >= LOST else away(minute)


def never(minute, name):
    """Broker-a never had an offset of the group."""
    return {} if name == "broker-a" else away(minute)


def nothing_committed(minute, name):
    """Nor were there any but zeros."""
    return ({} if minute >= LOST else (9, 0)) if name == "broker-a" else away(minute)


@pytest.mark.parametrize("read", [silent, never, nothing_committed])
def test_what_did_not_come_or_was_never_there_is_not_gone(audit, read):
    assert of_kind(audit(rounds(is_listed, read))) == []


def error(minute):
    """An error is no answer without offsets."""
    yield from asked(minute, is_listed, silent)
    if minute >= LOST:
        yield of_broker("consume_stats", 60 * minute + 11, "broker-a", TIMED_OUT)


def of_its_slave(minute):
    """The answer of a slave shows nothing of its master."""
    yield from asked(minute, is_listed, silent)
    if minute >= LOST:
        yield offsets(60 * minute + 11, "broker-a", {}) | {"broker_id": 1}


def of_another_topic(minute):
    """Another answer of the same round shows that it has some."""
    yield from asked(minute, is_listed, away)
    yield offsets(60 * minute + 30, "broker-a", {})


def topic_deleted(minute):
    for each in asked(minute, is_listed, lost):
        is_late_route = each["kind"] == "topic_route" and minute >= LOST
        yield route(60 * minute, "broker-b") if is_late_route else each


def subscribes_to_u(minute):
    """A release of a POP group: from 10:08 on it subscribes to U alone."""
    for each in asked(minute, read=lost):
        is_list = each["kind"] == "consumer_connection" and minute >= LOST
        name = each.get("broker_name", "")
        second = 60 * minute + 1 + (name == "broker-b")
        yield members(second, name, is_listed(0), topics=("U",)) if is_list else each
    yield route(60 * minute, "broker-a", "broker-b", topic="U")


def group_deleted(minute):
    """From 10:08 on broker-a has neither its offsets nor its configuration, nor has broker-b."""
    yield from asked(minute, is_listed, lost)
    for number, name in enumerate(("broker-a", "broker-b")):
        groups = {} if minute >= LOST else {"G": {"groupName": "G"}}
        body = {"subscriptionGroupTable": {"OTHER": {"groupName": "OTHER"}} | groups}
        given = of_broker("subscription_group", 60 * minute + 20 + number, name, body)
        yield {key: value for key, value in given.items() if key != "consumer_group"}


@pytest.mark.parametrize(
    "lines",
    [error, of_its_slave, of_another_topic, topic_deleted, subscribes_to_u, group_deleted],
)
def test_what_shows_no_loss_or_takes_the_offsets_with_it_is_none(audit, lines):
    assert of_kind(audit(each for minute in MINUTES for each in lines(minute))) == []


@pytest.mark.parametrize(("stays", "is_found"), [(True, True), (False, False)])
def test_a_broker_at_a_new_address_lost_them_unless_two_of_one_name_answer_in_turn(
    audit, stays, is_found
):
    """From 10:08 on another broker-a answers, in each round, or in each other one."""

    def lines(minute):
        is_other = minute >= LOST and (stays or minute % 2 == 0)
        for each in asked(minute, is_listed, lost if is_other else away):
            is_of_other = is_other and each.get("broker_name") == "broker-a"
            yield each | ({"broker_addr": "10.9.9.9:10911"} if is_of_other else {})

    assert bool(of_kind(audit(each for minute in MINUTES for each in lines(minute)))) == is_found


@pytest.mark.parametrize(("rounds_without", "is_found"), [(1, False), (4, True)])
def test_members_that_run_commit_again_what_they_know(audit, rounds_without, is_found):
    """At the end of the window; of a group that runs more than one round has to show it."""

    def running(minute, name):
        is_lost = name == "broker-a" and minute >= len(MINUTES) - rounds_without
        return {} if is_lost else (100 * minute + 9, 100 * minute)

    assert bool(of_kind(audit(rounds(read=running)))) == is_found


def test_offsets_that_are_there_again_were_not_lost_for_long(audit):
    def running(minute, name):
        is_lost = name == "broker-a" and minute in (8, 9)
        return {} if is_lost else (100 * minute + 9, 100 * minute)

    found = audit(rounds(read=running))
    assert (found["group_faults"], queues(found["stalled_queues"])) == ([], set())


def test_a_group_that_began_anew_at_the_beginning_went_back(audit):
    """It comes again at 10:11, and reads from the beginning what it had read."""

    def listed(minute, name):
        return is_listed(0) if minute >= 11 else is_listed(minute)

    def read(minute, name):
        begins_anew = name == "broker-a" and minute >= 11
        return (100 * minute + 9, 20 * (minute - 10)) if begins_anew else lost(minute, name)

    found = audit(rounds(listed, read))
    (gone,), (back,) = of_kind(found), of_kind(found, "OFFSETS_WENT_BACK")
    assert (gone["last_seen"], gone["ongoing"]) == (instant(600), False)
    assert (back["last_seen"], back["broker_names"]) == (instant(660), ["broker-a"])


# ---------------------------------------------------------------- members that run

BACK = 6


def rates(of_minute):
    """At 10:05 broker-a does not answer, and at 10:06 it has no offset: members that run commit
    what they know. Each queue gets 100 messages a minute, which is 6.7 a second for all four.
    ``of_minute``: the rates that broker-a gives from 10:07 on; it gives those of a minute.
    """

    def lines(minute):
        yield from asked(minute)
        for name in ("broker-a", "broker-b"):
            if name == "broker-a" and minute in (BACK - 1, BACK):
                if minute == BACK:
                    yield offsets(60 * minute + 11, name, {})
                continue
            tps = of_minute.get(minute, 6.7) if name == "broker-a" else 6.7
            now = (100 * minute + 1_009, 100 * minute + 1_000)
            yield offsets(60 * minute + 11, name, now, tps=tps)

    return (each for minute in MINUTES for each in lines(minute))


def test_members_that_run_and_begin_anew_read_again_what_the_broker_counts(audit):
    """At 10:04 1,400 messages of each queue are committed; at 10:07 broker-a gave 606.7 a second
    in 10 s at least. Of these 6,000, and some, 4 times 309 can be new.
    """
    (fault,) = of_kind(audit(rates({7: 606.7, 8: 100.0})))
    assert fault["evidence"].startswith(
        "at 10:06:00 UTC broker-a answered without any offset of the group, whose members ran; "
        "until 10:04:00 UTC it had those of queues 0-3 of broker-a"
    )
    again = 6_000 - 4 * 309
    assert f"at least {again:,} messages were read again" in fault["evidence"]
    assert "gave 606.7 a second" in fault["evidence"]
    assert "at its next start" not in fault["evidence"]
    assert (fault["severity"], fault["ongoing"]) == ("WARNING", False)
    assert "resetOffsetByTime" not in fault["remedy"]


@pytest.mark.parametrize(
    "of_minute",
    [
        # They kept what they know, as members that use assign() do.
        {},
        # They catch up with what came meanwhile.
        {7: 124.0, 8: 20.0},
        # Two read each queue, before it too.
        dict.fromkeys(range(15), 13.4),
        # The broker caught up before it, and its rates go on.
        dict.fromkeys((4, 7), 606.7),
    ],
)
def test_rates_that_are_new_messages_show_nothing_read_again(audit, of_minute):
    assert of_kind(audit(rates(of_minute))) == []


# ---------------------------------------------------------------- offsets that end early


#: What the four members hold, by a strategy of their own: broker-a's queue 3 is read twice, and
#: broker-b's queue 2 by nobody.
_HELD = [
    [("broker-a", 0), ("broker-a", 1)],
    [("broker-a", 2), ("broker-a", 3)],
    [("broker-b", 0), ("broker-b", 1)],
    [("broker-a", 3), ("broker-b", 3)],
]


def lines(*, is_orphan_read):
    """Ten messages a minute come to each queue; broker-b gives no offsets after minute 5."""
    for minute in MINUTES:
        yield from asked(minute)
        for number, client_id in enumerate(MEMBERS):
            yield holds(60 * minute + 3 + number, client_id, _HELD[number], "CompanyStrategy")
        read = dict.fromkeys(range(4), (10 * minute, 10 * minute))
        yield offsets(60 * minute + 10, "broker-a", read)
        if minute <= 5:
            orphan = {2: (10 * minute, 10 * minute if is_orphan_read else 1)}
            yield offsets(60 * minute + 11, "broker-b", read | orphan)


@pytest.mark.parametrize(
    ("is_orphan_read", "said"),
    [
        (False, "At least 49 messages wait (no offsets of 4 of 8 queues)."),
        (True, "No message is known to wait (no offsets of 4 of 8 queues)."),
    ],
)
def test_explain_says_what_waits_at_least(tmp_path, capsys, monkeypatch, is_orphan_read, said):
    path = tmp_path / "dump.jsonl"
    found = lines(is_orphan_read=is_orphan_read)
    path.write_text("".join(json.dumps(each) + "\n" for each in found))
    monkeypatch.chdir(tmp_path)

    assert main(["explain", "--dumps", str(path), "--group", "G"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert said in text
    queue = "Not consumed at 2026-11-20T10:14:00.000Z broker-b 2: 49 messages "
    assert (queue in text) is not is_orphan_read

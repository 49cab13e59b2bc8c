"""What is worth a line of the group's health and is no alarm: numbers reckoned before the run."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.cases.small_dumps import (
    BROKERS,
    MEMBERS,
    MINUTES,
    OFFLINE,
    asked,
    instant,
    of_broker,
    of_slave,
    offsets,
    rounds,
    route,
)


def reasons(audit, read):
    """By topic the reason of a fleet with these offsets, of which nothing is found."""
    found = audit(rounds(read=read))
    assert found["group_faults"] == found["stalled_queues"] == []
    return {row["topic"]: row["reason"] for row in found["group_health"]}


@pytest.mark.parametrize("written", [(0,), (0, 1)])
def test_a_topic_of_which_one_queue_is_written(audit, written):
    def read(minute, name):
        now = {number: 2 * (100 * minute + 9,) for number in written if name == "broker-b"}
        return dict.fromkeys(range(4), (7, 7)) | now

    said = "all 1,400 new messages went to queue 0 of broker-b, one of 8 queues: one consumer"
    assert reasons(audit, read)["T"].startswith(said) == (written == (0,))


@pytest.mark.parametrize(
    ("rounds", "came", "read", "said"),
    [
        # 8 queues with 100 messages each.
        ((0, 10), 0, 900, "800 messages wait in queues 0-3 of broker-a and queues 0-3 of broker-b"),
        (range(15), 0, 900, "did not move from 10:00:00 to 10:14:00 UTC: no other queue moved"),
        # Since messages wait there: nothing moved before they came either.
        (range(15), 5, 900, "did not move from 10:05:00 to 10:14:00 UTC"),
        # Not for 180 s, nothing waits, the group never committed.
        ((0, 2), 0, 900, None),
        (range(15), 0, 1_000, None),
        (range(15), 0, 0, None),
    ],
)
def test_queues_that_wait_and_stand_are_said_where_no_rule_decides(audit, rounds, came, read, said):
    def of_queues(minute, _):
        return (1_000 if minute >= came else 900, read) if minute in rounds else None

    reason = reasons(audit, of_queues)["T"]
    assert (said in reason) if said else ("did not move" not in reason)


@pytest.mark.parametrize(("again", "is_said"), [(40, True), (5, False)])
def test_messages_that_are_tried_again_beside_those_that_are_consumed(audit, again, is_said):
    """Of 60 messages a minute in the 8 queues of both brokers so many are sent back."""

    def read(minute, _):
        numbers = {("T", n): 8 * minute if n else 6 * minute for n in range(4)}
        numbers["%RETRY%G", 0] = again // 2 * minute
        return {queue: (number + 9, number + 9) for queue, number in numbers.items()}

    said = (
        "560 messages were sent back for another try, each time that one of them failed, while "
        "840 were consumed"
    )
    assert (said in reasons(audit, read)["T"]) == is_said


@pytest.mark.parametrize("by_turns", [True, False])
def test_a_broker_whose_address_goes_to_and_fro(audit, by_turns):
    """At another one in each second minute, or for some minutes, after which it moved back."""

    def lines():
        for minute in MINUTES:
            moved = minute % 2 if by_turns else 4 <= minute <= 9
            for each in asked(minute):
                other = {"broker_addr": "10.0.0.9:10911"} if moved else {}
                yield each | (other if each.get("broker_name") == "broker-a" else {})

    (health,) = (row for row in audit(lines())["group_health"] if row["topic"] == "T")
    said = "broker-a was asked at 10.0.0.9:10911, broker-a:10911 in turn (14 changes)"
    assert (said in health["reason"]) == by_turns
    assert ("in turn (" in health["reason"]) == by_turns


@pytest.mark.parametrize("name", ["${clientIP}", "10.0.0.7"])
def test_a_placeholder_in_an_id_that_one_process_has(audit, name):
    ids = [f"{name}@{number}" for number in range(4)]
    found = audit(rounds(ids))
    assert found["group_faults"] == []
    (reason,) = {row["reason"] for row in found["group_health"] if row["topic"] == "T"}
    assert reason.startswith("client ids contain ${clientIP}") == (name == "${clientIP}")


def failing(minutes, *, retries, fails, asks_for_dead_letters=True):
    """Of 40 messages a minute on each of two brokers these fail, at each of their tries."""
    again = dead = 9
    for minute in minutes:
        table = dict.fromkeys([("T", queue) for queue in range(4)], 2 * (10 * minute + 9,))
        yield from asked(minute, read=table | {("%RETRY%G", 0): (again, again)})
        for name in BROKERS if asks_for_dead_letters and minute % 5 == 0 else ():
            key = json.dumps({"brokerName": name, "queueId": 0, "topic": "%DLQ%G"})
            stats = of_broker("topic_stats", 60 * minute + 20, name, {})
            body = f'{{"offsetTable":{{{key}:{{"minOffset":0,"maxOffset":{dead}}}}}}}'
            yield stats | {"body": body}
        again += retries * fails(minute)
        dead += fails(minute)


def always(number):
    return lambda _: number


def test_a_group_of_which_every_message_ends_as_a_dead_letter(audit):
    """Each is tried twice more: of 240 tries a minute 160 come again and 80 are given up."""
    found = audit(failing(range(31), retries=2, fails=always(40)))
    (fault,) = found["group_faults"]
    assert (fault["fault"], fault["topic"], fault["severity"]) == ("MESSAGES_FAIL", "T", "CRITICAL")
    assert (fault["first_seen"], fault["last_seen"]) == (instant(0), instant(1800))
    assert fault["ongoing"]
    assert fault["evidence"] == (
        "100% of 7,200 attempts to consume a message failed from 10:00:00 to 10:30:00 UTC; "
        "2,400 messages were given up and are in %DLQ%G"
    )
    assert "resend what is in %DLQ%G" in fault["remedy"]
    (reason,) = {row["reason"] for row in found["group_health"] if row["topic"] == "T"}
    assert "2,400 messages were given up and are in %DLQ%G" in reason


@pytest.mark.parametrize(
    ("topic", "fails"),
    [
        ("%RETRY%G", True),
        # By POP the group has a retry topic of each topic.
        ("%RETRY%G_T", True),
        ("%RETRY%G+T", True),
        # What another group failed at, whatever its name, is consumed like any topic.
        ("%RETRY%H", False),
        ("%RETRY%G2", False),
        ("%RETRY%G_U", False),
        ("%RETRY%", False),
    ],
)
def test_only_its_own_retry_topic_shows_that_a_group_fails(audit, topic, fails):
    """Each minute 10 messages come to T and 150 to a retry topic; the group consumes all."""

    def read(minute, _):
        at = {("T", 0): 5 * minute + 9, (topic, 0): 75 * minute + 9}
        return {queue: (number, number) for queue, number in at.items()}

    subscribed = ("T",) if fails else ("T", topic)
    lines = (
        each
        for minute in MINUTES
        for each in [
            *asked(minute, read=read, topics=subscribed),
            route(60 * minute, *BROKERS, topic=topic, queues=1),
        ]
    )
    found = audit(lines)
    assert [row["fault"] for row in found["group_faults"]] == ["MESSAGES_FAIL"] * fails
    (reason,) = {row["reason"] for row in found["group_health"] if row["topic"] == "T"}
    assert ("were sent back for another try" in reason) == fails


@pytest.mark.parametrize(("retries", "share"), [(16, "94% of 40,800"), (9, "90% of 24,000")])
def test_retries_alone_show_that_nearly_all_tries_fail(audit, retries, share):
    """By default each is tried 16 times more: of 17 tries 16 come again."""
    lines = failing(range(31), retries=retries, fails=always(40), asks_for_dead_letters=False)
    (fault,) = audit(lines)["group_faults"]
    assert fault["fault"] == "MESSAGES_FAIL"
    assert fault["evidence"].startswith(f"{share} attempts to consume a message failed")


@pytest.mark.parametrize(
    ("retries", "fails"),
    [
        pytest.param(2, always(4), id="a tenth fails"),
        pytest.param(16, always(2), id="a twentieth fails, and often"),
        pytest.param(2, lambda minute: 40 if 10 <= minute < 15 else 0, id="a burst that ends"),
    ],
)
def test_where_most_tries_succeed_the_group_works(audit, retries, fails):
    assert audit(failing(range(31), retries=retries, fails=fails))["group_faults"] == []


def _ahead(minute, ahead):
    """Queue 0 of broker-a is so far ahead, and the others are read as they are written."""
    return dict.fromkeys(range(4), (100 * minute + 9, 100 * minute)) | {0: ahead(minute)}


@pytest.mark.parametrize(
    ("of_queue", "said"),
    [
        pytest.param(lambda _: (500, 540), "lost messages, or the offset was set", id="always"),
        # From 10:05 on the broker has 300 of 500, and nothing comes.
        pytest.param(
            lambda m: (500, 500) if m < 5 else (300, 500),
            "and stayed so: the broker lost",
            id="lost",
        ),
        pytest.param(lambda m: (500, 500 if m < 5 else 900), ": the offset was set too", id="set"),
        # At 10:05 a slave gives the end, 300 of 500; the offset was set to 900.
        pytest.param(
            lambda m: (300 if m == 5 else 500, 500 if m < 5 else 900),
            "lost messages, or the offset was set",
            id="set as a slave answers",
        ),
        # The broker lost 200 of 500, and gets 10 a minute again.
        pytest.param(
            lambda m: (500 if m < 5 else 250 + 10 * m, 500),
            "and stayed so: the broker lost",
            id="lost, and more comes",
        ),
        # 40 ahead of the end, and 60 behind it, by turns; ahead at the last polls too.
        pytest.param(lambda m: (1_000, 1_040 if m % 2 else 940), None, id="to and fro"),
        pytest.param(lambda m: (1_000, 1_040 if m != 11 else 940), None, id="behind a while ago"),
        # Read as it is written: the end was read a moment before the offset.
        pytest.param(lambda m: (100 * m, 100 * m + 40), None, id="moves on"),
        pytest.param(lambda m: (500, 500 if m < 13 else 900), None, id="for a minute"),
    ],
)
def test_an_offset_beyond_the_end_is_said_where_it_lasts_and_stands(audit, of_queue, said):
    def read(minute, name):
        return _ahead(minute, of_queue) if name == "broker-a" else None

    reason = audit(rounds(read=read))["group_health"][0]["reason"] or ""
    assert (said in reason) if said else ("beyond the last message" not in reason)


def test_the_end_that_a_slave_gives_while_the_master_is_away_is_no_loss(audit):
    """The master is away from 10:05 on; its slave has 300 of 500, and answers in its place."""

    def lines():
        for minute in MINUTES:
            is_away = minute >= 5
            for each in asked(minute, read=lambda m, _: _ahead(m, lambda _: (500, 500))):
                is_of_a = each.get("broker_name") == "broker-a"
                if is_away and is_of_a:
                    answer = {"error_code": -1, "error_message": "timeout"}
                    kept = {key: value for key, value in each.items() if key != "body"}
                    yield kept | answer
                    told = (
                        each
                        if each["kind"] == "consumer_connection"
                        else offsets(
                            60 * minute + 10, "broker-a", _ahead(minute, lambda _: (300, 500))
                        )
                    )
                    yield of_slave(told)
                else:
                    yield each

    reason = audit(lines())["group_health"][0]["reason"] or ""
    assert "beyond the last message" not in reason


# ---------------------------------------------------------------- every message fails, for hours


#: The minutes until a message comes again, by the number of its tries (``messageDelayLevel``).
DELAYS = (1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30, 60, 120)
END = 180


def offsets_of(retries, down=(), away=(), works=()):
    """By minute what came, what was consumed, both of retries, and the dead letters, in all.

    80 messages come in a minute. ``down``: no client is there; ``away``: no broker; ``works``: the
    listener succeeds.
    """
    came = consumed = again = again_consumed = dead = 0
    due, waiting = Counter(), Counter()
    for minute in range(END):
        if minute not in away:
            came, waiting[0] = came + 80, waiting[0] + 80
            for (at, tries), number in list(due.items()):
                if at <= minute:
                    again, waiting[tries] = again + number, waiting[tries] + number
                    del due[at, tries]
        if minute not in (*down, *away):
            for tries, number in waiting.items():
                consumed, again_consumed = (
                    consumed + number * (not tries),
                    again_consumed + number * bool(tries),
                )
                if minute in works:
                    continue
                if tries == retries:
                    dead += number
                else:
                    due[minute + DELAYS[tries], tries + 1] += number
            waiting.clear()
        yield minute, came, consumed, again, again_consumed, dead


def lines_of_failing(retries, step=1, missing=(), down=(), away=(), works=()):
    """``missing``: of these minutes there is no round; ``step``: the minutes between two rounds."""
    for minute, *of_topic, again, again_consumed, dead in offsets_of(retries, down, away, works):
        if minute % step or minute in missing:
            continue
        numbers = tuple(1_000 + number // 8 for number in of_topic)
        read = {("T", queue): numbers for queue in range(4)}
        read["%RETRY%G", 0] = (9 + again // 2, 9 + again_consumed // 2)
        yield from asked(minute, OFFLINE_IF[minute in down], None if minute in away else read)
        for name in BROKERS if retries < len(DELAYS) and minute % 5 == 0 else ():
            key = json.dumps({"brokerName": name, "queueId": 0, "topic": "%DLQ%G"})
            body = f'{{"offsetTable":{{{key}:{{"minOffset":0,"maxOffset":{9 + dead // 2}}}}}}}'
            yield of_broker("topic_stats", 60 * minute + 20, name, {}) | {"body": body}


OFFLINE_IF = {True: lambda *_: OFFLINE, False: MEMBERS}


def failures(audit, **of):
    faults = audit(lines_of_failing(**of))["group_faults"]
    return [each for each in faults if each["fault"] == "MESSAGES_FAIL"]


@pytest.mark.parametrize("retries", [2, 16])
@pytest.mark.parametrize(
    "of",
    [
        pytest.param({}, id="always"),
        pytest.param({"down": range(60, 85)}, id="the clients are restarted"),
        pytest.param({"away": range(60, 70)}, id="the brokers are restarted"),
        pytest.param({"missing": range(60, 90)}, id="rounds are missing"),
        pytest.param({"down": range(60, 70), "missing": range(62, 80)}, id="both"),
        pytest.param({"down": range(60, 70), "step": 5}, id="rounds of 300 s"),
        pytest.param({"down": range(140, END)}, id="the clients are stopped at last"),
        pytest.param({"down": range(168, 172)}, id="they came back just now"),
    ],
)
def test_it_is_one_fault_that_goes_on(audit, retries, of):
    (fault,) = failures(audit, retries=retries, **of)
    assert fault["ongoing"]
    # By default the retries show it half an hour after it began, dead letters at once.
    assert fault["first_seen"] <= instant(31 * 60)


@pytest.mark.parametrize("retries", [2, 16])
def test_a_listener_that_was_mended_ends_it(audit, retries):
    """Since 12:00; what failed before comes again, and is consumed."""
    (fault,) = failures(audit, retries=retries, works=range(120, END))
    assert not fault["ongoing"]
    assert fault["last_seen"] <= instant(130 * 60)


@pytest.mark.parametrize("retries", [2, 16])
def test_half_an_hour_in_which_the_listener_succeeds_parts_two_faults(audit, retries):
    before, after = failures(audit, retries=retries, works=range(90, 120))
    assert (before["ongoing"], after["ongoing"]) == (False, True)

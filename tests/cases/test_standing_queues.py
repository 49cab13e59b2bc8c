"""Queues of one process that stand: one message beside newer ones, a process that hangs, or a count
that is wrong. Four members have two queues each, 100 messages a minute come to every queue.
"""

import pytest

from tests.cases.small_dumps import MEMBERS, MINUTES, SHARES, asked, holds, in_turn, instant

HUNG_AT = 240
CACHED = {"cachedMsgCount": 32, "cachedMsgMinOffset": 400, "cachedMsgMaxOffset": 431}
#: What client-go gives: zeros, where its cache is empty.
MISCOUNTED = {"cachedMsgCount": 1024, "cachedMsgMinOffset": 0, "cachedMsgMaxOffset": 0}


def millis(second):
    return round(1_000 * instant(second).timestamp())


def stands(which, facts, *, in_order=False, language="JAVA", who=MEMBERS[:1]):
    """From 10:04 on these queues of each of ``who``, by place, stand at 400.

    ``facts``: what its process says of them by then, at a second.
    """
    stuck = {SHARES[client_id][place] for client_id in who for place in which}

    def read(minute, name):
        return {
            number: (100 * minute + 9, min(100 * minute, 400))
            if (name, number) in stuck
            else in_turn(minute)
            for number in range(4)
        }

    for minute in MINUTES:
        yield from asked(minute, read=read, language=language)
        for number, (client_id, share) in enumerate(SHARES.items()):
            second = 60 * minute + 20 + number
            moves = {
                "lastPullTimestamp": millis(second),
                "lastConsumeTimestamp": millis(second - 1),
                "locked": in_order,
                "lastLockTimestamp": millis(second - 5),
            }
            held = {queue: dict(moves) for queue in share}
            if minute >= 4:
                for queue in stuck.intersection(share):
                    held[queue] |= facts(second)
            yield holds(second, client_id, held, PROP_CONSUMEORDERLY=str(in_order).lower())


def tries_again(second):
    """Each second its listener fails at the first message, and is given it again."""
    return CACHED | {"lastConsumeTimestamp": millis(second - 1)}


def waits(_):
    """Its listener has the first message since then; nothing is pulled, for the cache is full."""
    return CACHED | dict.fromkeys(("lastConsumeTimestamp", "lastPullTimestamp"), millis(HUNG_AT))


def pulls_on(second):
    return waits(second) | {"lastPullTimestamp": millis(second)}


def has_one_alone(_):
    """The one message that it has is at its listener."""
    at_listener = {"transactionMsgCount": 1, "transactionMsgMinOffset": 400}
    return {"cachedMsgCount": 0, "lastConsumeTimestamp": millis(HUNG_AT)} | at_listener


def without_times(_):
    return CACHED | dict.fromkeys(("lastConsumeTimestamp", "lastPullTimestamp"), 0)


@pytest.mark.parametrize("facts", [tries_again, waits, pulls_on, has_one_alone, without_times])
def test_a_client_in_order_whose_queues_all_stand_hangs(audit, facts):
    found = audit(stands((0, 1), facts, in_order=True))
    (fault,) = found["group_faults"]
    assert (fault["fault"], fault["client_ids"]) == ("FROZEN_PROCESS", MEMBERS[:1])
    assert (fault["first_seen"], fault["ongoing"]) == (instant(HUNG_AT), True)
    assert len(found["stalled_queues"]) == 2
    (why,) = {row["why"] for row in found["stalled_queues"]}
    assert why.startswith("a listener hangs: its process has messages of the queue")
    assert why.endswith("no other queue of the process moves")


def test_in_order_one_message_holds_up_its_queue_alone(audit):
    found = audit(stands((0,), tries_again, in_order=True))
    assert found["group_faults"] == []
    (stall,) = found["stalled_queues"]
    assert stall["why"].startswith(
        "one message is not finished, and those behind it wait, for the group consumes in order: "
        "the one at offset 400, since 10:04:00 UTC; "
    )


def test_a_client_in_order_that_waits_for_a_lock_does_not_hang(audit):
    found = audit(stands((0,), lambda _: {"locked": False}, in_order=True))
    assert found["group_faults"] == []
    (stall,) = found["stalled_queues"]
    assert stall["why"].startswith("no lock: its process consumes in order")


@pytest.mark.parametrize(
    ("facts", "hangs"),
    [
        # Newer messages are done: the listener works, and one message of each queue is not.
        (tries_again, False),
        (waits, True),
        (pulls_on, True),
        # No time shows it; of 400 to 431 all are there.
        (without_times, True),
        (lambda second: without_times(second) | {"cachedMsgMaxOffset": 900}, False),
    ],
)
def test_one_message_is_not_finished_only_where_newer_ones_are(audit, facts, hangs):
    found = audit(stands((0, 1), facts))
    assert [row["fault"] for row in found["group_faults"]] == ["FROZEN_PROCESS"] * hangs
    said = "a listener hangs" if hangs else "one message is not finished although newer ones are"
    assert all(row["why"].startswith(said) for row in found["stalled_queues"])


@pytest.mark.parametrize(
    "facts", [MISCOUNTED, {"cachedMsgCount": 1000}, MISCOUNTED | {"cachedMsgCount": 20}]
)
def test_a_count_without_a_first_and_a_last_message_is_no_listener_that_hangs(audit, facts):
    found = audit(stands((0, 1), lambda _: facts, language="GO"))
    (fault,) = found["group_faults"]
    assert fault["fault"] == "FROZEN_PROCESS"
    assert fault["remedy"].startswith(f"restart {MEMBERS[0]}, and update it: it counts cached")
    assert len(found["stalled_queues"]) == 2
    assert all(row["why"].startswith("a wrong count: ") for row in found["stalled_queues"])


@pytest.mark.parametrize(
    ("language", "facts"),
    [("GO", CACHED | {"cachedMsgCount": 1024}), ("JAVA", {"cachedMsgCount": 1000})],
)
def test_a_full_cache_whose_messages_are_there_is_a_listener_that_hangs(audit, language, facts):
    """Java gives the size of its cache: it cannot be wrong."""
    old = {"lastConsumeTimestamp": millis(HUNG_AT)}
    found = audit(stands((0, 1), lambda _: facts | old, language=language))
    (fault,) = found["group_faults"]
    assert "blocked in its listener" in fault["remedy"]
    assert all(row["why"].startswith("a listener hangs") for row in found["stalled_queues"])


@pytest.mark.parametrize(
    ("facts", "in_order", "said", "remedy"),
    [
        (lambda _: MISCOUNTED, False, "count cached messages, up to the limit", "restart "),
        (tries_again, True, "do not finish the first message of their caches", "take a thread"),
        (waits, True, "have messages in their caches and consume none", "take a thread dump"),
    ],
)
def test_of_a_group_that_stands_it_is_said_what_its_clients_have(
    audit, facts, in_order, said, remedy
):
    lines = stands((0, 1), facts, in_order=in_order, language="GO", who=MEMBERS)
    (fault,) = audit(lines)["group_faults"]
    assert fault["fault"] == "GROUP_NOT_CONSUMING"
    assert said in fault["evidence"]
    assert "no client has a message waiting" not in fault["evidence"]
    assert fault["remedy"].startswith(remedy)

"""Two processes that commit the offset of one queue in turn."""

from __future__ import annotations

from tests.cases.small_dumps import BROKERS, MEMBERS, SHARES, asked, holds

QUEUE = BROKERS[0], 0


def in_turn(minute, name):
    """Of the first queue the last commit is by turns that of its owner and of one 400 behind."""
    behind = 4 if minute % 2 and minute > 4 else 0
    return {
        number: (100 * minute + 9, 100 * (minute - (behind if (name, number) == QUEUE else 0)))
        for number in range(4)
    }


def rounds(*, informed):
    for minute in range(15):
        yield from asked(minute, read=in_turn)
        for number, client_id in enumerate(MEMBERS if informed else ()):
            own = {queue: {"commitOffset": 100 * minute} for queue in SHARES[client_id]}
            if number == 3:  # which holds a queue that is not its own
                own[QUEUE] = {"commitOffset": max(100 * minute - 400, 0)}
            yield holds(60 * minute + 20 + number, client_id, own)


def test_the_one_whose_running_info_has_the_lower_offset_is_named(audit):
    (fault,) = (f for f in audit(rounds(informed=True))["group_faults"] if "BACK" in f["fault"])
    assert "the offsets of queue 0 of broker-a went to and fro from 10:04:00" in fault["evidence"]
    # From 400 at 10:04 to 900 at 10:13: by the net nothing is consumed again.
    assert "by the net 0 messages are consumed again" in fault["evidence"]
    assert f"by running infos {MEMBERS[3]} (JAVA) commits the lower offset" in fault["evidence"]


def test_without_running_infos_nobody_is_named(audit):
    (fault,) = audit(rounds(informed=False))["group_faults"]
    assert "went to and fro" in fault["evidence"]
    assert "running info" not in fault["evidence"]

"""A group of which every message fails, whatever is restarted and whichever rounds are missing."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.cases.small_dumps import BROKERS, MEMBERS, OFFLINE, asked, instant, of_broker

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


def lines(retries, step=1, missing=(), down=(), away=(), works=()):
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


def failing(audit, **of):
    faults = audit(lines(**of))["group_faults"]
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
    (fault,) = failing(audit, retries=retries, **of)
    assert fault["ongoing"]
    # By default the retries show it half an hour after it began, dead letters at once.
    assert fault["first_seen"] <= instant(31 * 60)


@pytest.mark.parametrize("retries", [2, 16])
def test_a_listener_that_was_mended_ends_it(audit, retries):
    """Since 12:00; what failed before comes again, and is consumed."""
    (fault,) = failing(audit, retries=retries, works=range(120, END))
    assert not fault["ongoing"]
    assert fault["last_seen"] <= instant(130 * 60)


@pytest.mark.parametrize("retries", [2, 16])
def test_half_an_hour_in_which_the_listener_succeeds_parts_two_faults(audit, retries):
    before, after = failing(audit, retries=retries, works=range(90, 120))
    assert (before["ongoing"], after["ongoing"]) == (False, True)

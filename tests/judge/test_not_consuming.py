"""A group that has members and consumes nothing of a topic."""

from __future__ import annotations

import pytest

from jobs.declared.dossier import Dossier, PollRun
from jobs.judge.observe.holdings_index import index_holdings
from jobs.judge.observe.situations import Situations
from jobs.judge.rules.found import GroupFindings
from jobs.judge.rules.not_consuming import not_consuming
from tests.judge.phases import case, queue_finding, route
from tests.judge.witnesses import (
    AGREED,
    BROKER,
    TOPIC,
    at,
    evaluated,
    holdings_of,
    in_seconds,
    info,
    log,
    offsets,
    periods,
    steady,
    stuck,
)

MINUTES = (0, 60, 120, 180, 240, 300)


def found(
    queues, clients=(), *, orphaned=(), processes=2, coverage="AUDITED", at_last=None, **of_group
):
    """``at_last``: the coverage from 270 s on."""
    dossier = Dossier("C", of_group.pop("group", "G"), offsets={TOPIC: queues}, **of_group)
    coverages = {"one": coverage, "two": at_last or coverage}
    of = case(
        dossier=dossier,
        situations=Situations({TOPIC: periods([("one", -60), ("two", 270)])}),
        evaluated={name: evaluated(AGREED, processes, each) for name, each in coverages.items()},
        holdings=index_holdings(holdings_of(clients) if clients else ()),
        snapshots=(),
    )
    orphans = (queue_finding(0, 600, queue=(BROKER, each)) for each in orphaned)
    return list(not_consuming(of, GroupFindings(queues=tuple(orphans))).faults)


def times(faults):
    return [(in_seconds(each.first_seen), in_seconds(each.last_seen)) for each in faults]


TWO = [offsets(number, stuck(*MINUTES)) for number in (0, 1)]


@pytest.mark.parametrize(
    ("queues", "changed"),
    [
        pytest.param([stuck(*MINUTES), steady(*MINUTES)], {}, id="one queue moves"),
        pytest.param([dict.fromkeys(MINUTES, (50, 20))], {}, id="nothing comes"),
        pytest.param([stuck(*MINUTES[:3])], {}, id="it does not last"),
        pytest.param([stuck(*MINUTES)], {"processes": 0}, id="nobody is there"),
        pytest.param([stuck(*MINUTES)], {"coverage": "BROADCASTING"}, id="each reads for itself"),
        pytest.param([stuck(*MINUTES)], {"orphaned": [0]}, id="it has no owner"),
        pytest.param([{}], {}, id="no poll"),
    ],
)
def test_what_is_no_such_group(queues, changed):
    assert found([offsets(number, each) for number, each in enumerate(queues)], **changed) == []


def test_two_rounds_far_apart_show_it_too():
    """A client commits each 5 s: in 300 s at the same offset nothing was consumed."""
    assert times(found([offsets(0, stuck(0, 300))])) == [(0, 300)]
    assert found([offsets(0, stuck(0, 300)), offsets(1, steady(0, 300))]) == []


def test_a_queue_that_is_not_polled_may_move():
    stays = offsets(0, stuck(*MINUTES))
    # The broker of the other one is away, and then it has moved.
    assert found([stays, offsets(1, steady(0, 300))]) == []
    # It is not polled any more.
    assert found([stays, offsets(1, steady(0, 60))]) == []
    # It is where it was, and nothing waits in it: its broker came back with old offsets.
    assert found([stays, offsets(1, {0: (5, 5), 300: (5, 5)})]) == []
    # It is where it was, and messages wait.
    assert times(found([stays, offsets(1, stuck(0, 300))])) == [(0, 300)]


def test_it_begins_with_the_last_move():
    some = steady(0, 60) | {each: (each, 60) for each in (120, 180, 240, 300, 360)}
    assert times(found([offsets(0, some)])) == [(120, 360)]


def test_a_topic_that_a_release_no_longer_subscribes_to_is_said_so():
    (fault,) = found([offsets(0, stuck(*MINUTES))], coverage="NOT_SUBSCRIBED")
    said = "more than at the start; no member subscribes to the topic any more"
    assert fault.evidence.endswith(said)
    assert "subscribe to the topic again" in fault.remedy
    # As it was at the last poll.
    (fault,) = found([offsets(0, stuck(*MINUTES))], at_last="NOT_SUBSCRIBED")
    assert "subscribe to the topic again" in fault.remedy
    # Nothing comes: its producers have left too.
    assert found([offsets(0, dict.fromkeys(MINUTES, (50, 20)))], coverage="NOT_SUBSCRIBED") == []


def disabled(**seconds):
    """By broker the snapshots in which ``consumeEnable`` of the group was read as false."""
    return {f"broker-{name}": tuple(map(at, read_at)) for name, read_at in seconds.items()}


def test_a_broker_that_does_not_let_the_group_consume_is_the_cause():
    """It was forbidden before the first poll; the reading after the last one is of another time."""
    polled = PollRun(("broker-a", 0), "list", (at(0),), (at(0),), "10.0.0.1:10911")
    (fault,) = found(
        TWO,
        consume_disabled=disabled(a=(-60, *MINUTES, 600), b=MINUTES),
        routes={TOPIC: [route([], 0, namesrv_addr="ns-1:9876")]},
        polls=[polled],
    )
    assert fault.evidence.endswith(
        "; consumeEnable of the subscription group was false at broker-a from 00:00:00 to 00:05:00 "
        "UTC: the broker refuses every pull of the group"
    )
    assert fault.remedy == (
        "let the group consume again: mqadmin updateSubGroup -n ns-1:9876 -b 10.0.0.1:10911 -g "
        "G -s true, and with it all options of the group that are not mqadmin's defaults, because "
        "it sets them all"
    )


ON_BOTH = [offsets(0, stuck(*MINUTES), broker_name=f"broker-{name}") for name in "ab"]


def test_all_brokers_that_refuse_are_named_and_names_are_words_of_a_shell():
    refused = disabled(a=MINUTES[1:], b=MINUTES[2:])
    (fault,) = found(ON_BOTH, consume_disabled=refused, group="a;reboot")
    said = "false at broker-a and broker-b from 00:01:00 to 00:05:00 UTC: the brokers refuse"
    assert said in fault.evidence
    assert fault.remedy.startswith(
        "let the group consume again: mqadmin updateSubGroup -n NAMESRV_ADDR -c C -g 'a;reboot' "
        "-s true, and"
    )


@pytest.mark.parametrize(
    ("read_at", "is_whole"),
    [
        pytest.param({"a": MINUTES, "b": (0, 60, 120, 180, 240)}, True, id="a reading is missing"),
        pytest.param({"a": MINUTES}, False, id="broker-b does not refuse"),
        pytest.param({"a": MINUTES, "b": (0, 60, 120, 180)}, False, id="broker-b does no more"),
    ],
)
def test_what_the_flags_do_not_explain_is_still_to_be_seen(read_at, is_whole):
    (fault,) = found(ON_BOTH, consume_disabled=disabled(**read_at))
    assert "updateSubGroup -n" in fault.remedy
    assert ("jstack" not in fault.remedy) == is_whole
    assert ("suspended its consumers" not in fault.remedy) == is_whole


def test_what_was_said_or_read_at_another_time_and_the_logs_show_nothing():
    queues, expected = TWO[:1], found(TWO[:1])
    clients = [info("a", 400, [0, 1]), log("p", "b", 60, [2, 3])]
    assert found(queues, clients) == expected
    assert found(queues, consume_disabled=disabled(a=(-60, 600), b=MINUTES)) == expected

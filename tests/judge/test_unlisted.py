"""Orphans by lists and routes that somebody reads all the same."""

from dataclasses import replace

import pytest

from jobs.judge.observe.holdings_index import index_holdings
from jobs.judge.rules.episodes import witnessed
from jobs.judge.rules.unlisted import without_refuted
from jobs.judge.times import Extent
from tests.judge.phases import case, queue_finding
from tests.judge.witnesses import BROKER, TOPIC, at, offsets, steady, stuck

MINUTES = (0, 60, 120, 180, 240, 300)
WHOLE = Extent(at(0), at(300), 6, "PERSISTENT", ongoing=True)


def orphan(queue_id=0, certainty="CERTAIN", causes=("GROUP_OFFLINE",), kind="ORPHANED", **changes):
    of = {"kind": kind, "queue": (BROKER, queue_id), "certainty": certainty, "causes": causes}
    return replace(queue_finding(topic=TOPIC, **of), **{"extent": WHOLE} | changes)


def seen(episodes, queues):
    by_queue = {(each.topic, each.broker_name, each.queue_id): each for each in queues}
    of = case(offsets=by_queue, holdings=index_holdings([]))
    return [witnessed(of, each) for each in episodes]


def refuted(episodes, *queues):
    every = seen(episodes, queues)
    kept = without_refuted(every)
    return [each not in kept for each in every]


def test_an_offset_that_somebody_reset_moves_once_and_refutes_nothing():
    polls = {second: (1000, 10 if second < 120 else 900) for second in MINUTES}
    assert refuted([orphan()], offsets(0, polls)) == [False]


def test_what_is_read_in_the_gaps_of_an_episode_refutes_nothing():
    times = tuple((at(second), at(second)) for second in MINUTES[::2])
    with_gaps = orphan(times=times, extent=WHOLE._replace(share_of_time=0.5))
    assert refuted([with_gaps], offsets(0, steady(*MINUTES))) == [False]


@pytest.mark.parametrize(("until", "is_refuted"), [(600, True), (601, False)])
def test_what_moves_in_less_than_half_of_the_time_refutes_nothing_of_all_of_it(until, is_refuted):
    # Offsets of five of ten minutes: a collector that began late, a topic that came late.
    episode = orphan(extent=WHOLE._replace(last_seen=at(until)))
    assert refuted([episode], offsets(0, steady(*MINUTES))) == [is_refuted]


def test_where_a_group_that_no_broker_lists_reads_an_idle_queue_is_no_orphan_either():
    moving, idle = offsets(0, steady(*MINUTES)), offsets(1, dict.fromkeys(MINUTES, (5, 5)))
    waiting = offsets(2, stuck(*MINUTES))
    episodes = [orphan(0), orphan(1), orphan(2)]
    assert refuted(episodes, moving, idle, waiting) == [True, True, False]
    # Nobody reads: an idle queue of a group that is gone stays an orphan.
    assert refuted(episodes[1:], idle, waiting) == [False, False]


def test_what_may_be_an_orphan_is_read_throughout_where_its_offset_moves_at_each_poll():
    def read(polls, **changes):
        (found,) = seen([orphan(**changes)], [offsets(0, polls)] if polls else [])
        return found.is_read_throughout

    polls = steady(*MINUTES)
    assert read(polls, certainty="POSSIBLE")
    assert not read(polls), "what is certain is refuted, or no orphan at times"
    assert not read(polls, certainty="POSSIBLE", kind="DUPLICATE")
    # Nobody read it for a minute.
    once = polls | {180: (polls[180][0], polls[120][1])}
    assert not read(once, certainty="POSSIBLE")
    assert not read({}, certainty="POSSIBLE")

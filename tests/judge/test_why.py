"""Why a queue stands still: what its process says and does."""

from __future__ import annotations

import pytest

from jobs.declared.dossier import Dossier
from jobs.judge.observe.brokers import Absence
from jobs.judge.observe.holdings_index import index_holdings
from jobs.judge.rules import why
from jobs.judge.rules.found import FaultEpisode, GroupFindings
from jobs.judge.rules.why import DISABLED, FROZEN, OTHER_FILTER, REFUSED
from tests.judge.phases import case, extent
from tests.judge.witnesses import (
    AGREED,
    TOPIC,
    at,
    evaluated,
    holdings_of,
    info,
    offsets,
    stalls_of,
    steady,
    stuck,
    timeline,
)

MINUTES = (0, 60, 120, 180, 240)


def explained(clients, *others, faults=(), **of_group):
    """``held`` and ``why`` of queue 1, which is computed for a and stands still."""
    queues = [offsets(1, stuck(*MINUTES)), offsets(2, steady(*MINUTES)), *others]
    by_queue = {(each.topic, each.broker_name, each.queue_id): each for each in queues}
    timelines = {TOPIC: timeline([("one", 0, 600)], {"one": evaluated(AGREED)})}
    holdings = index_holdings(holdings_of(clients))
    of = case(holdings=holdings, timelines=timelines, offsets=by_queue, **of_group)
    stalled = stalls_of(queues, owners={"one": AGREED}, holdings=holdings_of(clients))
    found = stalled.plus(faults)
    (stall,) = [each for each in why.explained(of, found).stalls if each.queue[1] == 1]
    return stall.held, stall.why


def holding(activity=None, held=(0, 1)):
    said = info("a", MINUTES, held)
    doing = [e._replace(activity=activity if e.queue_id == 1 else None) for e in said.queues]
    return [said._replace(queues=tuple(doing)), info("b", MINUTES, [2, 3])]


@pytest.mark.parametrize(
    ("activity", "because"),
    [("NOT_CONSUMING", "a listener hangs"), ("NOT_LOCKED", "no lock"), ("NOT_PULLING", "no pull")],
)
def test_what_the_process_says_of_the_queue_explains_it(activity, because):
    held, text = explained(holding(activity), offsets(0, steady(*MINUTES)))
    assert held
    assert text.startswith(because)
    assert not text.endswith("no other queue of the process moves")


def filters_differ(first=0, last=600, lasts="PERSISTENT"):
    return FaultEpisode(
        TOPIC, extent(first, last, persistence=lasts), "EXPRESSION_MISMATCH", "", ""
    )


def test_where_filters_differ_the_broker_refuses_the_pulls_of_a_process_that_is_well():
    mismatch = filters_differ()
    assert explained(holding(None), faults=[mismatch]) == (True, OTHER_FILTER)
    assert explained([], faults=[mismatch]) == (None, OTHER_FILTER)
    # What the process itself says of the queue weighs more.
    _, text = explained(holding("NOT_CONSUMING"), faults=[mismatch])
    assert text.startswith("a listener hangs")
    for other in (filters_differ(300), filters_differ(lasts="TRANSIENT")):
        assert explained(holding(None), faults=[other]) == (True, REFUSED)


def test_where_the_broker_does_not_let_the_group_consume_that_is_why():
    disabled = Dossier("C", "G", consume_disabled={"broker-a": (at(60), at(120))})
    for clients, held in ((holding("NOT_CONSUMING"), True), (holding(held=[0]), False), ([], None)):
        assert explained(clients, dossier=disabled) == (held, DISABLED)
    for other in ({"broker-a": (at(600),)}, {"broker-b": (at(60),)}):
        dossier = Dossier("C", "G", consume_disabled=other)
        assert explained(holding(None), dossier=dossier) == (True, REFUSED)


def test_a_process_whose_pulls_are_refused_is_not_frozen():
    queues = [offsets(0, stuck(*MINUTES)), offsets(2, steady(*MINUTES))]
    timelines = {TOPIC: timeline([("one", 0, 600)], {"one": evaluated(AGREED)})}
    frozen = list(stalls_of(queues, owners={"one": AGREED}).faults)
    assert [each.client_ids for each in frozen] == [("a",)]

    def left(clients, *mismatch, away=(), **disabled):
        of = case(
            holdings=index_holdings(holdings_of(clients)),
            timelines=timelines,
            dossier=Dossier("C", "G", consume_disabled=disabled),
            masters_away=away,
            snapshots=[at(each) for each in MINUTES],
        )
        kept = why.without_refused(of, GroupFindings(faults=(*frozen, *mismatch)))
        return [each for each in kept.faults if each.fault == "FROZEN_PROCESS"]

    assert left([]) == frozen
    assert left([], filters_differ()) == left(holding(None), filters_differ()) == []
    assert left(holding("NOT_CONSUMING"), filters_differ()) == frozen
    assert left([], **{"broker-a": (at(60),)}) == []
    assert left([], **{"broker-b": (at(60),)}) == frozen
    # Nor is one of a broker without a master, if it had none then.
    away = Absence("broker-a", at(0), at(180), at(240), unrouted=True, silent=True)
    assert left([], away=[away]) == []
    assert left([], away=[away._replace(broker_name="broker-b")]) == frozen
    assert left([], away=[away._replace(begins=at(-120), last_seen=at(-60), ends=at(0))]) == frozen


def test_without_running_infos_a_frozen_process_is_told_by_the_offsets_alone():
    assert explained([]) == (None, FROZEN)
    assert explained([], offsets(0, steady(*MINUTES))) == (None, None)

"""Committed offsets that went back: messages that are consumed again."""

from __future__ import annotations

import numpy as np
import pytest

from jobs.declared.dossier import Dossier, PollRun, QueueOffsets
from jobs.judge.observe.brokers import Absence
from jobs.judge.rules.found import GroupFindings
from jobs.judge.rules.offsets_lost import went_back
from tests.judge.phases import at, case, queue_finding
from tests.judge.witnesses import client


def backwards(
    *consumed,
    written=None,
    topic="T",
    masters_away=(),
    addresses=(),
    every=60,
    clients=(),
    duplicate=None,
):
    """``addresses``: by minute where the master of broker-a was asked; ``every``: seconds from one
    poll to the next; ``duplicate``: a queue that two read.
    """
    times = np.array([at(every * n) for n in range(len(consumed))], np.int64)
    written = np.array(written or [1000] * len(consumed), np.int64)
    queue = QueueOffsets(topic, "broker-a", 3, times, written, np.array(consumed, np.int64))
    dossier = Dossier("C", "G", offsets={topic: [queue]}, clients=[*clients])
    found = GroupFindings()
    if duplicate:
        found = found.plus((), [queue_finding(kind="DUPLICATE", queue=("broker-a", duplicate))])
    for minute, address in enumerate(addresses):
        asked = (at(60 * minute),)
        dossier.polls.append(PollRun(("broker-a", 0), "NOT_ONLINE", asked, asked, address))
    return list(went_back(case(dossier=dossier, masters_away=masters_away), found).faults)


@pytest.mark.parametrize(
    ("consumed", "written"),
    [
        ((100, 200, 300, 400, 500), None),
        # By less than three minutes: a slave that answers for its master.
        ((100, 200, 300, 400, 350, 450), None),
        # The topic was made anew.
        ((100, 200, 300, 400, 0, 0), [1000, 1000, 1000, 1000, 5, 5]),
    ],
)
def test_what_is_a_little_behind_or_begins_anew_did_not_go_back(consumed, written):
    assert backwards(*consumed, written=written) == []


@pytest.mark.parametrize(("ends", "is_found"), [(240, False), (None, False), (170, True)])
def test_two_copies_of_an_offset_are_none_that_went_back(ends, is_found):
    """A real master was killed: its slave answered 1006 of an idle queue, then it itself 1005."""
    away = Absence("broker-a", at(120), at(120), ends and at(ends), unrouted=True, silent=True)
    assert bool(backwards(6, 6, 6, 6, 6, 5, 6, masters_away=[away])) == is_found


@pytest.mark.parametrize("has_slave", [False, True])
def test_what_is_gone_after_a_restart_is_told_with_it(has_slave):
    """26 million and more to 0. A slave has the old offsets while its master is away."""
    away = Absence("broker-a", at(120), at(240), at(300), True, True, at(120), has_slave)
    many = [26_000_000] * 5
    (fault,) = backwards(*many, 0, 0, 9, written=[26_000_000] * 8, masters_away=[away])
    assert (fault.first_seen, fault.last_seen) == (at(240), at(420 if has_slave else 300))
    assert fault.evidence.endswith(
        f"from 26,000,000 to {9 if has_slave else 0}; the master of broker-a was away from "
        "00:02:00 to 00:05:00 UTC"
    )
    assert fault.remedy.startswith("find out why broker-a came back with older offsets")


def test_a_master_that_comes_back_and_is_brought_up_by_its_clients_lost_nothing():
    """It has the offsets of when it left, until its clients commit what they consumed meanwhile."""
    away = Absence("broker-a", at(120), at(360), at(420), True, True, followed=at(120))
    slave = (100, 200, 290, 350, 450, 550, 650)
    assert backwards(*slave, 210, 700, 800, written=[999] * 10, masters_away=[away]) == []


def test_a_client_that_is_sent_back_to_the_end_consumes_nothing_again():
    assert backwards(400, 500, 600, 360_100, 360_100, 1000, 1000) == []


@pytest.mark.parametrize("every", [60, 120, 300])
def test_of_two_that_commit_in_turn_the_net_counts(every):
    consumed = (100, 200, 300, 90, 400, 190, 500, 290, 600)
    (fault,) = backwards(*consumed, every=every)
    assert fault.evidence.startswith("the offsets of queue 3 of broker-a went to and fro from 00:")
    net = "3 times back: two processes commit in turn; by the net 10 messages are consumed again"
    assert net in fault.evidence
    assert fault.remedy.startswith("find out why two processes commit offsets of one queue")


def test_who_has_the_lower_offset_in_its_running_info_is_named():
    consumed = (100, 200, 300, 90, 400, 190, 500, 290, 600)
    infos = [client("RUNNING_INFO", name, [3], times=[(at(240), at(240))]) for name in "abc"]
    later = client("RUNNING_INFO", "d", [3], behind=(0,), times=[(at(540), at(540))])
    infos[1] = infos[1]._replace(behind=(0,))
    infos[2] = infos[2]._replace(behind=(7,))
    (fault,) = backwards(*consumed, clients=[*infos, later])
    assert "by running infos b commits the lower offset; the furthest" in fault.evidence


def test_what_is_set_back_twice_is_consumed_again_twice():
    (fault,) = backwards(100, 200, 300, 400, 500, 50, 400, 500, 600, 700, 100, written=None)
    assert "1,050 messages are consumed again" in fault.evidence

"""Clients that brokers list and that do not answer."""

from __future__ import annotations

import pytest

from jobs.declared.dossier import Dossier
from jobs.declared.instants import SECOND
from jobs.judge.observe.answers import broker_answers, gone_clients
from jobs.judge.result.severity import Harms
from jobs.judge.rules.found import GroupFindings
from jobs.judge.rules.silent import silent_clients
from tests.judge.lists import group, started
from tests.judge.phases import at, case
from tests.judge.witnesses import AGREED, TOPIC, allocated, evaluated, info, timeline

MINUTES = (0, 60, 120, 180, 240)


def silent(clients, segments=(("one", 0, 2400),), allocations=AGREED):
    situations = {"one": evaluated(allocations), "none": evaluated(AGREED[1:])}
    of = case(
        dossier=Dossier("C", "G", clients=clients),
        timelines={TOPIC: timeline(segments, situations)},
    )
    return list(silent_clients(of, GroupFindings()).faults)


def error(client_id, seconds=MINUTES, **facts):
    return info(client_id, seconds, [], error_code=1, queues=None, **facts)


def test_a_listed_client_that_does_not_answer_while_others_do_is_a_fault():
    (fault,) = silent([error("a"), info("b", MINUTES, [2, 3])])
    assert (fault.fault, fault.client_ids) == ("CLIENT_NOT_ANSWERING", ("a",))
    assert fault.remedy.startswith("check whether a hangs (")
    extent = fault.extent
    assert (extent.persistence, extent.ongoing, extent.snapshots) == ("PERSISTENT", True, 5)
    assert fault.evidence == (
        "a is listed and did not answer 5 questions for its running info from 00:00:00 to "
        "00:04:00 UTC, while other clients answered"
    )


def test_an_sdk_none_of_whose_clients_answers_may_not_know_the_question():
    go = [error("a", language="CPP"), info("b", MINUTES, [2, 3], language="JAVA")]
    assert silent(go) == []
    same = [error("a", language="JAVA"), info("b", MINUTES, [2, 3], language="JAVA")]
    assert len(silent(same)) == 1


def test_a_client_that_is_in_no_list_any_more_needs_not_answer():
    gone = (("one", 0, 30), ("none", 60, 600))
    assert silent([error("a"), info("b", MINUTES, [2, 3])], segments=gone) == []


def test_single_questions_that_are_lost_are_no_fault():
    asked = [error("a", (60,)), error("a", (240,)), info("a", (0, 120, 180), [0, 1])]
    assert silent([*asked, info("b", MINUTES, [2, 3])]) == []


def test_who_is_asked_more_and_more_seldom_is_found_by_who_answers_in_between():
    """As the collector asks: others each five minutes, who does not answer after 5, 10 and 20."""
    others = info("b", range(0, 2400, 300), [2, 3])
    (fault,) = silent([info("a", 0, [0, 1]), error("a", (60, 420, 1080)), others])
    assert fault.extent.snapshots == 3
    # Who is silent, too, is asked in the same rounds: the first one may have been lost.
    two = [info(each, 0, [0, 1]) for each in "ac"] + [
        error(each, (60, 420, 1080, 2340)) for each in "ac"
    ]
    agreed = (*AGREED, allocated("c", []))
    assert [each.client_ids for each in silent([*two, others], allocations=agreed)] == [
        ("a",),
        ("c",),
    ]
    # A collector that is cut off for ten minutes shows nothing, however often it asks.
    answered = [info(each, (0, 660, 720), [2, 3]) for each in "ab"]
    cut_off = [error(each, range(60, 660, 60)) for each in "ab"]
    assert silent([*answered, *cut_off]) == []


@pytest.mark.parametrize(
    ("sdk", "seconds", "may_be_ours"),
    [
        ({"language": "JAVA", "version": 479}, MINUTES, True),
        ({"language": "JAVA", "version": 441}, MINUTES, False),
        ({"language": "GO", "version": 479}, MINUTES, False),
        ({"language": "JAVA", "version": None}, MINUTES, False),
        ({"language": "JAVA", "version": 479}, (0, 300, 900), False),
    ],
)
def test_who_is_asked_again_while_a_question_may_be_under_way_may_be_stopped_by_that(
    sdk, seconds, may_be_ours
):
    (fault,) = silent([error("a", seconds, **sdk), info("b", seconds, [2, 3], **sdk)])
    assert fault.may_be_ours == may_be_ours
    assert ("the collector's own questions may be the cause" in fault.evidence) == may_be_ours
    assert fault.remedy.startswith("first collect for a while with --without") == may_be_ours
    severity = Harms([], [], 0.9).severity_of(fault)
    assert severity == ("INFO" if may_be_ours else "WARNING")


# ---------------------------------------------------------------- clients that died without a word


def polls(*listed, every=60):
    """What a broker lists, round by round."""
    return [(every * n, every * n, of_round) for n, of_round in enumerate(map(list, listed))]


def gone(clients, *listed):
    """By client id since when it is dead and until when it is listed, in seconds."""
    dossier = group({"x": polls(*listed)}, clients=clients)
    found = gone_clients(dossier, broker_answers(dossier.polls), 130 * SECOND)
    return {
        client_id: ((each.begins - at(0)) / SECOND, (each.last_seen - at(0)) / SECOND)
        for client_id, each in found.items()
    }


def answered(client_id, *seconds):
    return started(client_id, 0, *seconds)


def silence(*seconds, error_code=207):
    return started("a", 0, *seconds)._replace(start_timestamp=None, error_code=error_code)


OTHER = answered("b", 0, 60, 120, 180, 240)
#: a answers at 0 s alone, and is listed until 120 s.
LISTED = ("ab", "ab", "ab", "b", "b")


def test_a_client_that_answers_no_more_and_leaves_the_lists_in_time_is_silent():
    assert gone([answered("a", 0), silence(60, 120), OTHER], *LISTED) == {"a": (30, 120)}


def test_an_answer_that_was_lost_before_is_none_of_them():
    # It is listed until 240 s, so that the broker heard it after 60 s.
    clients = [answered("a", 0), silence(60, 120, 180, 240), OTHER, answered("b", 300)]
    assert gone(clients, *["ab"] * 5, "b") == {"a": (110, 240)}


@pytest.mark.parametrize(
    ("clients", "listed"),
    [
        # It never answered: its SDK may not know the question.
        ([silence(60, 120), OTHER], LISTED),
        # It answers again: it was frozen, or its answers were lost.
        ([answered("a", 0, 180), silence(60, 120), OTHER], LISTED),
        # It is in the last list: it may hang, and send heartbeats.
        ([answered("a", 0), silence(60, 120, 180, 240), OTHER], ["ab"] * 5),
        # One question: it stopped in order between the list and the question.
        ([answered("a", 0, 60), silence(120), OTHER], LISTED),
        # Nobody else answers either: it is the collector.
        ([answered("a", 0), silence(60, 120), answered("b", 0)], LISTED),
        # The broker that was asked does not list it, and could not ask it.
        ([answered("a", 0), silence(60, 120, error_code=1), OTHER], LISTED),
    ],
)
def test_nothing_is_shown(clients, listed):
    assert gone(clients, *listed) == {}

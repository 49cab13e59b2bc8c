"""Clients that brokers list and that do not answer."""

from __future__ import annotations

from jobs.judge.dossier import Dossier
from jobs.judge.found import GroupFindings
from jobs.judge.silent import silent_clients
from tests.judge.phases import case
from tests.judge.witnesses import AGREED, TOPIC, evaluated, info, timeline

MINUTES = (0, 60, 120, 180, 240)


def silent(clients, segments=(("one", 0, 600),), allocations=AGREED):
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


def test_where_nobody_answers_it_may_be_the_collector():
    assert silent([error("a"), error("b")]) == []
    assert silent([error("a")]) == []


def test_an_sdk_none_of_whose_clients_answers_may_not_know_the_question():
    go = [error("a", language="CPP"), info("b", MINUTES, [2, 3], language="JAVA")]
    assert silent(go) == []
    same = [error("a", language="JAVA"), info("b", MINUTES, [2, 3], language="JAVA")]
    assert len(silent(same)) == 1


def test_one_broker_may_pass_on_the_answer_that_another_one_did_not():
    assert silent([error("a"), info("a", MINUTES, [0, 1]), info("b", MINUTES, [2, 3])]) == []


def test_a_client_that_is_in_no_list_any_more_needs_not_answer():
    gone = (("one", 0, 30), ("none", 60, 600))
    assert silent([error("a"), info("b", MINUTES, [2, 3])], segments=gone) == []


def test_single_questions_that_are_lost_are_no_fault():
    asked = [error("a", (60,)), error("a", (240,)), info("a", (0, 120, 180), [0, 1])]
    assert silent([*asked, info("b", MINUTES, [2, 3])]) == []

"""What the window shows before a fault: remedies that fit it."""

from __future__ import annotations

from jobs.declared.dossier import Dossier, ListedMembers, PollRun, RouteRun
from jobs.judge.result.known_before import with_history
from jobs.judge.rules.found import GroupFindings
from rebalance_core.state import RouteBroker
from tests.judge.phases import case
from tests.judge.test_severity import fault_of

MISSING = fault_of("GROUP_NOT_ON_BROKER", broker_names=("broker-b",), remedy="updateSubGroup")


def remedy(*, listed_before=False, broker_ids=(0, 1), addresses=()):
    first_seen = MISSING.first_seen
    dossier = Dossier("C", "G")
    broker = RouteBroker("broker-b", broker_ids, 6, 4, 4, None)
    dossier.routes[MISSING.topic] = [RouteRun("ns", "r", (broker,), (first_seen,), (first_seen,))]
    if listed_before:
        dossier.list_members["l"] = lambda: ListedMembers(("a",), ("h:1",))
        dossier.polls.append(PollRun(("broker-b", 0), "l", (first_seen - 1,), (first_seen - 1,)))
    for number, address in enumerate(addresses):
        asked = (first_seen - 10 + number,)
        dossier.polls.append(PollRun(("broker-b", 0), "NOT_ONLINE", asked, asked, address))
    (found,) = with_history(case(dossier=dossier), GroupFindings(faults=(MISSING,))).faults
    return str(found.remedy)


def test_what_repairs_a_broker_without_the_group_follows_from_its_history():
    assert remedy() == "updateSubGroup"
    assert remedy(listed_before=True).startswith("check whether the clients reach broker-b, also")
    away = remedy(listed_before=True, broker_ids=(1,))
    assert away.startswith("bring the master of broker-b back")
    moved = remedy(listed_before=True, addresses=("10.0.0.1:10911", "10.0.0.2:10911"))
    assert moved.startswith(
        "the address of broker-b changed from 10.0.0.1:10911 to 10.0.0.2:10911: restart the clients"
    )

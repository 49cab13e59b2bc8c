"""findings against the known issues: which are marked, and by which entry."""

from __future__ import annotations

import re

import pytest

from jobs.config.masking import Masking
from jobs.config.terms import KnownIssueTerms
from jobs.declared.dossier import Dossier, ListedMembers, PollRun, RouteRun
from jobs.declared.kinds import QUEUE_FINDINGS
from jobs.judge.result.known_before import with_history
from jobs.judge.rules.found import (
    FaultEpisode,
    GroupFindings,
    StackedEpisode,
    entries_of,
    known_issue,
)
from jobs.schemas import REPORT_TABLES
from rebalance_core.findings import Claimant
from rebalance_core.state import RouteBroker
from tests.judge.phases import case, extent, queue_finding, stacked_id, stall
from tests.judge.test_severity import fault_of

CLUSTER = "DefaultCluster"


def entry(reason="why", queues=None, kinds=None, **patterns):
    compiled = {key: re.compile(each) for key, each in ({"groups": ".*"} | patterns).items()}
    queues, kinds = (each and frozenset(each) for each in (queues, kinds))
    return KnownIssueTerms(reason, tuple(compiled.items()), queues, kinds)


def queue(kind="ORPHANED", topic="T", clients=()):
    claimants = tuple(Claimant(each, 1, 1.0) for each in clients)
    return queue_finding(kind=kind, topic=topic, claimants=claimants)


def reasons(found, *entries, group="G"):
    """The reason of each finding."""
    of_group = entries_of(Dossier(CLUSTER, group), entries)
    return [known_issue(each, of_group, Masking()) for each in found]


@pytest.mark.parametrize(
    ("known", "is_marked"),
    [
        (entry(groups="G"), True),
        (entry(groups="G|H"), True),
        (entry(groups="H"), False),
        (entry(groups="g"), False),
        (entry(clusters=f"{CLUSTER}"), True),
        (entry(clusters="other"), False),
        (entry(topics="T"), True),
        (entry(topics="%RETRY%.*"), False),
        (entry(brokers="broker-[ab]"), True),
        (entry(brokers="broker"), False),  # over the whole name
        (entry(queues=(0, 3)), True),
        (entry(queues=(1,)), False),
        (entry(kinds=("DUPLICATE", "STALLED")), True),
        (entry(kinds=("ORPHANED",)), False),
        (entry(clients=r"10\.0\.0\..*"), True),
        (entry(clients=r"10\.0\.0\.1@.*"), False),  # each of them
        (entry(groups="G", topics="T", queues=(0,), kinds=("ORPHANED",)), False),
    ],
)
def test_all_that_an_entry_says_has_to_fit(known, is_marked):
    found = [queue("DUPLICATE", clients=("10.0.0.1@a", "10.0.0.2@a"))]

    assert reasons(found, known) == ["why" if is_marked else None]


def test_a_client_id_with_a_secret_is_known_by_itself_and_as_reports_show_it():
    client_id = "10.0.0.1@user|12345678|T|1"
    shown = Masking().mask(client_id)
    assert shown != client_id

    def known(name):
        (reason,) = reasons([queue(clients=(client_id,))], entry(clients=re.escape(name)))
        return reason

    assert known(client_id) == known(shown) == "why"
    assert known(shown.replace("T", "U")) is None


def test_the_first_entry_that_matches_marks_a_finding():
    found = [queue(topic=topic) for topic in ("A", "B", "C")]
    known = [entry("one", topics="A"), entry("two", topics="A|B")]

    assert reasons(found, *known) == ["one", "two", None]


def test_a_finding_without_a_client_is_not_known_by_one():
    assert reasons([queue()], entry(clients=".*")) == [None]


def test_a_stacked_id_is_known_by_its_verdict_and_where_all_its_topics_are():
    def marked(**keys):
        found = [
            StackedEpisode(("T", "%RETRY%G"), extent(), stacked_id("id", processes=processes))
            for processes in (2, 1)
        ]
        return [each is not None for each in reasons(found, entry(**keys))]

    assert marked(kinds=("STACKED",)) == [True, False]
    assert marked(topics="T") == [False, False]
    assert marked(topics="T|%RETRY%G") == [True, True]
    assert marked(clients="id", kinds=("STALE_CHANNEL",)) == [False, True]
    assert marked(brokers=".*") == [False, False]  # it is on no broker in particular
    assert marked(queues=(0,)) == [False, False]


def test_a_fault_is_known_by_its_name_its_clients_and_its_brokers():
    def marked(**keys):
        found = [
            FaultEpisode("T", extent(), "STRATEGY_MISMATCH", "", "", client_ids=("a", "b")),
            FaultEpisode("T", extent(), "ROUTE_DIVERGENCE", "", "", broker_names=("broker-a",)),
        ]
        return [each is not None for each in reasons(found, entry(**keys))]

    assert marked(kinds=("ROUTE_DIVERGENCE",)) == [False, True]
    assert marked(clients="a") == [False, False]
    assert marked(clients="[ab]") == [True, False]
    assert marked(brokers="broker-.*") == [False, True]


def test_a_stall_is_known_by_its_owners():
    found = [stall(owners=("a", "b"))]

    assert reasons(found, entry(clients="a")) == [None]
    assert reasons(found, entry(clients="a|b", kinds=("STALLED",))) == ["why"]


def test_every_table_that_can_be_marked_has_the_column():
    with_column = {table.name for table in REPORT_TABLES if "known_issue" in table.schema.names}
    assert with_column == {*QUEUE_FINDINGS, "stacked_client_ids", "group_faults", "group_health"}


# ---------------------------------------------------------------- known before the window


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

"""dossier, evaluated situations -> the rows of every report table: how the rules go together."""

from __future__ import annotations

import numpy as np

from jobs.declared.dossier import Dossier, EarlierFinding, PollRun, QueueOffsets
from jobs.judge.history import judge
from jobs.judge.observe.arrow_tables import to_table
from jobs.judge.observe.situations import find_situations
from jobs.judge.rules.case import Case
from jobs.schemas import REPORT_TABLES
from rebalance_core import MessageQueue
from tests.judge.phases import (
    TERMS,
    at,
    broker,
    evaluated,
    fault,
    finding,
    route,
    stacked_id,
)
from tests.judge.witnesses import allocated

#: Made by Arrow, without a Python object for each row.
ELSEWHERE = {"allocations", "quarantine", "verdict", "gaps"}
MINUTES = tuple(at(60 * minute) for minute in range(11))
FAULTY = evaluated(
    findings=(finding(causes=("GHOST_MEMBER",)), finding(0.5, "DUPLICATE", 1)),
    faults=(fault("GHOST_MEMBER"),),
    stacked=(stacked_id(),),
    unreadable=(MessageQueue("T", "broker-a", 4),),
)


def dossier(**overrides):
    """A group whose list changes once, in the sixth minute."""
    values = {
        "polls": [
            PollRun(("broker-a", 0), "healthy", MINUTES[:5], MINUTES[:5]),
            PollRun(("broker-a", 0), "faulty", MINUTES[5:], MINUTES[5:]),
        ],
        "list_topics": {"healthy": ("T",), "faulty": ("T",)},
        "routes": {"T": [route([broker()], *range(0, 660, 60))]},
    }
    return Dossier("c", "G", **values | overrides)


def history(of, terms=TERMS, faulty=FAULTY, **of_lists):
    """All tables; situations of the list ``faulty`` are so, and others healthy, or of its list."""
    situations = find_situations(of, terms)
    by_list = {"faulty": faulty} | of_lists
    by_id = {
        situation_id: by_list.get(*dict(situation.answers).values(), evaluated())
        for situation_id, situation in situations.distinct().items()
    }
    return judge(Case(of, situations, by_id, terms))


def test_every_report_table_is_made_and_its_rows_fit():
    tables = history(dossier())

    assert set(tables) == {table.name for table in REPORT_TABLES} - ELSEWHERE
    declared = {table.name: table for table in REPORT_TABLES}
    made = {name: to_table(declared[name], rows).num_rows for name, rows in tables.items()}
    counts = {name: number for name, number in made.items() if number}
    assert counts == {
        "orphaned_queues": 1,
        "duplicate_queues": 1,
        "stacked_client_ids": 1,
        "group_faults": 1,
        "problems": 1,
        "unreadable_queues": 1,
        "state_runs": 2,
        "group_health": 1,
    }
    assert {row["cluster"] for rows in tables.values() for row in rows} == {"c"}
    assert {row["consumer_group"] for rows in tables.values() for row in rows} == {"G"}


def test_severity_goes_from_findings_to_faults_and_health():
    """One orphan that lasts is critical: its cause and its topic are, too."""
    tables = history(dossier())

    (orphan,), (duplicate,) = tables["orphaned_queues"], tables["duplicate_queues"]
    assert (orphan["severity"], duplicate["severity"]) == ("CRITICAL", "WARNING")
    assert tables["group_faults"][0]["severity"] == "CRITICAL"
    assert tables["group_health"][0]["worst_severity"] == "CRITICAL"


def test_members_that_come_and_go_are_a_fault_of_the_group_that_is_told_once():
    """Another member is there at every other minute, in both topics."""
    polls = [
        PollRun(("broker-a", 0), "alone", MINUTES[::2], MINUTES[::2]),
        PollRun(("broker-a", 0), "both", MINUTES[1::2], MINUTES[1::2]),
    ]
    topics = {"both": ("%RETRY%G", "T"), "alone": ("%RETRY%G", "T")}
    routes = {topic: [route([broker()], *range(0, 660, 60))] for topic in topics["both"]}
    of = dossier(polls=polls, list_topics=topics, routes=routes)
    alone, both = [allocated("h@1", range(4))], [allocated("h@1", (0, 1)), allocated("i@1", (2, 3))]

    lists = {"alone": evaluated(alone), "both": evaluated(both)}
    (flapping,) = history(of, **lists)["group_faults"]

    assert (flapping["fault"], flapping["topic"]) == ("FLAPPING", "T")
    assert (flapping["client_ids"], flapping["severity"]) == (("i@1",), "WARNING")
    told = "i@1 joined 5 times; meanwhile members joined or left 10 times"
    assert flapping["evidence"].startswith(told)


def test_a_route_that_nobody_reads_has_a_row_in_the_group_that_it_is_put_with():
    """A retry topic's is its group's, which may have polls and read other topics."""
    lonely = {"%RETRY%G": [route([broker(queues=1)], 0, 60)]}

    both = history(dossier(routes=lonely))["group_health"]
    coverages = {(row["topic"], row["coverage"]) for row in both}
    assert coverages == {("T", "AUDITED"), ("%RETRY%G", "NO_GROUP")}

    (alone,) = history(Dossier("c", "G", routes=lonely))["group_health"]
    assert (alone["coverage"], alone["snapshots"], alone["queues"]) == ("NO_GROUP", 2, 1)


def test_what_was_open_of_a_group_that_is_not_there_any_more_is_not_audited():
    open_before = EarlierFinding("id", "ORPHANED", "T", "broker-a", 0, 0, 1, "WARNING", (), 0, 1)

    tables = history(Dossier("c", "G", earlier=[open_before]))

    assert [row["status"] for row in tables["former_findings"]] == ["NOT_AUDITED"]
    assert not any(rows for name, rows in tables.items() if name != "former_findings")


def polls(topic, queue_id, consumed):
    """Offsets each minute: one message a minute comes, so many are consumed."""
    minutes = np.arange(11, dtype=np.int64)
    times = np.array(MINUTES, dtype=np.int64)
    return QueueOffsets(topic, "broker-a", queue_id, times, 100 + minutes, consumed(minutes))


def test_a_queue_stalls_though_no_member_was_seen_to_subscribe_to_its_topic():
    """Offsets tell of every topic that the group once consumed."""
    stands, moves = (lambda minutes: 90 + 0 * minutes), (lambda minutes: 100 + minutes)
    offsets = {"U": [polls("U", 0, stands), polls("U", 1, moves)]}

    tables = history(dossier(offsets=offsets))

    (stall,) = tables["stalled_queues"]
    assert (stall["topic"], stall["queue_id"], stall["severity"]) == ("U", 0, "CRITICAL")

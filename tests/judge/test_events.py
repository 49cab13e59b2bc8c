"""dossier, situations -> events: one thing that happens is one event, however many groups it
touches, and whatever is put together before what."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, get_type_hints

import pytest

from jobs.declared.dossier import Dossier, ListedIds
from jobs.declared.instants import SECOND
from jobs.declared.kinds import COLLECTOR_AWAY, EVENT_KINDS, GRADED_TABLES
from jobs.judge.observe import what_happened as finders
from jobs.judge.observe.arrow_tables import Row, to_table
from jobs.judge.observe.brokers import masters_away, topics_by_broker
from jobs.judge.observe.routes import find_route_changes
from jobs.judge.observe.situations import Situations, find_situations
from jobs.judge.observe.what_happened import (
    Event,
    find_events,
    masters_that_left,
    members_that_changed,
    nameservers_that_differ,
    restarts,
    topics_resized,
)
from jobs.judge.result.events import (
    IN_SHORT,
    MOST_FINDINGS,
    MOST_GROUPS,
    bounded,
    collector_away,
    left_at_once,
    members_left,
    merged,
    with_events,
)
from jobs.schemas import EVENTS
from rebalance_core.strategy_rules import MOST_TOPIC_QUEUES
from rebalance_core.texts import Text
from tests.judge.lists import NO_ANSWER, group, started
from tests.judge.phases import TERMS, at, broker, case, route

A, B = broker("broker-a"), broker("broker-b")
MORE_A, LESS_A = broker("broker-a", 8), broker("broker-a", 2)
SLAVE = broker("broker-a", broker_ids=(1,))
MINUTES = range(0, 660, 60)


def seconds(events: Any) -> list[tuple[Any, ...]]:
    """(kind, subject, begins, ends) of events, in seconds."""
    return [(e.kind, e.subject, e.begins // SECOND, e.ends and e.ends // SECOND) for e in events]


def answering(silent: range | tuple[int, ...] = (), every: Any = MINUTES) -> Any:
    """The polls of a master that lists a, but for the rounds in which it does not answer."""
    return [(each, each, NO_ANSWER if each in silent else ["a"]) for each in every]


def of_b(*routes: Any) -> Dossier:
    """A group whose broker-b alone is asked."""
    return group({"broker-b": answering()}, routes={"T": list(routes)})


def test_every_function_that_finds_events_is_called() -> None:
    """One that is written and not called finds nothing in any run, and its own tests pass."""
    rules = {
        name
        for name, each in vars(finders).items()
        if inspect.isfunction(each)
        and not name.startswith("_")
        and each is not find_events
        and get_type_hints(each).get("return") == Iterator[Event]
    }
    assert {"masters_that_left", "topics_resized"} <= rules <= {*find_events.__code__.co_names}


def test_every_event_with_which_something_begins_has_words_for_it() -> None:
    assert IN_SHORT.keys() == EVENT_KINDS.keys() - {COLLECTOR_AWAY}


# ---------------------------------------------------------------- masters


def left(dossier: Dossier) -> Iterator[Event]:
    return masters_that_left(masters_away(dossier), topics_by_broker(dossier))


def test_of_one_round_alone_a_master_is_away_that_no_route_names() -> None:
    """Of many, in which it never was there, nobody knows when it left."""
    assert len([*left(of_b(route([SLAVE, B], 0)))]) == 1
    assert len([*left(of_b(route([SLAVE, B], 0, 60)))]) == 0


@pytest.mark.parametrize(
    ("silent", "routes"),
    [
        # Two rounds of bad luck; nobody ever reached it; it answers, whatever the route says.
        ((120, 180), [route([A, B], *MINUTES)]),
        (MINUTES, [route([A, B], *MINUTES)]),
        ((), [route([A, B], 0), route([SLAVE, B], *MINUTES[1:])]),
        # A nameserver that lacks it was just started; the group has no queue there.
        ((), [route([A, B], *MINUTES), route([B], 60, namesrv_addr="ns-2")]),
        (MINUTES, [route([B], *MINUTES)]),
    ],
)
def test_a_master_is_not_away(silent: Any, routes: Any) -> None:
    polls = {"broker-a": answering(silent), "broker-b": answering()}
    assert list(left(group(polls, routes={"T": routes}))) == []


def test_a_master_that_one_nameserver_names_is_there_although_nobody_asks_it() -> None:
    before, later = ([A, B], 0), ([SLAVE, B], 60, 120)
    of_other = [route(*each, namesrv_addr="ns-2") for each in (before, later)]
    assert list(left(of_b(route([A, B], *MINUTES), *of_other))) == []


def test_a_broker_that_leaves_the_route_with_its_master_is_the_same_event() -> None:
    routes = [route([A, B], 0, 60, 240), route([B], 120, 180)]
    assert seconds(left(of_b(*routes))) == [("MASTER_LEFT", "broker-a", 120, 240)]
    assert list(topics_resized({"T": find_route_changes(routes, MOST_TOPIC_QUEUES)})) == []


# ---------------------------------------------------------------- nameservers and addresses


def differing(*of_other: Any) -> list[tuple[Any, ...]]:
    """ns-1 gives both brokers each minute, ns-2 these routes."""
    times = range(0, 60 * len(of_other), 60)
    routes = [route([A, B], *times)]
    routes += [route(each, 60 * n, namesrv_addr="ns-2") for n, each in enumerate(of_other)]
    dossier = group({"broker-a": answering(every=times)}, routes={"T": routes})
    return seconds(nameservers_that_differ(find_situations(dossier, TERMS).by_topic))


def test_a_nameserver_that_lacks_a_broker_differs_until_it_has_it() -> None:
    found = differing([A, B], [B], [B], [B], [A, B], [A, B])
    assert found == [("NAMESERVERS_DIFFER", "ns-2", 60, 240)]
    assert differing([A, B], [B], [A], [B]) == [("NAMESERVERS_DIFFER", "ns-2", 60, None)]


def test_nameservers_that_differ_for_a_moment_or_in_addresses_alone_do_not_differ() -> None:
    assert differing([A, B], [B], [A, B], [A, B]) == []
    assert differing([A, B], [SLAVE, B], [SLAVE, B], [SLAVE, B]) == []


# ---------------------------------------------------------------- topics


@pytest.mark.parametrize(
    ("routes", "what", "evidence", "until"),
    [
        # One after the other.
        (
            [[A, B], [MORE_A, B], [MORE_A, broker("broker-b", 8)]],
            "topic T grew from 8 to 16 queues",
            "broker-a 4 to 8, broker-b 4 to 8",
            60,
        ),
        ([[A, B], [LESS_A, B]], "topic T shrank from 8 to 6 queues", "broker-a 4 to 2", 30),
        (
            [[A, B], [broker("broker-a", 6), broker("broker-b", 2)]],
            "queues of topic T went to other brokers",
            "broker-a 4 to 6, broker-b 4 to 2",
            30,
        ),
        ([[A], [A, B]], "topic T grew from 4 to 8 queues", "broker-b 0 to 4", 30),
    ],
)
def test_brokers_that_get_other_queues_are_one_event(
    routes: Any, what: str, evidence: str, until: int
) -> None:
    (event,) = resized(*routes)
    assert (event.begins, event.ends) == (at(30), at(until))
    assert (str(event.what), str(event.evidence)) == (what, evidence)


def resized(*routes: Any) -> list[Event]:
    """The events of a route each half a minute."""
    each_time = [route(each, 30 * n) for n, each in enumerate(routes)]
    changes = find_route_changes(each_time, MOST_TOPIC_QUEUES)
    return [*topics_resized({"T": changes})]


# ---------------------------------------------------------------- members


def changed(
    *in_time: tuple[float, str], clients: Any = (), **others: Any
) -> list[tuple[str, int, int, str]]:
    """(kind, begins, ends, what) of changes of members, each a letter; a round each minute."""
    return [
        (e.kind, e.begins // SECOND, (e.ends or 0) // SECOND, str(e.what))
        for e in changes(in_time, clients, **others)
    ]


def changes(in_time: Any, clients: Any = (), **others: Any) -> list[Event]:
    members = [ListedIds(at(second), frozenset(ids)) for second, ids in in_time]
    dossier = Dossier("c", "G", clients=[*clients])
    return [*members_that_changed(dossier, members, [at(60 * n) for n in range(60)], **others)]


SCALED = "group G was scaled from 2 to {} members"
REPLACED = "of 2 members of G were replaced or restarted"


@pytest.mark.parametrize(
    ("in_time", "kind", "what", "evidence"),
    [
        # One after the other; it comes back with its id; all replaced, and one more.
        (
            [(0, "ab"), (60, "b"), (120, "bc"), (180, "c"), (240, "cd")],
            "GROUP_DEPLOYED",
            f"2 {REPLACED}",
            "2 joined, 2 left",
        ),
        ([(0, "ab"), (60, "b"), (120, "ab")], "GROUP_DEPLOYED", f"1 {REPLACED}", "1 came back"),
        ([(0, "ab"), (60, "cde")], "GROUP_DEPLOYED", f"2 {REPLACED}", "3 joined, 2 left"),
        ([(0, "ab"), (60, "abcd")], "GROUP_SCALED", SCALED.format(4), "2 joined"),
        ([(0, "ab"), (60, "")], "GROUP_SCALED", SCALED.format(0), "2 left"),
    ],
)
def test_members_that_change_are_one_deploy_or_one_scaling_with_who_came_and_left(
    in_time: Any, kind: str, what: str, evidence: str
) -> None:
    assert changed(*in_time) == [(kind, 60, int(in_time[-1][0]), what)]
    assert [str(each.evidence) for each in changes(in_time)] == [evidence]


def test_what_is_further_apart_than_a_pod_takes_are_two_events() -> None:
    assert len(changed((0, "ab"), (60, "abc"), (360, "abcd"))) == 1
    assert len(changed((0, "ab"), (60, "abc"), (361, "abcd"))) == 2


def test_a_broker_that_has_just_come_lists_its_members_one_after_the_other() -> None:
    assert changed((0, "a"), (60, "ab"), (61, "abc"), brokers_came=[at(0)])[0][1:3] == (61, 61)
    assert changed((0, "ab"), (60, "b"), brokers_came=[at(0)])[0][0] == "GROUP_SCALED"


def test_a_process_that_began_later_under_the_same_id_restarted() -> None:
    infos = [started("a", -100, 0, 60, 120), started("a", 150, 180, 240), started("b", -100, 0)]
    assert restarts(infos) == [(at(180), "a")]
    deploy = ("GROUP_DEPLOYED", 180, 180, f"1 {REPLACED}")
    assert changed((0, "ab"), clients=infos) == [deploy]
    # Two processes that share the id are reported by turns.
    assert restarts([started("a", -100, 0, 120), started("a", -50, 60, 180)]) == []


@pytest.mark.parametrize(
    ("in_time", "without"),
    [
        # They come back; they do not; there is always one.
        ([(0, "ab"), (60, ""), (180, "ab")], (60, 180)),
        ([(0, "ab"), (60, "b"), (120, "")], (120, None)),
        ([(0, "ab"), (60, "b"), (120, "ab")], (None, None)),
        # For no longer than a broker takes that has just restarted.
        ([(0, "ab"), (60, ""), (120, "ab")], (None, None)),
        ([(0, "ab"), (60, ""), (120, "ab"), (180, ""), (300, "ab")], (180, 300)),
    ],
)
def test_an_event_has_the_time_in_which_the_group_had_no_member(in_time: Any, without: Any) -> None:
    (event,) = changes(in_time)
    since, until = event.without_members_since, event.without_members_until
    assert tuple(None if each is None else each // SECOND for each in (since, until)) == without


# ---------------------------------------------------------------- the collector


@pytest.mark.parametrize(("next_round", "is_away"), [(149, False), (150, True), (900, True)])
def test_the_collector_is_away_when_rounds_are_missing(next_round: int, *, is_away: bool) -> None:
    rounds = [at(60 * n) for n in range(6)]
    later = [at(300 + next_round + 60 * n) for n in range(6)]
    found = list(collector_away("c", [*rounds, *later], ["G", "H"]))
    assert [(row["begins"], row["ends"]) for row in found] == [(at(300), later[0])] * is_away
    if found:
        assert found[0]["evidence"] == "a round comes every 60 s, and none came meanwhile"
        assert found[0]["groups"] == ["G", "H"]


# ---------------------------------------------------------------- what an event explains


def a_finding(**overrides: Any) -> Row:
    values = {
        "finding_id": "f",
        "topic": "T",
        "broker_name": "broker-a",
        "queue_id": 0,
        "first_seen": at(120),
        "last_seen": at(180),
        "ongoing": False,
        "causes": ["MASTER_AWAY"],
        "certainty": "CERTAIN",
        "persistence": "PERSISTENT",
        "confirmed": None,
        "moved": None,
    }
    return values | overrides


def explained(*findings: Row, silent: tuple[int, ...] = (120, 180, 240)) -> tuple[Row, list[bool]]:
    """The event of a master that is away from 120 to 300 s, or in these rounds, and which findings
    name it.
    """
    polls = {"broker-a": answering(silent), "broker-b": answering()}
    dossier = group(polls, routes={"T": [route([A, B], *MINUTES)], "U": [route([B], *MINUTES)]})
    tables: dict[str, list[Row]] = {table: [] for table in GRADED_TABLES}
    tables["orphaned_queues"] = list(findings)
    of = case(
        dossier=dossier,
        situations=Situations({}),
        route_changes={},
        masters_away=[*masters_away(dossier)],
        snapshots=[at(each) for each in MINUTES],
    )
    tables = with_events(of, tables)
    (event,) = tables["events"]
    return event, [row["event_id"] == event["event_id"] for row in tables["orphaned_queues"]]


def test_a_finding_names_the_event_with_which_it_began() -> None:
    others = ["DUPLICATE_CLIENT_ID"]
    event, named = explained(
        a_finding(),
        a_finding(first_seen=at(240), queue_id=1),
        a_finding(first_seen=at(240), causes=others, queue_id=2),
        a_finding(first_seen=at(300), causes=others, queue_id=3),
        a_finding(first_seen=at(361), queue_id=4),
        a_finding(first_seen=at(60), queue_id=5),
        a_finding(topic="U", broker_name="broker-b", queue_id=6),
        a_finding(broker_name="broker-b", causes=["BROKER_VIEW_DIVERGENCE"], queue_id=7),
        a_finding(first_seen=at(360), queue_id=8),
    )
    assert named == [True, True, False, True, False, False, False, True, True]
    assert (event["queues_lost"], event["findings"], event["finding_ids"]) == (5, 1, ["f"])
    assert event["headline"] == (
        "00:02:00 the master of broker-a left, back at 00:05:00: 1 group touched, 5 queues lost"
    )


def test_what_was_there_in_the_first_round_began_with_none_but_what_brings_it() -> None:
    """The master is away from the first round on: what it brings is of it, and what begins later;
    another fault of the first round is as old as nobody knows.
    """
    others = {"causes": ["STRATEGY_MISMATCH"], "ongoing": True}
    _, named = explained(
        a_finding(first_seen=at(0)),
        a_finding(first_seen=at(0), **others),
        a_finding(first_seen=at(60), **others),
        silent=(0, 60, 120),
    )
    assert named == [True, False, True]


PASSED = {"persistence": "TRANSIENT", "confirmed": True}


@pytest.mark.parametrize(
    "refuted", [PASSED, {"confirmed": False}, {"moved": False}, {"certainty": "POSSIBLE"}]
)
def test_what_passed_or_is_refuted_or_possible_alone_cost_no_queue(refuted: Row) -> None:
    event, named = explained(a_finding(**refuted))
    assert named == [True]
    assert event["headline"].endswith("no queue lost")
    assert explained(a_finding(certainty="POSSIBLE", moved=True))[0]["queues_lost"] == 1


def test_what_passed_with_an_event_is_of_it_whatever_its_broker_and_cause() -> None:
    """All queues are divided anew when it leaves, at 120 s, and when it is back, at 300 s."""
    passed = {"persistence": "TRANSIENT", "causes": ["UNEXPLAINED"], "broker_name": "broker-b"}
    times = (60, 120, 180, 240, 300, 360, 420)
    found = [a_finding(**passed, first_seen=at(each), last_seen=at(each)) for each in times]
    event, named = explained(*found, a_finding(**passed, topic="U"))
    assert named == [False, True, True, False, True, True, False, False]
    assert event["headline"].endswith("1 group touched, 1 recovered by 00:07:00, no queue lost")
    # What is still there did not pass.
    ongoing = a_finding(**passed, ongoing=True)
    assert explained(ongoing)[1] == [False]


def test_a_group_has_recovered_in_which_nothing_of_the_event_is_left() -> None:
    def recovered(*findings: Row) -> tuple[int, list[str], str]:
        event, _ = explained(*findings)
        return event["groups_recovered"], event["groups_lasting"], event["headline"]

    passed = a_finding(persistence="TRANSIENT", queue_id=1)
    none, groups, headline = recovered(a_finding(), passed)
    assert (none, groups) == (0, ["G"])
    assert "recovered" not in headline
    assert explained(a_finding(), passed)[0]["recovered_at"] is None
    assert explained(passed)[0]["recovered_at"] is not None
    assert recovered(a_finding(persistence="TRANSIENT", ongoing=True))[0] == 0
    # Another fault of the group has nothing to do with it.
    assert recovered(a_finding(first_seen=at(60)))[:2] == (1, [])
    # Nobody saw anything of it: it is over when the master is back.
    assert "1 recovered by 00:05:00" in recovered()[2]


def fault(**overrides: Any) -> Row:
    values = {"fault": "GROUP_NOT_CONSUMING", "severity": "CRITICAL", "ongoing": True}
    values |= {"broker_names": ["broker-a"], "queues_affected": 4}
    return {k: v for k, v in a_finding(**values | overrides).items() if k != "certainty"}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        # Its offsets moved until the poll before the master left, or longer.
        (fault(first_seen=at(60)), "1 group touched, since then 1 group consumes nothing"),
        (fault(first_seen=at(59)), "1 group touched, 1 recovered by 00:05:00, no queue lost"),
        # It is over, it is too new, it is another fault.
        (fault(ongoing=False), "1 group touched, no queue lost"),
        (fault(persistence="TRANSIENT"), "1 group touched, no queue lost"),
        (fault(fault="STRATEGY_MISMATCH"), "1 group touched, no queue lost"),
    ],
)
def test_an_event_of_several_groups_counts_those_that_consume_nothing_since(
    found: Row, words: str
) -> None:
    polls = {"broker-a": answering((120, 180, 240)), "broker-b": answering()}
    dossier = group(polls, routes={"T": [route([A, B], *MINUTES)]})
    tables = {table: [] for table in GRADED_TABLES} | {"group_faults": [found]}
    away = [*masters_away(dossier)]
    of = case(
        dossier=dossier, route_changes={}, masters_away=away, snapshots=list(map(at, MINUTES))
    )
    (event,) = with_events(of, tables)["events"]
    assert str(event["headline"]).partition("back at 00:05:00: ")[2] == words


# ---------------------------------------------------------------- many groups, one event


def sighting(number: int, begins: int, lasts: int, *, ended: bool, subject: str = "b") -> Row:
    """What a group saw of a master that left."""
    begins, last_seen = at(begins), at(begins + lasts)
    row: Row = {
        "event_id": f"id of {subject}",
        "cluster": "c",
        "kind": "MASTER_LEFT",
        "subject": subject,
        "begins": begins,
        "last_seen": last_seen,
        "ends": last_seen + at(60) if ended else None,
        "what": Text("the master of {broker} left", broker=subject),
        "evidence": Text("no route names the master"),
        "broker_names": [subject],
        "groups_touched": 1,
        "groups": [f"G{number:03}"],
        "groups_left_out": 0,
        "queues_lost": number % 2,
        "messages_lost": 0,
        "queues_read_twice": 0,
        "findings": 1,
        "finding_ids": [f"f{number:03}"],
        "groups_lasting": [f"G{number:03}"] if number % 4 == 0 else [],
        "recovered_at": at(number) if number % 4 == 1 else None,
        "groups_not_consuming": 0,
        "without_members_since": None,
        "without_members_until": None,
        "merged_event_ids": [],
    }
    (with_headline,) = merged([row])
    return with_headline


def test_what_many_groups_saw_is_one_event_from_the_first_to_the_last_that_saw_it() -> None:
    rows = [sighting(n, 100 + n, 60, ended=n != 3) for n in range(32)]
    (event,) = merged(rows)
    assert (event["begins"], event["ends"]) == (at(100), at(100 + 31 + 120))
    assert (event["groups_touched"], event["findings"], event["queues_lost"]) == (32, 32, 16)
    assert event["headline"] == (
        "00:01:40 the master of b left, back at 00:04:11: 32 groups touched, "
        "24 recovered by 00:04:11, 16 queues lost"
    )
    to_table(EVENTS, [bounded(event)])


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ([1, 2, 3, 4], "3 recovered by 00:02:44, not G004, "),
        ([1, 4, 8, 12], "1 recovered by 00:02:52, not G004, G008 and G012, "),
        ([1, 2, 3], "3 recovered by 00:02:43, 2 queues lost"),
        ([*range(1, 17)], "12 recovered by 00:02:56, 8 queues lost"),
    ],
)
def test_the_few_that_did_not_recover_are_named(numbers: list[int], said: str) -> None:
    (event,) = merged(sighting(n, 40 + n, 60, ended=True) for n in numbers)
    assert said in event["headline"]


ROUNDS = [at(60 * n) for n in range(60)]


def emptied(group: str, since: int, until: int | None = None) -> Row:
    """The own event of a group without members from a minute on, until another one."""
    row = sighting(0, 0, 0, ended=True, subject=group)
    (own,) = merged(
        [
            row
            | {"kind": "GROUP_SCALED", "groups": [group], "groups_lasting": [], "findings": 1}
            | {"without_members_since": at(60 * since)}
            | {"without_members_until": None if until is None else at(60 * until)}
        ]
    )
    return own


def of_groups(number: int, since: int, first: int = 0) -> list[Row]:
    return [emptied(f"G{n:02}", since) for n in range(first, first + number)]


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        # In one round; in two, for a round takes its time.
        (of_groups(20, 4), [20]),
        ([*of_groups(13, 4), *of_groups(7, 5, 13)], [20]),
        # Twice; and one that left long before.
        ([*of_groups(6, 4), *of_groups(9, 30, 6)], [9, 6]),
        ([*of_groups(1, 1), *of_groups(5, 4, 1)], [5]),
        # Few; each in a round of its own; one group again and again.
        (of_groups(4, 4), []),
        ([emptied(f"G{n:02}", n) for n in range(20)], []),
        ([emptied("G", n % 2) for n in range(5)], []),
        # One that keeps a member.
        ([*of_groups(4, 4), emptied("H", 4) | {"without_members_since": None}], []),
    ],
)
def test_groups_that_lose_all_members_in_one_moment_are_one_event(
    rows: list[Row], found: list[int]
) -> None:
    assert [len(each) for each in left_at_once(rows[::-1], ROUNDS)] == found


def test_the_event_of_several_groups_names_them_and_has_what_theirs_cost() -> None:
    rows = [emptied(f"G{n:02}", 4 + n % 2, 9 + n % 3) for n in range(20)]
    (at_once,) = left_at_once(rows, ROUNDS)

    event = members_left(at_once, ROUNDS)

    assert (event["kind"], event["subject"], event["cluster"]) == ("MEMBERS_LEFT", "c", "c")
    assert (event["begins"], event["ends"]) == (at(240), at(660))
    assert (event["groups_touched"], event["findings"], event["groups_recovered"]) == (20, 20, 20)
    assert event["merged_event_ids"] == [f"id of G{n:02}" for n in range(20)]
    assert event["evidence"] == (
        "brokers listed members of each of them at 00:03:00 UTC, and of none at 00:05:00 UTC"
    )
    assert event["headline"] == (
        "00:04:00 20 groups lost all their members (G00, G01, G02 and 17 more), back at 00:11:00: "
        "20 recovered by 00:11:00, no queue lost"
    )
    to_table(EVENTS, [bounded(event)])
    # It goes on for the one that has none still.
    later = [*at_once[1:], emptied("G00", 4)]
    assert members_left(later, ROUNDS)["ends"] is None


def test_a_row_is_bounded_and_says_how_much_was_left_out() -> None:
    every = merged([sighting(n, 0, 60, ended=True) for n in range(MOST_GROUPS + 5)])
    (row,) = map(bounded, every)
    assert (len(row["groups"]), row["groups_left_out"]) == (MOST_GROUPS, 5)
    assert row["groups_touched"] == row["findings"] == MOST_GROUPS + 5
    assert len(row["finding_ids"]) == MOST_FINDINGS

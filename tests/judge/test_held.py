"""Queues that nobody holds, or that two hold, though lists and routes show nothing wrong."""

from __future__ import annotations

from dataclasses import replace

from jobs.declared.dossier import Dossier
from jobs.judge.observe.holdings_index import find_drift, index_holdings
from jobs.judge.observe.routes import RouteChange
from jobs.judge.rules.found import GroupFindings
from jobs.judge.rules.held import held_queues
from tests.judge.phases import case
from tests.judge.witnesses import (
    AGREED,
    BROKER,
    TOPIC,
    evaluated,
    holdings_of,
    in_seconds,
    info,
    offsets,
    steady,
    stuck,
    timeline,
)

MINUTES = (60, 120, 180, 240, 300, 360)
ONE = (("one", 0, 600),)


def judged(clients, queues=(), gained=(), segments=ONE, processes=2, assumed=(), **inputs):
    """``assumed``: the segments in which nobody observed the strategy."""
    holdings = holdings_of(clients, segments=segments, processes=processes, **inputs)
    every_queue = tuple((BROKER, queue_id) for queue_id in range(4))
    coverage = inputs.get("coverage", "AUDITED")
    by_name = {name: evaluated(AGREED, processes, coverage) for name, _, _ in segments}
    for name in assumed:
        of_core = replace(by_name[name].verdict, strategy_source="assumed")
        by_name[name] = replace(by_name[name], verdict=of_core)
    phases = timeline(segments, by_name).phases
    holdings = [replace(one, phase=phases[one.phase.position - 1]) for one in holdings]
    # A broker with so many queues more.
    changes = [RouteChange(0, 0, [], [(BROKER, queue_id + 1)]) for queue_id in gained]
    of = case(
        dossier=Dossier("C", "G", clients=clients),
        holdings=index_holdings(holdings),
        drift=find_drift(holdings, 180),
        offsets={(each.topic, each.broker_name, each.queue_id): each for each in queues},
        readable=dict.fromkeys(("one", "two"), dict.fromkeys(every_queue, True)),
        route_changes={TOPIC: changes},
        timelines={TOPIC: timeline(segments, by_name)},
    )
    return held_queues(of, GroupFindings())


def found(clients, queues=(), **inputs):
    """(kind, queue, since, until, causes) of each finding."""
    rows = []
    for each in judged(clients, queues, **inputs).queues:
        times = (in_seconds(each.first_seen), in_seconds(each.last_seen))
        rows.append((each.kind, each.queue[1], *times, *each.causes))
    return rows


def faults(clients, queues=(), **inputs):
    return judged(clients, queues, **inputs).faults


#: Nobody has queue 1, which is computed for a.
WITHOUT_1 = [info("a", MINUTES, [0]), info("b", MINUTES, [2, 3])]
ORPHAN = ("ORPHANED", 1, 60, 360, "QUEUE_NOT_HELD")


def test_where_a_third_does_not_answer_the_offset_says_whether_it_holds_the_queue():
    stands, moves = offsets(1, stuck(0, *MINUTES)), offsets(1, steady(0, *MINUTES))
    assert found(WITHOUT_1, [stands], processes=3) == [ORPHAN]
    assert found(WITHOUT_1, [moves], processes=3) == []
    # Nothing waits there: nobody knows.
    idle = offsets(1, dict.fromkeys(MINUTES, (5, 5)))
    assert found(WITHOUT_1, [idle], processes=3) == []
    # Its owner is the one that does not answer.
    assert found(WITHOUT_1[1:], [stands], processes=2) == []
    assert found([info("a", MINUTES, [0, 1]), WITHOUT_1[1]], [stands], processes=3) == []


def test_an_sdk_that_may_not_fill_in_its_table_tells_nothing_with_an_empty_one():
    # One that shows some queues fills it in.
    for held, language, number in (([], "CPP", 0), ([], "JAVA", 2), ([2], "CPP", 1)):
        other = info("b", MINUTES, held, language=language)
        assert len(found([info("a", MINUTES, [0, 1]), other])) == number


def test_a_queue_whose_offset_moves_again_and_again_has_a_reader_whatever_the_answers_show():
    assert found(WITHOUT_1, [offsets(1, steady(0, *MINUTES))]) == []
    assert len(found(WITHOUT_1, [offsets(1, stuck(0, *MINUTES))])) == 1


def test_while_a_change_explains_it_nothing_is_found():
    # A phase of a minute each: the members change all the time.
    segments = [("two" if n % 2 else "one", 60 * n, 60 * n + 30) for n in range(10)]
    times = (65, 125, 185, 245, 305)
    clients = [info("a", times, [0]), info("b", times, [2])]
    assert found(clients, segments=segments, allocations={"one": AGREED, "two": AGREED}) == []
    segments = (("one", 0, 240), ("two", 300, 900))
    swapped = {"one": AGREED, "two": (AGREED[0]._replace(client_id="b", queues=((BROKER, 0),)),)}
    before = [info(own, (60, 120), of, observed=120) for own, of in (("a", [0, 1]), ("b", [2, 3]))]
    after = info("b", (240, 300, 360, 420), [0], observed=120)
    inputs = {"segments": segments, "allocations": swapped, "processes": 1}
    assert find_drift(holdings_of([*before, after], **inputs), 180) == []


def test_two_that_hold_a_queue_though_it_is_computed_for_one_are_a_duplicate():
    # b cuts otherwise: it has queue 1 too, and lacks queue 3.
    clients = [info("a", MINUTES, [0, 1]), info("b", MINUTES, [1, 2], language="GO")]
    assert found(clients) == [
        ("DUPLICATE", 1, 60, 360, "ALLOCATES_OTHERWISE"),
        ("ORPHANED", 3, 60, 360, "ALLOCATES_OTHERWISE"),
    ]
    (fault,) = faults(clients)
    assert (fault.fault, fault.client_ids) == ("ALLOCATES_OTHERWISE", ("b",))
    assert fault.evidence == (
        "b (GO) holds queues other than its share from 00:01:00 to 00:06:00 UTC: queue 1 of "
        "broker-a is held by two and queue 3 of broker-a is held by nobody"
    )
    assert "update the Go client" in fault.remedy


def test_who_does_not_reach_the_broker_of_a_queue_does_not_hold_it_twice():
    # It keeps the queues in its table, and each attempt to pull looks like a pull.
    clients = [info("a", MINUTES, [0, 1]), info("b", MINUTES, [1, 2, 3])]
    twice = [("DUPLICATE", 1, 60, 360, "ALLOCATES_OTHERWISE")]
    assert found(clients) == twice
    assert found(clients, unreachable=[("b", BROKER)]) == []
    assert found(clients, unreachable=[("b", "broker-b")]) == twice
    # Of an id with two processes one may reach it.
    of_two = [AGREED[0], AGREED[1]._replace(processes=2)]
    assert found(clients, unreachable=[("b", BROKER)], allocations=of_two) == twice
    # The broker does not have the group: nobody reads.
    assert found(clients, unreachable=[(None, BROKER)]) == []


def test_a_queue_that_goes_from_one_to_another_is_not_held_by_two():
    # Whoever is asked last in a round has it by then, and another one each time.
    clients = [
        info("a", MINUTES[::2], [0, 1]),
        info("b", MINUTES, [1, 2, 3]),
        info("c", MINUTES[1::2], [0, 1]),
    ]
    in_turn = [*AGREED, AGREED[0]._replace(client_id="c", queues=())]
    assert [each[0] for each in found(clients, allocations=in_turn)] == []


def test_clients_that_did_not_follow_a_change_are_named_with_what_waits():
    before = [info("a", (0,), [0, 1], language="GO"), info("b", (0,), [2, 3])]
    after = [info("a", MINUTES, [0], language="GO"), info("b", MINUTES, [2, 3])]
    clients, waiting = [*before, *after], [offsets(1, stuck(0, *MINUTES))]
    (fault,) = faults(clients, waiting, gained=[1])
    assert fault.evidence == (
        "queue 1 of broker-a is computed for a (GO), and no process that answered had it in its "
        "running info from 00:01:00 to 00:06:00 UTC; 370 messages wait there"
    )
    assert fault.remedy.startswith("restart a: at its start a client takes its share")
    assert "client-go to 2.1.2" in fault.remedy
    extent = fault.extent
    assert (extent.persistence, extent.ongoing, fault.queues_affected) == ("PERSISTENT", True, 1)

    # Of queue 0, which nobody has either, no offset is known.
    after = [info("a", MINUTES, [], language="GO"), info("b", MINUTES, [2, 3])]
    (fault,) = faults([*before, *after], waiting, gained=[1])
    assert fault.evidence.endswith("; at least 370 messages wait there")

    # Where the route did not gain the queue, an update of the client mends nothing.
    for gained in ([], [0]):
        (fault,) = faults(clients, waiting, gained=gained)
        assert fault.remedy == "restart a: at its start a client takes its share"


def test_who_holds_another_queue_too_many_lacks_none():
    (fault,) = faults([info("a", MINUTES, []), info("b", MINUTES, [0, 2, 3])])
    assert (fault.client_ids, fault.queues_affected) == (("a",), 1)


def test_where_the_strategy_is_not_known_the_answers_alone_decide():
    # The members of a company's own strategy: each queue is due, and nothing tells whose it is.
    clients = [info("a", MINUTES, [0, 1]), info("b", MINUTES, [1, 2])]
    assert found(clients, allocations=(), coverage="STRATEGY_NOT_KNOWN") == [
        ("DUPLICATE", 1, 60, 360, "ALLOCATES_OTHERWISE"),
        ("ORPHANED", 3, 60, 360, "QUEUE_NOT_HELD"),
    ]
    (otherwise, _) = faults(clients, allocations=(), coverage="STRATEGY_NOT_KNOWN")
    assert otherwise.client_ids == ("a", "b")
    assert otherwise.evidence.startswith("a and b divide the queues differently from 00:01:00 to")
    whole = [info("a", MINUTES, [0, 1]), info("b", MINUTES, [2, 3])]
    assert found(whole, allocations=(), coverage="STRATEGY_NOT_KNOWN") == []

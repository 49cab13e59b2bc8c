"""timeline -> episodes: when, and for how much of the time, a fault was there."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.judge.rules.client_ids import stacked_ids
from jobs.judge.rules.episodes import fault_episodes, queue_episodes
from jobs.judge.rules.found import GroupFindings
from rebalance_core.division import Move
from tests.judge.phases import at, case, fault, finding, phase, stacked_id, timeline

END = 600


def episodes(*phases):
    found = queue_episodes(timeline(*phases), persistence_seconds=180)
    return sorted(found, key=lambda each: (each.kind, each.queue, each.first_seen))


def times(episode):
    """First and last second, snapshots, persistence, ongoing."""
    extent = episode.extent
    seconds = (episode.first_seen // at(1), episode.last_seen // at(1))
    return (*seconds, extent.snapshots, extent.persistence, extent.ongoing)


def minutes(shown, **overrides):
    """A phase for each minute: ``x`` shows the orphan, ``.`` does not, ``-`` is missing."""
    return [
        phase(n + 1, 60 * n, 60 * n, findings=(finding(**overrides),) if mark == "x" else ())
        for n, mark in enumerate(shown)
        if mark != "-"
    ]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        # First and last minute, snapshots, persistence, ongoing; share of the time.
        ("xxxx", [(0, 3, 4, "PERSISTENT", True, 1.0)]),
        # A pod that is up at every other poll: nobody reads the queue in between.
        ("x.x.x.x.", [(0, 6, 4, "PERSISTENT", True, 4 / 7)]),
        ("x.x.x.x..", [(0, 6, 4, "PERSISTENT", False, 4 / 7)]),
        # It was seen over 240 s, and shown for 180 s of them; over 120 s, and for 120 s.
        ("x.x.x...", [(0, 4, 3, "PERSISTENT", False, 0.6)]),
        ("x.x.....", [(0, 2, 2, "TRANSIENT", False, 2 / 3)]),
        # A group that is scaled to zero for 60 % of the time.
        ("xxx..xxx..xxx..", [(0, 12, 9, "PERSISTENT", True, 9 / 13)]),
        # It comes again at the end, and goes on; a gap that long was never before.
        ("xxx..xxx..x", [(0, 10, 7, "PERSISTENT", True, 7 / 11)]),
        ("xxx.xxx..x", [(0, 6, 6, "PERSISTENT", False, 6 / 7), (9, 9, 1, "TRANSIENT", True, 1.0)]),
        # What is gone for most of the time is there for moments.
        ("x..x..x..x", [(n, n, 1, "TRANSIENT", n == 9, 1.0) for n in (0, 3, 6, 9)]),
        # A moment on its eve, or long after it, is no part of a fault.
        (
            "x..xxxxx...x",
            [
                (0, 0, 1, "TRANSIENT", False, 1.0),
                (3, 7, 5, "PERSISTENT", False, 1.0),
                (11, 11, 1, "TRANSIENT", True, 1.0),
            ],
        ),
        # Snapshots that are missing are no gap, and make nothing last.
        ("x---x", [(0, 4, 2, "PERSISTENT", True, 1.0)]),
        ("xx---x....", [(0, 5, 3, "PERSISTENT", False, 1.0)]),
        ("x---x.....", [(0, 4, 2, "TRANSIENT", False, 1.0)]),
    ],
)
def test_what_was_so_for_most_of_the_time_is_one_episode(shown, expected):
    found = [
        (first // 60, last // 60, *others, pytest.approx(each.extent.share_of_time))
        for each in episodes(*minutes(shown))
        for first, last, *others in [times(each)]
    ]
    assert found == expected


def test_a_gap_of_more_than_half_an_hour_ends_an_episode_however_long_it_was_before():
    hours = "x" * 300
    (one,) = episodes(*minutes(f"{hours}{'.' * 29}{hours}"))
    assert times(one)[:2] == (0, 628 * 60)

    assert len(episodes(*minutes(f"{hours}{'.' * 30}{hours}"))) == 2
    # Where nothing is known of that time, nothing says that it has ended.
    assert len(episodes(*minutes(f"{hours}{'-' * 30}{hours}"))) == 1


def test_an_episode_ends_with_its_watch_for_what_nobody_looked_at_does_not_last():
    shown = {"findings": (finding(),), "faults": (fault(),), "stacked": (stacked_id(),)}
    whole = timeline(phase(1, 0, 0, **shown), phase(2, 28_800, 28_800, watch=1, **shown))
    for found in (queue_episodes(whole, 180), fault_episodes(whole, 180), stacked(whole)):
        expected = [(0, 0, 1, "TRANSIENT", False), (28_800, 28_800, 1, "TRANSIENT", True)]
        assert [times(each) for each in found] == expected


def test_an_episode_of_exactly_the_persistence_seconds_is_persistent():
    for last, persistence in ((180, "PERSISTENT"), (179, "TRANSIENT")):
        (episode,) = episodes(phase(1, 0, last, findings=(finding(),)))
        assert episode.extent.persistence == persistence


@pytest.mark.parametrize(
    ("probabilities", "certainty", "probability"),
    [
        ([1.0, 1.0], "CERTAIN", 1.0),
        ([0.5, 0.25], "POSSIBLE", 0.375),
        # Certain in half of the snapshots, and drawn by clients for a third of the time.
        ([1.0, 1.0, 0.5, 0.25], "POSSIBLE", 0.6875),
        ([1.0, 1.0, 1.0, 0.6], "CERTAIN", 0.9),
        ([1.0, 0.5, 0.25], "POSSIBLE", 1.75 / 3),
    ],
)
def test_an_episode_is_one_row_whatever_its_certainties(probabilities, certainty, probability):
    (row,) = episodes(
        *(phase(n, 60 * n, 60 * n, findings=(finding(p),)) for n, p in enumerate(probabilities))
    )

    assert (row.certainty, row.probability) == (certainty, pytest.approx(probability))


def test_the_causes_of_an_episode_are_those_that_lasted_else_those_of_all_its_states():
    """What was to blame while the clients started is none of what lasts."""

    def caused(position, first, last, *causes):
        return phase(position, first, last, findings=(finding(causes=causes),))

    first, second = episodes(
        caused(1, 0, 60, "STALE_CHANNEL"),
        caused(2, 120, 150, "GHOST_MEMBER", "STALE_CHANNEL"),
        # Mended for long, and back: another episode has causes of its own.
        phase(3, 180, 660),
        caused(4, 720, 720, "BROKER_VIEW_DIVERGENCE"),
        caused(5, 780, 780, "ROUTE_DIVERGENCE", "CONFIG_GAP"),
        caused(6, 840, 900, "CONFIG_GAP"),
        caused(7, 960, 1020, "ROUTE_DIVERGENCE", "CONFIG_GAP"),
    )

    assert first.causes == ("GHOST_MEMBER", "STALE_CHANNEL")
    assert second.causes == ("CONFIG_GAP", "ROUTE_DIVERGENCE")


def faults(*phases):
    found = fault_episodes(timeline(*phases), persistence_seconds=180)
    return sorted(found, key=lambda each: (each.fault, each.first_seen))


def test_a_fault_of_several_states_is_one_episode_as_the_last_has_it_with_the_most_queues():
    last = {
        "evidence": "b uses CIRCLE, a AVG",
        "remedy": "use AVG",
        "client_ids": ("b",),
        "client_addrs": ("h:2",),
        "broker_names": ("broker-b",),
        "cleared": 1,
        "left": 3,
        "moves": (Move("T", "broker-b", 1, (), ("a",)),),
    }
    _, episode = faults(
        phase(2, 0, 60, faults=(fault(queues_affected=2),)),
        phase(3, 120, 180, faults=(fault(queues_affected=5), fault("STALE_CHANNEL"))),
        phase(4, 240, 300, faults=(fault(**last, queues_affected=1),)),
        phase(5, 360, END),
    )

    assert {name: getattr(episode, name) for name in last} == last
    assert episode.queues_affected == 5
    assert times(episode) == (0, 300, 6, "PERSISTENT", False)


def test_a_fault_that_goes_on_without_its_queues_is_told_of_both_times():
    """Nameservers differ for long; their clients' queues were wrong for a moment of it."""
    rows = faults(
        phase(1, 0, 60, faults=(fault("ROUTE_DIVERGENCE", queues_affected=4),)),
        phase(2, 120, END, faults=(fault("ROUTE_DIVERGENCE", queues_affected=0),)),
    )

    passed, lasting = (4, 0, 60, 2, "TRANSIENT", False), (0, 120, END, 9, "PERSISTENT", True)
    assert [(each.queues_affected, *times(each)) for each in rows] == [passed, lasting]


def test_a_fault_that_is_about_one_client_has_an_episode_for_each():
    """Another process that reconnects later is another matter, and has its own addresses."""
    a, b = (fault("STALE_CHANNEL", client_ids=(of,)) for of in "ab")
    rows = faults(phase(1, 0, 120, faults=(a, b)), phase(2, 180, 240, faults=(b,)))
    found = [(each.client_ids, *times(each)[:2]) for each in rows]
    assert found == [(("a",), 0, 120), (("b",), 0, 240)]

    # Who is to blame changes, and the strategies still differ.
    c, d = (fault(client_ids=(of,)) for of in "cd")
    (mismatch,) = faults(phase(1, 0, 120, faults=(c,)), phase(2, 180, 240, faults=(d,)))
    assert (mismatch.client_ids, *times(mismatch)[:2]) == (("d",), 0, 240)


def stacked(*timelines):
    """The episodes of stacked ids, each with its times and all that is said of its id."""
    rows = stacked_ids(case(timelines=dict(enumerate(timelines))), GroupFindings()).stacked
    found = []
    for row in rows:
        told = row.stacked._asdict() | {"topics": row.topics, "verdict": row.kind}
        seen = {"first_seen": row.extent.first_seen, "last_seen": row.extent.last_seen}
        found.append(SimpleNamespace(**told, **seen, extent=row.extent))
    return sorted(found, key=lambda each: (each.client_id, each.first_seen))


def test_a_stacked_id_has_the_queues_of_all_its_topics_and_the_snapshots_of_its_group():
    """The copies are the group's: two topics at one time are two sets of queues, one of rounds."""
    retry = stacked_id(queues_duplicated=1, queues_orphaned=0, client_addrs=("h:3", "h:1"))
    (episode,) = stacked(
        timeline(
            phase(1, 0, 60, stacked=(stacked_id(versions=(390,)),)),
            # The route of T changed within the group's second run.
            phase(2, 120, 180, group_run=2, stacked=(stacked_id(queues_orphaned=5),)),
            phase(3, 240, END, group_run=2, stacked=(stacked_id(languages=("CPP",)),)),
        ),
        timeline(
            phase(1, 0, 60, stacked=(retry,)),
            phase(2, 120, END, group_run=2, stacked=(retry,)),
            topic="%RETRY%G",
        ),
    )

    assert (episode.topics, episode.processes) == (("%RETRY%G", "T"), 2)
    assert episode.client_addrs == ("h:1", "h:2", "h:3")
    assert (episode.versions, episode.languages) == ((390, 401), ("CPP", "JAVA"))
    # In the second run 2 of T and 1 of the retry topic; 5 of T at the most, and 0.
    assert (episode.queues_duplicated, episode.queues_orphaned) == (3, 5)
    assert (episode.slots_wasted, episode.verdict) == (1, "STACKED")
    assert times(episode) == (0, END, 11, "PERSISTENT", True)


@given(st.lists(st.sampled_from([None, 0.5, 1.0]), max_size=12))
def test_every_phase_that_shows_a_queue_is_in_one_episode_which_it_outweighs(probabilities):
    phases = [
        phase(n + 1, 60 * n, 60 * n, findings=() if p is None else (finding(p),))
        # Over at the end.
        for n, p in enumerate([*probabilities, None])
    ]
    rows = episodes(*phases)

    shown = {at(60 * n) for n, p in enumerate(probabilities) if p}
    assert {first for row in rows for first, _ in row.times} == shown
    assert sum(row.extent.snapshots for row in rows) == len(shown)
    for row in rows:
        first, last = row.first_seen // at(60), row.last_seen // at(60)
        inside = [p is not None for p in probabilities[first : last + 1]]
        assert row.extent.share_of_time == sum(inside) / len(inside)
        for place in range(1, len(inside) + 1):
            assert 2 * sum(inside[:place]) >= place
            assert 2 * sum(inside[-place:]) >= place


@given(st.lists(st.booleans(), max_size=14))
def test_episodes_are_the_same_read_backwards_and_could_not_be_longer(shown):
    def spans(marks):
        # Over at the end.
        found = episodes(*minutes("".join("x" if mark else "." for mark in [*marks, False])))
        return [(each.first_seen // at(60), each.last_seen // at(60)) for each in found]

    forwards = spans(shown)
    mirrored = sorted((len(shown) - 1 - last, len(shown) - 1 - first) for first, last in forwards)
    assert sorted(spans(shown[::-1])) == mirrored

    def fits(first, last):
        inside = shown[first : last + 1]
        return all(
            2 * sum(part) >= len(part)
            for place in range(1, len(inside) + 1)
            for part in (inside[:place], inside[-place:])
        )

    longer = [
        (first, last)
        for first, mark in enumerate(shown)
        for last in range(first, len(shown))
        if mark and shown[last] and fits(first, last)
        if not any(a <= first and last <= b for a, b in forwards)
    ]
    assert not longer


def views_differ(in_whom, causes=("BROKER_VIEW_DIVERGENCE",), probability=0.25):
    """A phase a minute, in which lists differ in one client."""
    shown = {"findings": (finding(probability, causes=causes),)}
    return timeline(
        *(
            phase(n, 60 * n, 60 * n, **shown, faults=(fault(causes[0], client_ids=(client_id,)),))
            for n, client_id in enumerate(in_whom, start=1)
        )
    )


@pytest.mark.parametrize(
    ("in_whom", "others", "lasts"),
    [
        ("aaaaa", {}, "PERSISTENT"),
        ("aabaa", {}, "PERSISTENT"),
        ("abbbbc", {}, "PERSISTENT"),
        ("abcde", {}, "TRANSIENT"),
        ("abbbc", {}, "TRANSIENT"),
        ("abcab", {}, "TRANSIENT"),
        # Nor are old connections of one client after the other a single outage.
        ("aaaaa", {"causes": ("STALE_CHANNEL",)}, "PERSISTENT"),
        ("aabb", {"causes": ("STALE_CHANNEL",)}, "TRANSIENT"),
        # What is expected for a short time in all does not last.
        ("aaaa", {"probability": 0.2}, "TRANSIENT"),
        ("aaaa", {"probability": 0.25}, "PERSISTENT"),
    ],
)
def test_lists_that_differ_in_one_client_after_another_differ_in_none_long(in_whom, others, lasts):
    differing = views_differ(in_whom, **others)
    (row,) = queue_episodes(differing, 180)
    assert row.extent.persistence == lasts
    if not others:
        (of_fault,) = fault_episodes(differing, 180)
        assert of_fault.extent.persistence == lasts


@pytest.mark.parametrize(
    ("ports", "lasts"), [("1111", "PERSISTENT"), ("1234", "TRANSIENT"), ("1122", "TRANSIENT")]
)
def test_old_connections_of_one_client_let_two_read_for_as_long_as_each_is_listed(ports, lasts):
    """Its slot is nobody's all the time, for the next one comes before the last one goes."""

    def shown(kind):
        found = replace(finding(0.25, causes=("STALE_CHANNEL",)), kind=kind)
        phases = (
            phase(n, 60 * n, 60 * n, findings=(found,), faults=(stale(port),))
            for n, port in enumerate(ports, start=1)
        )
        (row,) = queue_episodes(timeline(*phases), 180)
        return row.extent.persistence

    def stale(port):
        return fault("STALE_CHANNEL", client_ids=("a",), client_addrs=(f"h:{port}",))

    assert (shown("DUPLICATE"), shown("ORPHANED")) == (lasts, "PERSISTENT")

"""timeline -> episodes: how long a fault lasted without a break, over all its phases."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from jobs.judge.episodes import (
    fault_episodes,
    queue_episodes,
    split_episodes,
    stacked_id_episodes,
)
from jobs.judge.evaluated import Claimant, Move
from tests.judge.phases import at, fault, finding, phase, stacked_id, timeline

END = 600


def episodes(*phases):
    found = queue_episodes(timeline(*phases), persistence_seconds=180)
    return sorted(found, key=lambda each: (each.kind, each.queue, each.first_seen))


def times(episode):
    """First and last second, snapshots, persistence, ongoing."""
    return (
        episode.first_seen // at(1),
        episode.last_seen // at(1),
        episode.snapshots,
        episode.persistence,
        episode.ongoing,
    )


def test_a_fault_that_goes_through_several_states_is_one_episode():
    """A client that restarts changes the state, and not that the queue has no owner."""
    first = (finding(0.25, claimants=[Claimant("a", 1, 0.5)]),)
    second = (finding(0.75, claimants=[Claimant("b", 2, 0.25)]), finding(queue_id=1))

    whole, _ = episodes(
        phase(3, 0, 60, findings=first, completeness=0.5),
        phase(4, 120, 180, findings=second, strategy_source="observed"),
        phase(5, 240, END),
    )

    assert (whole.kind, whole.queue) == ("ORPHANED", ("broker-a", 0))
    assert (whole.certainty, whole.probability, whole.completeness) == ("POSSIBLE", 0.75, 0.5)
    # Who claims it, and where the strategy comes from, is as it was last.
    assert (whole.claimants, whole.strategy_source) == ((Claimant("b", 2, 0.25),), "observed")
    assert times(whole) == (0, 180, 4, "PERSISTENT", False)


def test_a_fault_that_was_mended_in_between_is_two_episodes():
    found = (finding(),)
    first, second = episodes(
        phase(1, 0, 120, findings=found), phase(2, 180, 240), phase(3, 300, END, findings=found)
    )

    assert times(first) == (0, 120, 3, "TRANSIENT", False)
    assert times(second) == (300, END, 6, "PERSISTENT", True)


def test_an_episode_goes_on_over_a_blind_phase():
    """Fewer lists were known there: that they agree does not say that it has ended."""
    (whole,) = episodes(
        phase(1, 0, 60, findings=(finding(0.5),)),
        phase(2, 120, 180, known_position=1, is_blind=True),
        phase(3, 240, 300, known_position=2, findings=(finding(0.5),)),
    )

    # The snapshots are those that show it.
    assert times(whole) == (0, 300, 4, "PERSISTENT", True)


def test_an_episode_of_exactly_the_persistence_seconds_is_persistent():
    (exact,) = episodes(phase(1, 0, 180, findings=(finding(),)))
    (shorter,) = episodes(phase(1, 0, 179, findings=(finding(),)))

    assert (exact.persistence, shorter.persistence) == ("PERSISTENT", "TRANSIENT")


def test_a_change_of_certainty_splits_the_rows_and_not_the_episode():
    """A fault that flickers between CERTAIN and POSSIBLE is one fault."""
    rows = episodes(
        phase(1, 0, 60, findings=(finding(),)),
        phase(2, 120, 120, findings=(finding(0.5),)),
        phase(3, 180, 240, findings=(finding(0.25),)),
        phase(4, 300, END, findings=(finding(),)),
    )

    assert [(each.certainty, each.probability, *times(each)) for each in rows] == [
        ("CERTAIN", 1.0, 0, 60, 2, "PERSISTENT", False),
        ("POSSIBLE", 0.5, 120, 240, 3, "PERSISTENT", False),
        ("CERTAIN", 1.0, 300, END, 6, "PERSISTENT", True),
    ]
    whole = {(each.episode_first_seen, each.episode_last_seen) for each in rows}
    assert whole == {(at(0), at(END))}


def test_the_kinds_and_queues_have_episodes_of_their_own():
    both = (finding(0.5), finding(0.5, kind="DUPLICATE"))
    rows = episodes(
        phase(1, 0, 60, findings=both),
        phase(2, 120, 300, findings=(both[1], finding(queue_id=1))),
    )

    assert [(each.kind, each.queue[1], *times(each)[:2]) for each in rows] == [
        ("DUPLICATE", 0, 0, 300),
        ("ORPHANED", 0, 0, 60),
        ("ORPHANED", 1, 120, 300),
    ]


def test_the_causes_of_an_episode_are_those_that_lasted_else_those_of_all_its_states():
    """What was to blame while the clients started is none of what lasts."""

    def caused(position, first, last, *causes):
        return phase(position, first, last, findings=(finding(causes=causes),))

    first, second = episodes(
        caused(1, 0, 60, "STALE_CHANNEL"),
        caused(2, 120, 150, "GHOST_MEMBER", "STALE_CHANNEL"),
        # Mended, and back: another episode has causes of its own.
        phase(3, 240, 240),
        caused(4, 300, 300, "BROKER_VIEW_DIVERGENCE"),
        caused(5, 360, 360, "ROUTE_DIVERGENCE", "CONFIG_GAP"),
        caused(6, 420, 480, "CONFIG_GAP"),
        caused(7, 540, END, "ROUTE_DIVERGENCE", "CONFIG_GAP"),
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
        "findings_cleared": 1,
        "findings_left": 3,
        "moves": (Move("broker-b", 1, [], ["a"]),),
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


def test_the_faults_have_episodes_of_their_own_and_one_that_was_mended_has_two():
    rows = faults(
        phase(1, 0, 120, faults=(fault(), fault("STALE_CHANNEL"))),
        phase(2, 180, 240, faults=(fault("STALE_CHANNEL"),)),
        phase(3, 300, END, faults=(fault(),)),
    )

    assert [(each.fault, *times(each)) for each in rows] == [
        ("STALE_CHANNEL", 0, 240, 5, "PERSISTENT", False),
        ("STRATEGY_MISMATCH", 0, 120, 3, "TRANSIENT", False),
        ("STRATEGY_MISMATCH", 300, END, 6, "PERSISTENT", True),
    ]


def stacked(*timelines):
    found = stacked_id_episodes(timelines, persistence_seconds=180)
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


def test_a_stacked_id_that_was_gone_for_a_run_of_its_group_has_two_episodes():
    a, b = stacked_id("a"), stacked_id("b")
    rows = stacked(
        timeline(
            phase(1, 0, 60, stacked=(a, b)),
            phase(2, 120, 120, stacked=(b,)),
            phase(3, 180, 240, stacked=(a, b)),
            phase(4, 300, 300),
        )
    )

    assert [(each.client_id, *times(each)) for each in rows] == [
        ("a", 0, 60, 2, "TRANSIENT", False),
        ("a", 180, 240, 2, "TRANSIENT", False),
        ("b", 0, 240, 5, "PERSISTENT", False),
    ]


def test_a_run_of_which_nothing_is_known_breaks_no_episode_of_a_stacked_id():
    (episode,) = stacked(
        timeline(
            phase(1, 0, 60, group_run=1, stacked=(stacked_id(),)),
            phase(2, 300, END, group_run=3, stacked=(stacked_id(),)),
        )
    )

    assert times(episode) == (0, END, 8, "PERSISTENT", True)


def test_a_run_of_which_another_topic_says_that_the_id_is_not_stacked_breaks_its_episode():
    rows = stacked(
        timeline(
            phase(1, 0, 60, group_run=1, stacked=(stacked_id(),)),
            phase(2, 300, END, group_run=3, stacked=(stacked_id(),)),
        ),
        timeline(phase(1, 120, 240, group_run=2), topic="%RETRY%G"),
    )

    assert [times(each)[:2] for each in rows] == [(0, 60), (300, END)]


def test_an_id_of_one_process_is_a_stale_channel_and_has_the_remedy_of_most_processes():
    stale = {"processes": 1, "remedy": "none"}
    rows = stacked(
        timeline(
            phase(1, 0, 60, stacked=(stacked_id("a", **stale), stacked_id("b", **stale))),
            phase(2, 120, 180, stacked=(stacked_id("a", **stale), stacked_id("b"))),
            phase(3, 240, 240, stacked=(stacked_id("a", **stale), stacked_id("b", **stale))),
        )
    )

    assert [(each.client_id, each.processes, each.verdict, each.remedy) for each in rows] == [
        ("a", 1, "STALE_CHANNEL", "none"),
        ("b", 2, "STACKED", "give each its own"),
    ]


def test_of_phases_that_know_of_equally_many_processes_the_last_gives_the_evidence():
    """Clients reconnect: the addresses in the evidence are to be those of now."""
    (episode,) = stacked(
        timeline(
            phase(1, 0, 60, stacked=(stacked_id(evidence="h:1 and h:2"),)),
            phase(2, 120, 180, stacked=(stacked_id(evidence="h:1 and h:3"),)),
        )
    )

    assert episode.evidence == "h:1 and h:3"


@given(st.lists(st.integers(0, 30), unique=True).map(sorted))
def test_episodes_are_the_longest_runs_of_positions_without_a_gap(positions):
    split = split_episodes(positions, lambda each: each)

    assert [each for episode in split for each in episode] == positions
    assert all(each == list(range(each[0], each[-1] + 1)) for each in split)
    assert all(last[-1] + 1 < first[0] for last, first in pairwise(split))


@given(st.lists(st.sampled_from([None, 0.5, 1.0]), max_size=12))
def test_the_rows_of_a_queue_cover_just_the_phases_that_show_it(probabilities):
    phases = [
        phase(n + 1, 60 * n, 60 * n + 30, findings=() if p is None else (finding(p),))
        for n, p in enumerate(probabilities)
    ]
    rows = episodes(*phases)

    assert sum(each.snapshots for each in rows) == len([p for p in probabilities if p])
    for row in rows:
        assert row.episode_first_seen <= row.first_seen <= row.last_seen <= row.episode_last_seen

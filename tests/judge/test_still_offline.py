"""the run before -> a group that is still offline, of which nothing in the window names a topic."""

from __future__ import annotations

from jobs.declared.dossier import EarlierFinding
from jobs.judge.observe.holdings_index import index_holdings
from jobs.judge.rules.episodes import still_offline
from jobs.judge.rules.found import GroupFindings
from tests.judge.lists import NO_ANSWER, NOT_ONLINE, group
from tests.judge.phases import at, case


def earlier(queue_id=0, *, causes=("GROUP_OFFLINE",), kind="ORPHANED", topic="T"):
    return EarlierFinding(
        *(f"id-{queue_id}", kind, topic, "broker-a", queue_id, at(-600), at(-60)),
        *("CRITICAL", causes, at(-600), 1),
    )


OPEN = (earlier(0), earlier(1))


def offline(answers=(NOT_ONLINE,) * 5, *, found=OPEN, topics=(), began=0):
    polls = [(began + 60 * n, began + 60 * n, each) for n, each in enumerate(answers)]
    # Before that it was offline for two rounds.
    early = [(60 * n, 60 * n, NOT_ONLINE) for n in range(2)] if began else []
    dossier = group({"x": [*early, *polls]})
    dossier.earlier = list(found)
    found = still_offline(
        case(dossier=dossier, timelines=topics, offsets={}, holdings=index_holdings([])),
        GroupFindings(),
    )
    return found.queues, found.faults


def test_what_was_offline_in_the_run_before_and_has_no_member_yet_is_still_offline():
    episodes, (fault,) = offline()
    assert [each.queue for each in episodes] == [("broker-a", 0), ("broker-a", 1)]
    for each in episodes:
        assert each.topic == "T"
        assert (each.first_seen, each.last_seen) == (at(0), at(240))
        assert (each.extent.persistence, each.extent.ongoing) == ("PERSISTENT", True)
    assert (fault.fault, fault.queues_affected) == ("GROUP_OFFLINE", 2)
    assert fault.extent.persistence == "PERSISTENT"
    assert "queues 0-1 of broker-a are taken by nobody" in fault.evidence


def test_a_member_at_any_time_tells_the_topics_itself():
    assert offline((NOT_ONLINE, ["a"], NOT_ONLINE)) == ((), ())


def test_brokers_that_do_not_answer_say_nothing():
    assert offline((NO_ANSWER,) * 5) == ((), ())
    episodes, _ = offline((NO_ANSWER, *(NOT_ONLINE,) * 4))
    assert {each.first_seen for each in episodes} == {at(60)}


def test_of_hours_in_which_nobody_looked_nothing_is_said():
    episodes, (fault,) = offline(began=28_800)
    assert {each.first_seen for each in (*episodes, fault)} == {at(28_800)}


def test_a_topic_that_the_window_tells_of_is_judged_by_it():
    assert offline(topics={"T"}) == ((), ())


def test_what_had_another_cause_may_be_over():
    found = [earlier(causes=("GHOST_MEMBER",)), earlier(kind="DUPLICATE")]
    assert offline(found=found) == ((), ())

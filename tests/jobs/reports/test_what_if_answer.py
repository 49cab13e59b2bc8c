"""A what-if in words: the answer first, however large the group; then what moves, and why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobs.declared.instants import to_instant
from jobs.judge.moment import Moment
from jobs.languages.language import ENGLISH
from jobs.reports.text_templates import WIDTH
from jobs.reports.what_if import what_if_lines
from rebalance_core import (
    Change,
    MessageQueue,
    Situation,
    State,
    StrategyRule,
    StrategyRules,
    join,
    leave,
    mend,
    remove_broker,
    resize,
    separate_ids,
    subscribe_all,
    use_strategy,
    what_if,
    what_if_of_group,
)
from tests.support.snapshots import at, lists_of, member, one_list, route_of, state

RULES = StrategyRules([StrategyRule(".*", "AVG")])
#: The lines that somebody who looks at three o'clock in the morning reads.
FIRST = 8


def moment(of: State) -> Moment:
    now = to_instant(at(0))
    return Moment("C", of, now, now, now, {})


def predicted(
    of: State, *changes: Change, waiting: int | None = 0, is_full: bool = False
) -> list[str]:
    """The lines of a what-if of a topic, in each of whose queues so many messages wait."""
    situation = Situation(of, RULES)
    if waiting is not None:
        queues = what_if(situation, []).before.seen_queues
        told = what_if(situation, changes, dict.fromkeys(queues, waiting))
    else:
        told = what_if(situation, changes)
    return list(what_if_lines([(moment(of), told)], ENGLISH, WIDTH, is_full=is_full))


def answer(*lines: str) -> str:
    """The first lines in one, up to the empty one behind the answer."""
    assert "" in lines[: FIRST + 1], "the answer is longer"
    return " ".join(" ".join(lines[: lines.index("")]).split())


def clients(number: int, first: int = 0) -> list[str]:
    return [f"c{each:02}" for each in range(first, first + number)]


@pytest.mark.parametrize(
    ("queues", "there", "changes", "said"),
    [
        # A queue has one reader: of more processes than queues some are idle.
        (8, 9, [join(each) for each in clients(4, 9)],
         "Safe, and of no use: 8 queues, 5 of 13 processes will be idle."),
        (8, 7, [join(each) for each in clients(4, 7)],
         "Safe, and of use to 1 of 4 more processes: 8 queues, 3 of 11 processes will be idle."),
        (8, 4, [join(each) for each in clients(4, 4)],
         "Safe, and of use to 4 more processes: 8 queues, at most 1 a process, 2 before."),
        (8, 9, [leave("c00")],
         "Safe, and no fewer processes have queues: 8 queues, at most 1 a process, as before."),
        (8, 4, [leave("c00")],
         "Safe, and 1 fewer process has queues: 8 queues, at most 3 a process, 2 before."),
        (8, 9, [resize(9)],
         "Safe, and of use to 1 more process: 9 queues, at most 1 a process, as before."),
        (8, 4, [resize(16)],
         "Safe, and of no use by itself: 16 queues, at most 4 a process, 2 before."),
        (8, 9, [resize(4)],
         "Safe, and 4 fewer processes have queues: 4 queues, 5 of 9 processes will be idle."),
        (8, 4, [resize(4)],
         "Safe, and no fewer processes have queues: 4 queues, at most 1 a process, 2 before."),
        (6, 4, [resize(8)],
         "Safe, and of use, more even: 8 queues, at most 2 a process, as before."),
        # What joins and what is taken away are weighed together.
        (8, 8, [leave("c00"), join("c99")],
         "Safe, and of no use by itself: 8 queues, at most 1 a process, as before."),
    ],
)  # fmt: skip
def test_the_answer_has_the_use_beside_the_harm(
    queues: int, there: int, changes: list[Change], said: str
) -> None:
    assert answer(*predicted(one_list(clients(there), queues=queues), *changes)).startswith(said)


def test_what_cures_findings_is_of_use_and_what_changes_nothing_says_so() -> None:
    shared = one_list(["a", "a", "b"], queues=6)
    cured = (
        "Safe, and of use: 2 duplicate queues and 2 orphaned queues then have one owner; 6 queues"
    )
    for change in (separate_ids(), mend("DUPLICATE_CLIENT_ID")):
        assert answer(*predicted(shared, change)).startswith(cured)
    same = "Nothing changes: it is already so at this time (--at asks about another one)."
    assert answer(*predicted(one_list("ab"), separate_ids())) == same


def test_a_fault_that_costs_no_queue_yet_is_mended_to_some_use() -> None:
    """Two filters beside each other: every queue has one owner, and a broker refuses one."""
    members = [member(client_id="a", expression="x"), member(client_id="b", expression="y")]
    said = answer(*predicted(one_list(members), subscribe_all()))
    assert said.startswith("Safe, and of use: EXPRESSION_MISMATCH is mended; 4 queues")


def test_a_second_process_of_an_id_is_of_no_use_whatever_it_reads() -> None:
    said = answer(*predicted(one_list("ab"), join("a")))
    assert said.startswith(
        "NOT safe: 2 duplicate queues and 1 orphaned queue are new when all is done. "
        "To do: give each process its own instanceName"
    )
    assert "use" not in said.partition("To do")[0]


def test_queues_that_go_with_messages_are_told_with_what_to_do_and_the_use() -> None:
    topic = one_list(clients(9), queues=8)
    assert answer(*predicted(topic, resize(4), waiting=1_000)).startswith(
        "NOT safe: 4 queues with 4,000 messages that the group has not consumed go, and nobody "
        "reads what is in them until they are back. "
        "4 fewer processes have queues: 4 queues, 5 of 9 processes will be idle. "
        "To do: let nobody write to the queues that go (lower the number of write queues alone"
    )
    assert answer(*predicted(topic, resize(4), waiting=None)).startswith(
        "NOT safe as far as the dumps show: 4 queues go of which there are no offsets of the group."
    )


def test_a_rollout_that_harms_on_its_way_is_to_be_made_at_one_time() -> None:
    said = answer(*predicted(one_list(clients(4), queues=8), use_strategy("AVG_BY_CIRCLE")))
    assert said.startswith(
        "NOT safe: 14 of 14 states between the steps, in which a rollout may stay, have new "
        "duplicates or orphans. Of no use by itself: 8 queues, at most 2 a process, as before. "
        "To do: make all steps at one time"
    )


def test_where_owners_are_not_known_there_is_no_use_to_tell() -> None:
    said = answer(*predicted(one_list("a"), use_strategy("MACHINE_ROOM")))
    assert said.startswith("NOT safe as far as the dumps show: who owns which queue cannot be ")
    assert "use" not in said.lower().partition("to do")[0]
    broadcasting = one_list([member(client_id="a", message_model="BROADCASTING")])
    said = answer(*predicted(broadcasting, resize(5)))
    assert said == "Safe: its queues are not divided by the clients (BROADCASTING)."


def test_states_that_were_not_all_looked_at_are_no_proof() -> None:
    topic = one_list(clients(24), queues=48)
    lines = predicted(topic, *map(leave, clients(12)))
    assert answer(*lines).startswith("No harm was found, and 12 fewer processes have queues: ")
    assert "(11 of 4,094 states looked at: another may be worse)" in " ".join(
        " ".join(lines).split()
    )


@pytest.mark.parametrize(
    "changed", [resize(4), remove_broker("broker-00"), join("z"), leave("c00")]
)
def test_of_twenty_brokers_the_answer_is_as_short_and_the_picture_has_an_end(
    changed: Change,
) -> None:
    """Twenty brokers with 8 queues each were 150 lines, and the verdict the 115th of them."""
    names = [f"broker-{number:02}" for number in range(20)]
    topic = state(
        client_lists=lists_of(dict.fromkeys(names, clients(30))),
        topic_routes=(route_of(names, read_queue_nums=8),),
    )
    lines = predicted(topic, changed, waiting=5)
    assert answer(*lines).startswith(("Safe", "NOT safe"))
    # The two pictures, the clients that give and take, and the sentences.
    assert len(lines) < 110
    assert " not shown: --full shows all)" in " ".join(" ".join(lines).split())
    whole = "\n".join(predicted(topic, changed, waiting=5, is_full=True))
    assert all(whole.count(name) >= 1 for name in names)
    assert "not shown" not in whole


def test_a_picture_has_the_brokers_that_change_and_counts_those_that_are_alike() -> None:
    names = [f"broker-{number:02}" for number in range(20)]
    topic = state(
        client_lists=lists_of(dict.fromkeys(names, "ab")),
        topic_routes=(route_of(names, read_queue_nums=8),),
    )
    # With the last broker goes the boundary between the two: one broker in the middle moves.
    lines = predicted(topic, remove_broker("broker-19"))
    first = "\n".join(lines).partition("\nAfter\n")[0].partition("\nBefore\n")[2]
    assert [name for name in names if name in first] == ["broker-09", "broker-19"]
    assert (
        "(18 brokers in which nothing is wrong or changes are not shown: --full shows all)" in first
    )


def test_a_client_that_gives_and_takes_is_named_with_its_queues() -> None:
    two = replace(one_list("a"), topic_routes=(route_of(["broker-a", "broker-b"]),))
    lines = predicted(two, remove_broker("broker-b"))
    assert answer(*lines).endswith("4 of 8 queues change hands.")
    assert "a gives up queues 0-3 of broker-b" in lines
    assert "a takes queue 4 of broker-a" in predicted(one_list("a"), resize(5))
    assert "No queue moves." in predicted(one_list("ab", queues=1), leave("b"))
    many = predicted(one_list(clients(50), queues=100), use_strategy("AVG_BY_CIRCLE"))
    assert sum(" gives up " in line or " takes queue" in line for line in many) == 40
    assert "and 10 more" in many


def test_of_several_topics_the_answer_is_one_and_names_the_worst() -> None:
    """Idle is who has no queue of any topic; the retry topic counts for neither."""
    of = {
        "T": one_list(clients(4), queues=2),
        "U": replace(one_list(clients(4), queues=3), topic="U"),
    }
    retry = replace(one_list(clients(4), queues=1), topic="%RETRY%G")
    situations = {name: Situation(each, RULES) for name, each in {**of, "%RETRY%G": retry}.items()}

    def told(*changes: Change, waiting: int) -> str:
        backlogs = {
            name: {MessageQueue(name, "broker-a", number): waiting for number in range(3)}
            for name in situations
        }
        predictions = what_if_of_group(situations, changes, backlogs)
        every = [(moment(each.state), predictions[name]) for name, each in situations.items()]
        return answer(*what_if_lines(every, ENGLISH, WIDTH))

    assert told(join("c04"), waiting=0).startswith(
        "Safe, and of no use: 5 queues, 2 of 5 processes will be idle."
    )
    assert told(resize(1), waiting=7).startswith(
        "NOT safe for 2 topics of 3, U above all: 2 queues with 14 messages that the group has not "
        "consumed go"
    )

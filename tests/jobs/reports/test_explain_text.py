"""A situation in words: of states that the sample dumps do not have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from jobs.config.choices import LANGUAGES
from jobs.declared.instants import SECOND, to_instant
from jobs.judge.moment import Moment
from jobs.languages.language import ENGLISH, language
from jobs.reports.situation_text import Judged, explain_lines
from jobs.reports.text_templates import WIDTH
from jobs.reports.what_if import what_if_lines
from jobs.texts.shown import display_width
from rebalance_core import (
    Change,
    Situation,
    State,
    StrategyRule,
    StrategyRules,
    WhatIf,
    leave,
    what_if,
)
from rebalance_core.views import readable_by_some
from tests.support.snapshots import (
    at,
    client_list,
    lists_of,
    member,
    one_list,
    one_list_each,
    route,
    route_broker,
    route_of,
    state,
)

RULES = StrategyRules([StrategyRule(".*", "AVG")])


def moment(of: State, last: int = 0) -> Moment:
    """The state as of the first snapshot of a period of so many seconds, and nothing besides."""
    now = to_instant(at(0))
    return Moment("C", of, now, now, now + last * SECOND, {})


def explained(of: State, last: int = 0, **shown: Any) -> str:
    """The text of a moment at which nothing was judged to be wrong."""
    told = replace(moment(of, last), **shown)
    lines = explain_lines(Situation(of, RULES), told, Judged(), ENGLISH, WIDTH)
    return "".join(f"{line}\n" for line in lines)


def drawn(of: State) -> list[str]:
    """The lines of the picture."""
    return explained(of).partition("Who takes what\n")[2].partition("(#")[0].splitlines()


def wide(queues: int, clients: Iterable[str], *names: str) -> State:
    """Brokers of so many queues, of which the first lists these clients."""
    return state(
        client_lists=(client_list(*clients),),
        topic_routes=(route_of(names or ("broker-a", "broker-b"), read_queue_nums=queues),),
    )


def predicted(of: State, *changes: Change) -> str:
    return "\n".join(what_if_lines([effect(of, *changes)], ENGLISH, WIDTH))


def effect(of: State, *changes: Change) -> tuple[Moment, WhatIf]:
    return moment(of), what_if(Situation(of, RULES), changes)


def test_names_that_take_two_columns_a_character_leave_the_picture_straight() -> None:
    """Whoever names clients and brokers in Chinese reads which queue is whose, in any language."""
    of = state(
        client_lists=lists_of({"b": ["10.0.0.1@订单", "10.0.0.2@a"]}),
        topic_routes=(route_of(["订单主库", "b"], read_queue_nums=2),),
        offline_brokers=(("订单主库", 0),),
    )
    for chosen in (ENGLISH, language("zh")):
        lines = list(explain_lines(Situation(of, RULES), moment(of), Judged(), chosen, WIDTH))
        first = next(number for number, line in enumerate(lines) if line.endswith("订单主库"))
        numbers, *rows = lines[first + 1 : first + 4]
        assert numbers.split() == ["0", "1", "0", "1"]
        assert [row.split()[0] for row in rows] == ["10.0.0.1@订单", "10.0.0.2@a"]
        assert {display_width(row) for row in rows} == {display_width(numbers)}


def test_what_waits_is_at_least_so_much_where_a_queue_has_no_offsets() -> None:
    of = one_list("a")
    queue = min(readable_by_some(of))
    text = explained(of, backlog={queue: 1_200}, backlog_at=to_instant(at(0)))
    assert "At least 1,200 messages wait (no offsets of 3 of 4 queues)." in text


def test_the_heading_tells_since_when_it_is_so() -> None:
    text = explained(one_list(["a"]), last=90)
    assert text.startswith(
        "G on T, cluster C, as of 2026-01-05T00:00:00.000Z\n"
        "Nothing is wrong at this moment.\n"
        "Readers of 4 queues: 4 have one by lists; no process said; there are no offsets.\n\n"
        "By lists and routes alone: 4 queues, 1 process; every queue has one owner\n"
        "(the same from 2026-01-05T00:00:00.000Z to 2026-01-05T00:01:30.000Z)\n"
    )
    text = explained(one_list(["a"]), date="2026-01-05", snapshots=(0, to_instant(at(0))))
    assert "as of 2026-01-05T00:00:00.000Z, the last of 2026-01-05\n" in text
    text = explained(one_list(["a"]), date="2026-01-05")
    assert "as of 2026-01-05T00:00:00.000Z, by the run of 2026-01-05\n" in text


def test_members_that_take_no_queue_are_told_with_the_reason() -> None:
    members = [
        member(client_id="assigns", subscribed=False, chooses_queues=True),
        member(client_id="other", subscribed=False),
        member(client_id="silent", is_expired=True),
        member(client_id="reads all", message_model="BROADCASTING"),
        member(client_id="perhaps", subscribed_percent=35),
    ]
    text = explained(one_list(["takes", *members]))
    for line in (
        "  strategy AVG (configured): takes",
        "  takes a slot and no queue: chooses its queues itself, by assign(): assigns",
        "  takes a slot and no queue: does not subscribe to the topic: other",
        "  takes a slot and no queue: its last heartbeat is too old: silent",
        "  reads every queue and takes a slot: broadcasts: reads all",
        "  strategy AVG (configured), if it subscribes at all, which is 35% probable: perhaps",
    ):
        assert f"{line}\n" in text, line


def test_brokers_without_a_list_and_queues_that_nobody_may_read_are_told() -> None:
    closed = route_broker(broker_name="broker-b", perm=2)
    of = state(
        client_lists=(client_list("a"),),
        topic_routes=(route(closed, route_broker(), route_broker(broker_name="broker-c")),),
        offline_brokers=(("broker-b", 0), ("broker-b", 1)),
    )
    text = explained(of)
    assert "  broker-b knows no member of the group\n" in text
    assert "  broker-b (slave 1) knows no member of the group\n" in text
    assert "queues to read: broker-a 4, broker-b 4 (not readable), broker-c 4\n" in text
    assert "  (the lists of 33% of the topic's brokers are known)\n" in text


@pytest.mark.parametrize(("left_out", "said"), [(1, "1 more broker"), (2, "2 more brokers")])
def test_brokers_that_are_left_out_are_counted_in_their_number(left_out: int, said: str) -> None:
    names = [f"broker-{number:02}" for number in range(8 + left_out)]
    of = state(
        client_lists=lists_of({"broker-x": "a"}),
        topic_routes=(route_of(names),),
        offline_brokers=tuple((each, 0) for each in names),
    )
    text = " ".join(explained(of).split())
    assert f"broker-07 4, and {said} " in text
    assert f" {said} {'knows' if left_out == 1 else 'know'} no member of it" in text


def test_of_a_topic_that_is_not_audited_nobody_says_that_nothing_is_wrong() -> None:
    text = explained(state(topic_routes=()))
    assert "\nNothing was found, and who owns which queue is not known at this moment.\n" in text
    assert "0 queues, 2 processes; not audited\nROUTE_NOT_KNOWN: " in text
    assert "Who takes what: nothing is taken\n" in text


def test_what_lists_and_routes_give_to_nobody_is_not_said_where_the_audit_does_not_count_it() -> (
    None
):
    """Offsets advance in queues of which no broker lists a reader: a proxy has the members."""
    text = explained(one_list_each({"broker-a": "ab", "broker-b": "a"}))
    said = " ".join(text.split())
    assert (
        "Of these the audit does not count queues 2-3 of broker-a: offsets, running infos" in said
    )
    assert "repair" not in text.lower()
    assert "mended" not in text


def test_a_wide_picture_is_parted_by_broker_and_within_100_columns() -> None:
    long = "a-broker-with-a-name-of-more-than-24-characters"
    lines = drawn(wide(20, "aab", "broker-a", "broker-b", long))
    assert max(map(len, lines)) <= 100
    picture = "\n".join(lines)
    # Each part has the clients that take something in it.
    assert [picture.count(each) for each in ("  a (x2) ", "  b ", "  wrong ")] == [1, 1, 2]
    assert long in picture
    assert (picture.count("D"), picture.count("O"), picture.count("#")) == (20, 20, 20)
    assert picture.count("  2" * 20) == 1


def test_long_numbers_of_queues_stand_apart() -> None:
    lines = drawn(wide(130, [*(f"c{number:02}" for number in range(43)), "z", "z"]))
    assert lines[1].split() == [str(number) for number in range(120, 130)]
    assert len(lines[1]) == len(lines[2])
    assert max(map(len, lines)) <= 100


def test_of_many_clients_and_queues_those_with_findings_are_drawn() -> None:
    of = wide(69, [*(f"c{number:02}" for number in range(44)), "z", "z"])
    lines = drawn(of)
    assert len([line for line in lines if "  z (x2) " in line]) == 1
    assert not [line for line in lines if "  c00 " in line]
    assert lines[1].split() == ["63", "64", "65", "66", "67", "68"]
    left_out = "1 broker in which nothing is wrong or changes and 63 more queues"
    assert f"({left_out} are not shown: --full shows all)" in " ".join(explained(of).split())


def test_one_list_of_two_is_told_at_times() -> None:
    of = one_list_each({"broker-a": "ab", "broker-b": "a"})
    text = explained(of)
    assert "  asked of broker-a (50% of the times): 4 queues, 2 client ids\n" in text
    assert "  asked of broker-b (50% of the times): 4 queues, 1 client id\n" in text
    assert "  a        #  #  ~  ~\n  b        .  .  ~  ~\n  wrong         od od\n" in text


def test_a_name_makes_no_line_of_its_own_and_no_part_of_a_template() -> None:
    """Whoever names a client in the form of a template, or on two lines, has one name."""
    of = one_list(["10.0.0.1@a\nFindings", "{{ moment }}", "{client_id}"])
    for text in (explained(of), predicted(of, leave("{client_id}"))):
        assert "10.0.0.1@a\\nFindings" in text
        assert "\nFindings" not in text
        assert "{{ moment }}" in text
        assert "{client_id}" in text


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_secret_in_an_id_is_shown_in_no_language_and_hides_no_other_id(code: str) -> None:
    """Where a secret ends, a Chinese text has no blank and no comma."""
    key = "10.0.0.2@LTAI4Fhxxxxxxxx|s3cr3tKeyOfTheCloud|pay-topic|1"
    of = one_list(["10.0.0.1@password=hunter22", key, key, "10.0.0.3@app"])
    left = [effect(of, leave("10.0.0.3@app"))]
    for lines in (
        explain_lines(Situation(of, RULES), moment(of), Judged(), language(code), WIDTH),
        what_if_lines(left, language(code), WIDTH),
    ):
        text = "\n".join(lines)
        assert "hunter22" not in text
        assert "s3cr3tKey" not in text
        assert "password=(secret " in text
        if "AVG" in text:
            # The list of those with this strategy goes on behind the secret.
            assert "10.0.0.3@app" in text.partition("AVG")[2][:200]

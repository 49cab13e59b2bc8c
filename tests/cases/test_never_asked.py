"""A broker of the route that no poll ever asked: what it lists nobody knows."""

from __future__ import annotations

import pytest

from jobs.cli import main
from tests.cases.small_dumps import (
    BROKERS,
    MEMBERS,
    MINUTES,
    OFFLINE,
    TIMED_OUT,
    members,
    offsets,
    route,
)

#: Two processes have one id: by AVG both take a0 and a1, and nobody a2 and a3. By AVG_BY_CIRCLE
#: they are a0 and b0, and a1 and b1: where nobody saw the strategy, a0 alone is certain.
SHARED = ["10.0.0.1@1", "10.0.0.1@1", *MEMBERS[2:]]
SAID = "broker-{} of cluster C is in the routes, but no list or answer of it came"
CONSUMED_BY_NOBODY = "CRITICAL from 2026-11-20 10:00:00 on: 2 queues consumed by nobody"
INCOMPLETE = ("--fail-on", "INCOMPLETE")


def polled(answers):
    """What each broker of the route answers; None: it is not asked. Who lists nobody listed the
    members for two minutes.
    """
    for minute in MINUTES:
        yield route(60 * minute, *answers)
        for name, answer in answers.items():
            if answer is not None:
                listed = MEMBERS if answer is OFFLINE and minute < 2 else answer
                yield members(60 * minute + 1, name, listed)


def brokers(*answers):
    return {f"broker-{letter}": each for letter, each in zip("abc", answers, strict=False)}


@pytest.mark.parametrize(
    ("answers", "certainties"),
    [
        # All that is known is one of two lists.
        ((SHARED, None), {("POSSIBLE", 0.5)}),
        # The group may live at the third broker.
        ((OFFLINE, OFFLINE, None), {("POSSIBLE", round(2 / 3, 2))}),
        # Who was asked and gave nothing is down for the clients as well.
        ((SHARED, TIMED_OUT), {("CERTAIN", 1.0), ("POSSIBLE", 1.0)}),
        ((OFFLINE, OFFLINE, TIMED_OUT), {("CERTAIN", 1.0)}),
        ((MEMBERS, None), set()),
    ],
)
def test_what_a_broker_that_nobody_asked_may_list_is_possible(audit, answers, certainties):
    found = audit(polled(brokers(*answers)))
    rows = found["orphaned_queues"] + found["duplicate_queues"]
    assert {(row["certainty"], round(row["probability"], 2)) for row in rows} == certainties


@pytest.mark.parametrize(
    ("answers", "is_said"),
    [((MEMBERS, None), True), ((SHARED, None), True), ((MEMBERS, TIMED_OUT), False)],
)
def test_a_broker_that_nobody_asked_is_named_and_makes_the_run_incomplete(run, answers, is_said):
    code, said = run(polled(brokers(*answers)), *INCOMPLETE)
    assert (code, SAID.format("b") in said) == (1, is_said)


@pytest.mark.parametrize(
    ("answers", "another", "judged"),
    [
        (
            (SHARED, None),
            False,
            "WARNING from 2026-11-20 10:00:00 on: 2 queues at times consumed by nobo",
        ),
        ((SHARED, None), True, CONSUMED_BY_NOBODY),
        ((SHARED, TIMED_OUT), False, CONSUMED_BY_NOBODY),
    ],
)
def test_explain_says_of_it_what_the_run_says(
    run, tmp_path, capsys, monkeypatch, answers, another, judged
):
    """Also where the broker was asked about another group alone."""
    monkeypatch.chdir(tmp_path)
    by_another = [members(60 * minute + 2, "broker-b", MEMBERS) for minute in MINUTES]
    about_another = [each | {"consumer_group": "H"} for each in by_another] * another
    run([*polled(brokers(*answers)), *about_another])
    for place in (["--dumps", "dump.jsonl"], ["--snapshots", "out/snapshots"], []):
        assert main(["explain", *place, "--group", "G", "--topic", "T"]) == 0
        assert f"Still there, {judged}" in " ".join(capsys.readouterr().out.split())


def test_a_broker_that_another_cluster_of_the_same_nameserver_asks_is_asked(audit, run):
    def lines():
        for minute in MINUTES:
            yield route(60 * minute, *BROKERS)
            yield members(60 * minute + 1, "broker-a", SHARED)
            yield route(60 * minute, "broker-b") | {"cluster": "D"}
            yield members(60 * minute + 1, "broker-b", SHARED) | {"cluster": "D"}

    assert "CERTAIN" in {row["certainty"] for row in audit(lines())["duplicate_queues"]}
    assert SAID.format("b") not in run(lines())[1]


def test_a_cluster_of_which_no_broker_was_asked_is_not_said_broker_by_broker(run):
    """It has one sentence, with the groups of which something came: nothing of them is audited."""

    def lines():
        for minute in MINUTES:
            yield route(60 * minute, "broker-a")
            yield members(60 * minute + 1, "broker-a", MEMBERS)
            of_d = {"cluster": "D", "namesrv_addr": "other:9876"}
            yield route(60 * minute, "broker-x", "broker-y") | of_d
            yield offsets(60 * minute + 1, "broker-x", {0: (9, 0)}) | {"cluster": "D"}

    code, said = run(lines(), *INCOMPLETE)
    assert code == 1
    assert "is in the routes, but no list" not in said
    assert "cluster D: offsets of G came, but no list or answer about the members" in said
    assert "cluster C: offsets" not in said

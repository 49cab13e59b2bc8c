"""Who the members are at a time: what slaves still list, and processes that share an id."""

from __future__ import annotations

import pytest

from tests.cases.small_dumps import (
    BROKERS,
    MEMBERS,
    MINUTES,
    OFFLINE,
    TIMED_OUT,
    members,
    of_slave,
    route,
    with_slave,
)

SLAVES = with_slave("broker-a") | with_slave("broker-b")


@pytest.mark.parametrize(
    ("said", "begins"),
    [
        # All stop at 10:05, between the answer of a slave and that of its master.
        (OFFLINE, "10:05:00"),
        # The masters answer nothing any more: the slaves know.
        (TIMED_OUT, "10:06:00"),
    ],
)
def test_a_slave_that_is_asked_first_does_not_keep_who_has_stopped(audit, said, begins):
    def lines():
        for minute in MINUTES:
            yield route(60 * minute, *BROKERS, addrs=SLAVES)
            for name in BROKERS:
                yield of_slave(members(60 * minute + 1, name, MEMBERS if minute < 6 else OFFLINE))
                yield members(60 * minute + 3, name, MEMBERS if minute < 5 else said)

    found = audit(lines())
    (event,) = (each for each in found["events"] if each["kind"] == "GROUP_SCALED")
    assert event["headline"].startswith(f"{begins} group G was scaled from 4 to 0 members: ")
    if said is OFFLINE:
        assert "no queue lost" not in event["headline"]
        assert event["queues_lost"] == len(found["orphaned_queues"]) == 8


SHARED = ["10.0.0.1@app", "10.0.0.1@app", "10.0.0.2@2"]


@pytest.mark.parametrize(
    ("now", "what"),
    [
        (["10.0.0.1@app", "10.0.0.1@own", "10.0.0.2@2"], "1 of 3 members of G were replaced or "),
        ([*SHARED, "10.0.0.4@4"], "group G was scaled from 3 to 4 members"),
        (["10.0.0.1@app", "10.0.0.1@own", *MEMBERS[2:], "10.0.0.9@9"], "group G was scaled from 3"),
    ],
)
def test_a_process_that_gets_an_id_of_its_own_is_no_new_member(audit, now, what):
    """Two of three processes share an id until 10:08."""

    def lines():
        for minute in MINUTES:
            ids = SHARED if minute < 8 else now
            yield route(60 * minute, *BROKERS)
            for name in BROKERS:
                kept = [f"{each.split('@')[0]}:40{n:03}" for n, each in enumerate(ids)]
                yield members(60 * minute + 1, name, ids, addrs=kept)

    (event,) = audit(lines())["events"]
    assert what in event["headline"]

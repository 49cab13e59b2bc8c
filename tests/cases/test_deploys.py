"""Members of a group that are restarted one after the other, at coarse rounds."""

import pytest

from tests.cases.small_dumps import BROKERS, MEMBERS, members, rounds, route

#: Virtual machines, each with an id that is the same after a restart.
MACHINES = [f"10.0.0.{number}@app" for number in range(6)]


def polled(every, number, turn):
    """Lists alone; ``turn``: by machine and round how often its connection is another one."""
    for round_ in range(number):
        now = every * round_
        yield route(now, *BROKERS)
        for place, name in enumerate(BROKERS, start=1):
            ports = [40_000 + 100 * place + turn(machine, round_) for machine in range(6)]
            addrs = [f"10.0.0.{machine}:{port}" for machine, port in enumerate(ports)]
            yield members(now + place, name, MACHINES, addrs=addrs)


@pytest.mark.parametrize(
    ("turns", "reconnect"),
    [
        # Three deploys within 75 minutes, two machines a round.
        pytest.param(lambda machine: [start + machine // 2 for start in (2, 8, 14)], 0, id="turns"),
        # A load balancer drops all connections.
        pytest.param(lambda _: [2, 8, 14], 6, id="at once"),
        # Each loses its connection every 30 minutes, in its own rhythm.
        pytest.param(lambda machine: [1 + machine, 6 + machine, 11 + machine], 6, id="rhythms"),
    ],
)
def test_restarts_one_after_the_other_are_a_deploy_whatever_the_round(audit, turns, reconnect):
    """Rounds of 300 s; ``turns``: by machine the rounds that see it anew."""

    def restarted(machine, round_):
        return sum(turn <= round_ for turn in turns(machine))

    faults = [each["fault"] for each in audit(polled(300, 18, restarted))["group_faults"]]
    assert faults == ["RECONNECTING"] * reconnect


NEW = [f"10.0.1.{number}@{number}" for number in range(4)]
REPLACED = "10:05:00 4 of 4 members of G were replaced or restarted: "
NOTHING = "since then the group consumes nothing"


@pytest.mark.parametrize(
    ("reads", "came_of_it"),
    [
        (lambda _: True, "no queue lost"),
        # From the deploy on; the first polls after it still show what the old ones read.
        (lambda minute: minute < 5, NOTHING),
        (lambda minute: minute < 6, NOTHING),
        (lambda minute: not 5 <= minute < 11, "then the group consumes nothing until 10:10:00"),
        # It was so before, or is so long after.
        (lambda minute: minute < 3, "no queue lost"),
        (lambda minute: minute < 9, "no queue lost"),
    ],
)
def test_a_deploy_says_whether_the_group_consumes_since(audit, reads, came_of_it):
    """Rounds each minute; all pods are replaced at once at 10:05."""

    def read(minute, _):
        last = max(each for each in range(minute + 1) if reads(each))
        return 100 * minute + 9, 100 * last

    (event,) = audit(rounds(lambda n, _: MEMBERS if n < 5 else NEW, read, range(20)))["events"]
    assert event["headline"] == REPLACED + came_of_it

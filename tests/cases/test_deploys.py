"""Members of a group that are restarted one after the other, at coarse rounds."""

import pytest

from tests.cases.small_dumps import BROKERS, members, route

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

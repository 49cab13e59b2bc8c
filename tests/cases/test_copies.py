"""Copies of a client id that some brokers' lists have, and others do not."""

import pytest

from tests.cases.small_dumps import BROKERS, members, of_slave, route, with_slave

ID = "10.0.0.1@app"
OTHERS = ["10.0.0.2@app", "10.0.0.3@app"]
#: (name, id), the number of which is in the ports of its connections.
ASKED = [("broker-a", 0), ("broker-a", 1), ("broker-b", 0), ("broker-c", 0)]
#: A connection that breaks stays listed for so long after the next one began.
KEPT = 130


def of_one_process(second, broker_name):
    """It reconnects to broker-a and its slave every 110 s; to the others it is connected once."""
    if broker_name != "broker-a":
        return [0]
    return [number for number in range(-4, 40) if 0 <= second - 110 * number < 110 + KEPT]


def of_two_processes(_, __):
    return [0, 1]


def polled(connections, rounds):
    """By second and broker the ports of the id."""
    for round_ in rounds:
        now = 60 * round_
        yield route(now, *BROKERS, "broker-c", addrs=with_slave("broker-a"))
        for place, (name, broker_id) in enumerate(ASKED, start=1):
            ports = [41_000 + 100 * place + port for port in connections(now + place, name)]
            addrs = ["10.0.0.2:1", "10.0.0.3:1", *(f"10.0.0.1:{port}" for port in ports)]
            given = members(now + place, name, [*OTHERS, *[ID] * len(ports)], addrs=addrs)
            yield of_slave(given) if broker_id else given


@pytest.mark.parametrize("rounds", [range(1, 3), range(2, 4), range(15)])
def test_copies_that_half_of_the_lists_contradict_are_one_process(audit, rounds):
    """However short the window is; a longer one shows it reconnect."""
    found = audit(polled(of_one_process, rounds))
    faults = {each["fault"] for each in found["group_faults"]}
    assert "DUPLICATE_CLIENT_ID" not in faults
    assert ("RECONNECTING" in faults) == (len(rounds) > 3)
    assert {each["verdict"] for each in found["stacked_client_ids"]} == {"STALE_CHANNEL"}


@pytest.mark.parametrize("rounds", [range(1, 3), range(15)])
def test_copies_that_all_lists_have_are_two_processes(audit, rounds):
    found = audit(polled(of_two_processes, rounds))
    assert "DUPLICATE_CLIENT_ID" in {each["fault"] for each in found["group_faults"]}
    assert {each["verdict"] for each in found["stacked_client_ids"]} == {"STACKED"}


def moved_pod(minute):
    """Its node hangs at 10:05, it starts elsewhere at 10:06, and at 10:12 the node goes on."""
    old = minute <= 7 or minute >= 12
    return [*["10.0.1.1:1"] * (minute <= 7), *["10.0.1.1:2"] * (old and minute > 7)] + (
        ["10.0.2.2:1"] * (minute >= 6)
    )


def two_pods(minute):
    """The first one restarts at 10:05, beside the second."""
    return ["10.0.1.1:2" if minute >= 6 else "10.0.1.1:1"] * (minute != 5) + ["10.0.2.2:1"]


@pytest.mark.parametrize(("hosts", "is_old"), [(moved_pod, True), (two_pods, False)])
def test_an_old_process_that_goes_on_is_to_end(audit, hosts, is_old):
    def lines():
        for minute in range(25):
            yield route(60 * minute, *BROKERS)
            for place, name in enumerate(BROKERS, start=1):
                own = [f"{address}{place}" for address in hosts(minute)]
                ids, addrs = [*OTHERS, *[ID] * len(own)], ["10.0.0.2:1", "10.0.0.3:1", *own]
                yield members(60 * minute + place, name, ids, addrs=addrs)

    found = audit(lines())["group_faults"]
    faults = [each for each in found if each["fault"] == "DUPLICATE_CLIENT_ID"]
    assert [each["ongoing"] for each in faults] == [True]
    ending = "stop the old process at 10.0.1.1: it was silent from 10:07:02 to 10:12:01 UTC"
    assert (ending in faults[0]["remedy"]) == is_old

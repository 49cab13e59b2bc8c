"""reassignments -> members that come and go again and again; a deploy is none."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import strategies as st

from jobs.judge.observe.channels import Channel
from jobs.judge.observe.situations import Situations
from jobs.judge.observe.timeline import Reassignment
from jobs.judge.rules.flapping import Life, flapping_members
from jobs.judge.rules.found import GroupFindings
from tests.judge.phases import TERMS, at, case


def found(*changes, end=60, channels=None, persistence_seconds=180, members=3, every=60):
    """The fault of changes as (minute, who joined, who left), in rounds of ``every`` seconds."""
    rows = [
        Reassignment("T", at(60 * minute), 0, None, "", "", joined, left, 4, 4, 4, True)
        for minute, joined, left in changes
    ]
    phases = [SimpleNamespace(last_seen=at(60 * end))]
    of = case(
        terms=replace(TERMS, persistence_seconds=persistence_seconds),
        main_topic="T",
        snapshots=[at(second) for second in range(0, 60 * end + 1, every)],
        reassignments={"T": rows},
        situations=Situations({}, channels or {}),
        timelines={"T": SimpleNamespace(phases=phases, members_at=lambda _: members)},
    )
    faults = flapping_members(of, GroupFindings()).faults
    assert len(faults) <= 1
    return faults[0] if faults else None


def crash_loop(every, times, host="10.0.0.7", began=0):
    """A process that crashes at once and is started again; its ids hold its start time."""
    changes = []
    for number in range(times):
        changes.append((began + every * number, [f"{host}@1#{number}"], []))
        changes.append((began + every * number + 2, [], [f"{host}@1#{number}"]))
    return changes


def test_a_process_that_crashes_and_is_started_again_flaps():
    fault = found(*crash_loop(every=6, times=8))

    assert (fault.fault, fault.topic, fault.extent.persistence) == ("FLAPPING", "T", "PERSISTENT")
    assert (fault.first_seen, fault.last_seen) == (at(0), at(60 * 44))
    assert fault.client_ids == tuple(f"10.0.0.7@1#{number}" for number in range(8))
    assert fault.evidence == (
        "10.0.0.7 joined 8 times with 8 client ids; meanwhile members joined or left 16 times, "
        "22 per hour, and each time all queues are divided again"
    )
    assert fault.remedy.startswith("find out why the processes of 10.0.0.7 end: ")
    assert fault.queues_affected == 0


def test_a_client_that_has_the_same_id_each_time_is_named_with_its_addresses():
    changes = []
    for minute in range(0, 40, 5):
        changes += [(minute, ["pod-1"], []), (minute + 2, [], ["pod-1"])]
    seen = [(f"h:{n}", at(300 * n), at(300 * n + 60), None) for n in (0, 1, 99)]
    channels = {"pod-1": [Channel(("b", 0), "pod-1", *each) for each in seen]}

    fault = found(*changes, channels=channels)

    assert fault.evidence.startswith("pod-1 joined 8 times; ")
    assert (fault.client_ids, fault.client_addrs) == (("pod-1",), ("h:0", "h:1"))


def release(number, members=4):
    """The client ids of the pods of a release, each with an address of its own."""
    return [f"10.2.{number}.{pod}@1#{number}" for pod in range(members)]


@pytest.mark.parametrize("a_minute", [4, 2, 1])
def test_releases_that_replace_all_members_each_time_are_no_crashes(a_minute):
    """Five in an hour, each of so many pods a minute."""
    changes = []
    for number in range(1, 6):
        pods = list(zip(release(number), release(number - 1), strict=True))
        for minute, first in enumerate(range(0, 4, a_minute)):
            new, old = map(list, zip(*pods[first : first + a_minute], strict=True))
            changes.append((12 * number + minute, new, old))

    assert found(*changes, end=80, members=4) is None
    # Where most of the group stays as it is, they are no releases of the group.
    assert found(*changes, end=80, members=40) is not None


def test_a_pod_that_is_replaced_each_minute_flaps_in_a_small_group():
    pods = [release(number, 1) for number in range(30)]
    changes = [(n, new, old) for n, (old, new) in enumerate(pairwise(pods))]
    assert found(*changes, members=2) is not None
    # Where there is no other member, it is no release of the group either.
    assert found(*[(6 * n, new, old) for n, new, old in changes], members=1) is not None


def test_pods_with_a_host_each_flap_together():
    """An autoscaler that goes back and forth: three pods for two minutes, each time new ones."""
    changes = []
    for number in range(6):
        pods = [f"10.1.{number}.{pod}@1#{number}" for pod in range(3)]
        changes += [(8 * number, pods, []), (8 * number + 3, [], pods)]

    fault = found(*changes)

    assert fault.evidence.startswith("processes of several hosts joined 18 times with 18 client id")
    assert fault.remedy.startswith("find out why processes of several hosts end: ")


VMS = [f"10.0.0.{number}@app" for number in range(4)]


def restarts(*minutes, takes=1, of=VMS):
    """Each time all of them leave one after the other, and are back a minute later."""
    return [
        change
        for begins in minutes
        for turn, name in enumerate(of)
        for change in (
            (begins + turn * takes, [], [name]),
            (begins + turn * takes + 1, [name], []),
        )
    ]


def test_deploys_of_machines_that_keep_their_ids_do_not_flap_beside_a_crash():
    """Three deploys in 45 minutes, and a restart of each in between: four lives of each host."""
    assert found(*sorted(restarts(2, 14, 26, 38)), members=4) is None
    # What happens to them again and again is no deploy, nor what happens to one of ten.
    assert found(*sorted(restarts(2, 12, 22, 32, 42)), members=4) is not None
    assert found(*sorted(restarts(2, 14, 26, 38, of=VMS[:1])), members=10) is not None


@pytest.mark.parametrize(("every", "flaps"), [(300, False), (60, True)])
def test_a_release_may_take_two_rounds(every, flaps):
    """Half of the processes are seen to be replaced in the one, the others in the next."""
    ids = [[f"10.0.0.{host}@{version}" for version in range(5)] for host in range(4)]
    changes = [
        (15 * deploy + 5 * later, [of[deploy + 1] for of in half], [of[deploy] for of in half])
        for deploy in range(4)
        for later, half in enumerate((ids[:2], ids[2:]))
    ]
    assert (found(*changes, members=4, every=every) is not None) == flaps


@pytest.mark.parametrize(
    ("every", "times", "flaps"),
    [(15, 4, True), (16, 4, False), (6, 3, False), (6, 4, True), (1, 4, False)],
)
def test_at_least_four_lives_an_hour_over_some_time(every, times, flaps):
    # Joining each minute, the fourth follows 180 s after the first, which is enough; but one that
    # is listed for another minute cannot have ended before the next one begins.
    assert (found(*crash_loop(every, times), persistence_seconds=181) is not None) == flaps


@pytest.mark.parametrize(("end", "ongoing"), [(44, True), (50, True), (51, False)])
def test_it_goes_on_for_as_long_as_it_took_to_come_again(end, ongoing):
    assert found(*crash_loop(every=6, times=8), end=end).extent.ongoing == ongoing


def lives():
    one = st.tuples(st.integers(0, 30), st.one_of(st.none(), st.integers(0, 8)))
    return st.lists(
        one.map(lambda life: Life("a", life[0], None if life[1] is None else life[0] + life[1])),
        max_size=8,
    )

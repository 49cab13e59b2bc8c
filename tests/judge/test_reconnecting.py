"""channels -> clients that connect again and again; a deploy, or two processes, are none."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from jobs.declared.dossier import Dossier, ListedIds, PollRun
from jobs.judge.observe.channels import Channel
from jobs.judge.observe.situations import Situations
from jobs.judge.result.severity import Harms
from jobs.judge.rules.found import GroupFindings
from jobs.judge.rules.reconnecting import blamed, reconnecting_clients
from tests.judge.lists import started
from tests.judge.phases import at, case, queue_finding
from tests.judge.test_severity import fault_of

END = 3600
A, B = ("broker-a", 0), ("broker-b", 0)


def channel(port, first, last, broker=A, client_id="a"):
    ends = None if last >= END else at(last + 60)
    return Channel(broker, client_id, f"10.0.0.1:{port}", at(first), at(last), ends)


def breaking(every, times, listed=130, broker=A, client_id="a", began=0):
    """Connections that break without a word, one after the other; each stays listed for a time."""
    made = []
    for number in range(times):
        first = began + every * number if number else 0
        last = min(END, began + every * (number + 1) + listed)
        made.append(channel(number, first, last, broker, client_id))
    return made


def info(start, *seconds, client_id="a"):
    return started(client_id, start, *seconds)


def all_faults(*channels, clients=(), faults=(), end=END, members=9, snapshots=(), topic="MAIN"):
    """The faults that there are, with those of the clients that reconnect at the end."""
    by_id = {}
    for each in channels:
        by_id.setdefault(each.client_id, []).append(each)
    of = case(
        dossier=Dossier("C", "G", [PollRun(A, "list", (at(0),), (at(end),))], clients=clients),
        expiry=at(130),
        main_topic=topic,
        situations=Situations({}, by_id),
        snapshots=snapshots,
        members_in_time=[ListedIds(at(0), frozenset(map(str, range(members))))],
    )
    return reconnecting_clients(of, GroupFindings(faults=tuple(faults))).faults


def found(*channels, faults=(), **facts):
    """The faults of the clients that reconnect."""
    return all_faults(*channels, faults=faults, **facts)[len(faults) :]


def causes(fault, *queues):
    every = blamed(case(), GroupFindings(queues=queues, faults=(fault,))).queues
    return [each.causes for each in every]


@pytest.mark.parametrize(
    ("every", "times", "listed", "does"),
    [
        (120, 4, 130, True),
        # What is closed in order is replaced as well.
        (120, 10, -60, True),
        # Two were replaced: a restart of the broker, and one of the client.
        (120, 3, 130, False),
        # All within three minutes; the window has room for two.
        (60, 4, 130, False),
        (90, 4, 130, True),
        (1799, 10, 130, False),
        (1000, 4, 130, True),
    ],
)
def test_three_connections_are_replaced_over_some_time(every, times, listed, does):
    channels = [each for each in breaking(every, times, listed) if each.first_seen < at(END)]
    assert bool(found(*channels)) == does


def test_who_was_in_no_list_was_restarted():
    # Each time a poll finds the client nowhere before it is back.
    restarts = [channel(n, 300 * n, 300 * n + 180) for n in range(12)]
    assert not found(*restarts)
    # Its connection to another broker lived on: what broke is the one connection.
    assert found(*restarts, channel(99, 0, END, broker=B))
    # All brokers show it, each asked some seconds after the one before.
    everywhere = [channel(n + 50, 300 * n + 5, 300 * n + 185, broker=B) for n in range(12)]
    assert not found(*restarts, *everywhere)
    # It came back before a poll found it gone.
    assert found(*[channel(n, 300 * n, 300 * n + 240) for n in range(12)])


def at_once(client_id, *seconds):
    """Connections to broker-a that are replaced at these times, with a word."""
    edges = enumerate(pairwise([0, *seconds, END + 60]))
    return [channel(n, one, other - 60, client_id=client_id) for n, (one, other) in edges]


# One poll shows all of them, or two do.
@pytest.mark.parametrize("second", [1200, 1230])
def test_what_nearly_all_members_do_at_a_time_is_a_restart_of_their_broker(second):
    one = at_once("a", 600, 1200, 2400)
    others = [each for name in "bcd" for each in at_once(name, second)]
    assert [each.client_ids for each in found(*one)] == [("a",)]
    assert not found(*one, *others, members=4)
    # Half of the members.
    assert found(*one, *others, members=8)
    # Two deploys and a restart, or three deploys and one.
    for times in ((600, 1200, 2400), (600, 1200, 1800, 2400)):
        everybody = [each for name in "abcd" for each in at_once(name, *times)]
        assert not found(*everybody, members=4)
    # Again and again: something drops all connections of the broker.
    everybody = [each for name in "abcd" for each in at_once(name, 600, 1200, 1800, 2400, 3000)]
    assert len(found(*everybody, members=4)) == 4


def test_a_connection_of_a_new_process_is_no_reconnection():
    # Three were replaced, one of them by a restart.
    assert found(*breaking(120, 4), clients=[info(-600, 60, 300)])
    assert not found(*breaking(120, 4), clients=[info(-600, 60), info(238, 300, 400)])
    # Two deploys in which all restart within a minute, and one restart of their broker.
    members = [each for name in "abcd" for each in at_once(name, 600, 1200, 2400)]
    deploys = [info(start, start + 30, client_id=name) for name in "abcd" for start in (590, 1190)]
    assert not found(*members, clients=deploys, members=4)


@pytest.mark.parametrize(("end", "ongoing"), [(1080, True), (1200, True), (1201, False)])
def test_it_goes_on_for_as_long_as_it_took_to_come_again(end, ongoing):
    (one,) = found(*breaking(120, 10), end=end)
    assert one.extent.ongoing == ongoing


@pytest.mark.parametrize(
    ("clients", "fault"),
    [
        ([info(120 * n, 120 * n + 30) for n in range(10)], "FLAPPING"),
        # Every third process lives long enough to be asked.
        ([info(120 * n, 120 * n + 30) for n in range(0, 10, 3)], "FLAPPING"),
        # One process answers all the time; or several that share the id and started before.
        ([info(0, *range(0, END, 60))], "RECONNECTING"),
        ([info(-9 * n, *range(60 * n, END, 300)) for n in range(1, 6)], "RECONNECTING"),
    ],
)
def test_where_each_connection_is_another_process_it_restarts(clients, fault):
    (one,) = found(*breaking(120, 10), clients=clients)
    assert one.fault == fault


@pytest.mark.parametrize(("times", "flaps"), [(5, True), (4, False)])
def test_who_restarts_three_times_in_forty_minutes_was_deployed(times, flaps):
    """A new process each 800 s, in a group of which the others stay."""
    restarts = [info(800 * n, 800 * n + 30) for n in range(times)]
    faults = found(*breaking(800, times), clients=restarts)
    assert [each.fault for each in faults] == ["FLAPPING"] * flaps


def test_a_process_that_restarts_under_one_id_flaps():
    """It is back so fast that no list shows it gone; its old connections are closed."""
    restarts = [info(120 * n, 120 * n + 30) for n in range(10)]
    left = [fault_of("STALE_CHANNEL", client_ids=("a",))]
    stale, fault = all_faults(*breaking(120, 10, listed=-60), clients=restarts, faults=left)
    # What each of them leaves behind passes by itself, and the next one comes.
    assert stale.remedy == fault.remedy
    assert (fault.fault, fault.topic, fault.queues_affected) == ("FLAPPING", "MAIN", 0)
    assert fault.evidence == (
        "a restarted 9 times, 30 per hour: each time it has new connections to broker-a, and a "
        "new start time in its running info"
    )
    assert fault.remedy.startswith("find out why the process of a ends again and again: ")
    assert causes(fault, queue_finding(causes=("STALE_CHANNEL",))) == [("STALE_CHANNEL",)]


def test_each_client_is_told_once_where_its_old_connections_cost_most_queues():
    several = [*breaking(120, 10), *breaking(240, 8, client_id="b")]
    stale = [
        fault_of("STALE_CHANNEL", client_ids=("a",), queues_affected=3),
        replace(fault_of("STALE_CHANNEL", client_ids=("a",), queues_affected=1), topic="U"),
        fault_of("STALE_CHANNEL", client_ids=("b",), first=3000, last=3300),
        fault_of("GHOST_MEMBER", client_ids=("b",)),
    ]
    snapshots = [at(60 * n) for n in range(60)]

    of_a, of_b = found(*several, faults=stale, snapshots=snapshots)

    assert (of_a.topic, of_a.client_ids, of_a.queues_affected) == ("T", ("a",), 3)
    # Those of b cost nothing meanwhile.
    assert (of_b.topic, of_b.client_ids, of_b.queues_affected) == ("MAIN", ("b",), 0)
    assert of_b.remedy.startswith("look at what is between b and broker-a (")
    assert of_a.fault == "RECONNECTING"
    assert (of_a.extent.persistence, of_a.extent.snapshots) == ("PERSISTENT", 17)
    assert of_a.evidence == (
        "a reconnected to broker-a 9 times, 30 per hour, from 10 addresses of 10.0.0.1; the "
        "broker lists the old connection for up to 130 s beside the new one; so does 1 other "
        "client of the group"
    )
    assert "load balancer" in of_a.remedy


def test_what_its_old_connections_cost_names_it_beside_them():
    (fault,) = found(*breaking(120, 10), topic="T")
    stale, both = {"causes": ("STALE_CHANNEL",)}, ("RECONNECTING", "STALE_CHANNEL")
    for queue, expected in (
        (queue_finding(**stale), both),
        (queue_finding(causes=("GHOST_MEMBER",)), ("GHOST_MEMBER",)),
        (queue_finding(**stale, topic="%RETRY%G"), both),
        (queue_finding(**stale, last=100), ("STALE_CHANNEL",)),
    ):
        assert causes(fault, queue) == [expected]


@pytest.mark.parametrize(("share_of_time", "certainty"), [(1.0, "CERTAIN"), (0.8, "POSSIBLE")])
def test_between_two_rounds_of_a_client_that_reconnects_nobody_knows(share_of_time, certainty):
    fault = fault_of("RECONNECTING", client_ids=("a",))
    queue = queue_finding(causes=("STALE_CHANNEL",), share_of_time=share_of_time)
    (found_queue,) = blamed(case(), GroupFindings(queues=(queue,), faults=(fault,))).queues
    assert found_queue.certainty == certainty
    # Further apart than a broker keeps an old connection each round shows another one.
    coarse = case(snapshots=(at(0), at(300)))
    (found_queue,) = blamed(coarse, GroupFindings(queues=(queue,), faults=(fault,))).queues
    assert found_queue.certainty == "POSSIBLE"


@pytest.mark.parametrize(
    ("version", "answered", "asked", "may_be_ours"),
    [
        (479, False, range(60, 1200, 60), True),
        (479, False, range(60, 1200, 180), True),
        # It answers: nothing stops it. An old client is not stopped, nor one that is left alone.
        (479, True, range(60, 1200, 60), False),
        (441, False, range(60, 1200, 60), False),
        (479, False, (60,), False),
    ],
)
def test_who_reconnects_while_questions_to_it_are_under_way_may_be_stopped_by_them(
    version, answered, asked, may_be_ours
):
    code = None if answered else -1
    of = info(0, *asked)._replace(language="JAVA", version=version, error_code=code)
    (fault,) = found(*breaking(every=120, times=10), clients=[of])
    assert fault.may_be_ours == may_be_ours
    assert ("the collector's own questions may be the cause" in fault.evidence) == may_be_ours
    # The queues have their own severity: nobody is woken by what we may have done ourselves.
    queue = replace(queue_finding(causes=("RECONNECTING",), topic=fault.topic), severity="CRITICAL")
    severity = Harms([queue], [], 0.9).severity_of(replace(fault, extent=queue.extent))
    assert severity == ("WARNING" if may_be_ours else "CRITICAL")

"""Clients that are asked for a running info: when, how often, and never twice at a time."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree

import pytest

from jobs.collect.asked_clients import AskedClients
from jobs.collect.client import NOT_REACHED
from jobs.collect.memory import Memory
from jobs.collect.questions import running_info
from jobs.declared.instants import SECOND
from jobs.errors import AuditError
from tests.collect.test_rounds import MINUTE, Rounds, of_cluster, run
from tests.support.frames import Frame
from tests.support.remote_cluster import RemoteCluster
from tests.support.replay import Answering, Manners, error

HOUR = 60 * MINUTE
#: A real second is a moment here: a client is asked by a clock that the tests move.
DELAY = 0.004


@dataclass
class OneAtATime:
    """The clients of a cluster, each of which can answer one question at a time, as Java of 5.2.0
    and later with one processor. The slow ones answer after 20 s, and their broker says at once
    that it gave up, so that nobody waits here.
    """

    cluster: RemoteCluster
    slow: set[str] = field(default_factory=set)
    #: Who was asked when; and who while another question to them was under way.
    asked: list[tuple[int, str]] = field(default_factory=list)
    asked_twice: list[tuple[int, str]] = field(default_factory=list)
    now: Callable[[], int] = lambda: 0
    _busy_until: dict[str, int] = field(default_factory=dict)
    _answering: set[str] = field(default_factory=set)

    def answers(self) -> Mapping[str, Answering]:
        return {at: self._behind(of) for at, of in self.cluster.answers().items()}

    def manners(self) -> Mapping[str, Manners]:
        return dict.fromkeys(self.cluster.addresses, Manners(delay=1.5 * DELAY))

    def times(self, client_id: str) -> list[int]:
        return [time for time, each in self.asked if each == client_id]

    def _behind(self, of: Answering) -> Answering:
        def answer(asked: Frame) -> bytes | None:
            if asked.code != 307:
                return of(asked)
            client_id, now = asked.fields["clientId"], self.now()
            self.asked.append((now, client_id))
            if client_id in self._answering or now < self._busy_until.get(client_id, 0):
                self.asked_twice.append((now, client_id))
            if client_id in self.slow:
                self._busy_until[client_id] = now + 20 * SECOND
                return error(207, f"consumer <G> <{client_id}> Timeout: wait response timeout")
            self._answering.add(client_id)
            asyncio.get_running_loop().call_later(DELAY, self._answering.discard, client_id)
            return of(asked)

        return answer


def watched(
    clients: OneAtATime,
    every: int,
    until: int,
    change: Callable[[Rounds], object] = lambda _: None,
    **options: object,
) -> None:
    """Rounds from 0 on, with the waiting time of who sets no other; ``change`` before each."""

    async def body(rounds: Rounds) -> None:
        clients.now = lambda: rounds.now
        while rounds.now < until:
            change(rounds)
            await rounds.next(every)

    target = of_cluster(clients.cluster, running_infos_after_seconds=75, timeout_seconds=60)
    run(body, clients.answers(), target | options, clients.manners())
    assert not clients.asked_twice


@pytest.fixture
def cluster() -> RemoteCluster:
    made = RemoteCluster()
    made.add_group("G", ["x", "y", "z"], ["T"])
    return made


def in_two_groups(cluster: RemoteCluster) -> None:
    """One process is a member of both."""
    cluster.add_group("H", ["x", "y", "z"], ["U"])


def listed_twice(cluster: RemoteCluster) -> None:
    for of_broker in cluster.members["G"].values():
        of_broker.append(("x", "10.0.0.8:1"))


def reconnecting(cluster: RemoteCluster) -> Callable[[Rounds], None]:
    def connect(rounds: Rounds) -> None:
        if rounds.now // MINUTE % 7 == 0:
            for of_broker in cluster.members["G"].values():
                of_broker[0] = ("x", f"10.0.0.9:{rounds.now // MINUTE}")

    return connect


def leaving_for_a_round(cluster: RemoteCluster) -> Callable[[Rounds], None]:
    whole = {at: [*of] for at, of in cluster.members["G"].items()}

    def leave(rounds: Rounds) -> None:
        is_away = rounds.now // MINUTE % 7 == 0
        cluster.members["G"] = {at: of[is_away:] for at, of in whole.items()}

    return leave


@pytest.mark.parametrize(
    "shape", [in_two_groups, pytest.param(listed_twice, marks=pytest.mark.house)]
)
def test_who_does_not_answer_is_asked_five_times_an_hour(
    cluster: RemoteCluster, shape: Callable[[RemoteCluster], None]
) -> None:
    shape(cluster)
    clients = OneAtATime(cluster, {"x"})
    watched(clients, 150 * SECOND, 2 * HOUR)
    times = clients.times("x")
    assert max(sum(at <= each < at + HOUR for each in times) for at in times) <= 5
    minutes = [round((later - one) / MINUTE) for one, later in itertools.pairwise(times)]
    assert minutes[:4] == [5, 10, 20, 40]
    # Others are asked as often as ever, whoever is silent beside them.
    assert len(clients.times("y")) >= 20


@pytest.mark.parametrize("change", [reconnecting, leaving_for_a_round])
def test_who_comes_back_is_no_other_client(
    cluster: RemoteCluster, change: Callable[[RemoteCluster], Callable[[Rounds], None]]
) -> None:
    """The question may be what it was away for."""
    clients = OneAtATime(cluster, {"x"})
    watched(clients, MINUTE, HOUR, change(cluster))
    assert 2 <= len(clients.times("x")) <= 5


def test_two_collectors_that_begin_again_ask_together_as_often(
    cluster: RemoteCluster, tmp_path: Path
) -> None:
    """Each with a folder of its own, and both of one user."""
    clients = OneAtATime(cluster, {"x"})
    others = [Memory()]
    folders = itertools.cycle([tmp_path / "one", tmp_path / "two"])

    def begin(rounds: Rounds) -> None:
        rounds.client.asked_clients.close()
        places = [next(folders) / "asked", tmp_path / "state" / "asked"]
        rounds.client.asked_clients = AskedClients(places, rounds.now)
        others.append(rounds.memory)
        rounds.memory = others.pop(0)

    watched(clients, 45 * SECOND, HOUR, begin)
    assert 2 <= len(clients.times("x")) <= 5


@pytest.mark.parametrize(("every", "within"), [(20, 120), (60, 180), (120, 300), (300, 660)])
@pytest.mark.parametrize("after", [1, 99])
def test_what_a_fleet_holds_is_known_soon_after_a_deploy(
    every: int, within: int, after: int
) -> None:
    """All processes are new, ``after`` so much of the time between two rounds, in percent."""
    cluster = RemoteCluster()
    for number in range(3):
        cluster.add_group(f"G{number}", [f"{number}-old-{each}" for each in range(4)], ["T"])
    clients = OneAtATime(cluster)
    deployed = (3 * every) * SECOND + every * SECOND * after // 100

    def deploy(rounds: Rounds) -> None:
        if rounds.now <= deployed < rounds.now + every * SECOND:
            for number in range(3):
                ids = [f"{number}-new-{each}" for each in range(4)]
                cluster.add_group(f"G{number}", ids, ["T"])

    until = deployed + within * SECOND
    watched(clients, every * SECOND, until, deploy, running_infos_seconds=3_600)
    new = [(time, each) for time, each in clients.asked if "new" in each]
    assert len({each for _, each in new}) == 12
    assert all(time - deployed >= 75 * SECOND for time, _ in new)
    # Once, for nothing changes any more.
    assert Counter(each for _, each in new).most_common(1)[0][1] == 1


def test_a_first_round_asks_nobody_for_nobody_knows_since_when_they_are_there(
    cluster: RemoteCluster,
) -> None:
    clients = OneAtATime(cluster)
    watched(clients, MINUTE, MINUTE)
    assert not clients.asked
    watched(OneAtATime(cluster, asked=clients.asked), MINUTE, 3 * MINUTE)
    assert Counter(each for _, each in clients.asked) == dict.fromkeys("xyz", 1)


def test_addresses_alone_are_no_reason_to_ask_and_one_to_wait(cluster: RemoteCluster) -> None:
    """It may be another process under the same id, and have taken its queues just now."""
    clients = OneAtATime(cluster)

    def connect(rounds: Rounds) -> None:
        if rounds.now in (3 * MINUTE, 5 * MINUTE):
            cluster.members["G"]["b:10911"][0] = ("x", f"10.0.0.9:{rounds.now}")

    watched(clients, MINUTE, 9 * MINUTE, connect)
    # Wanted in the first round, and 300 s later, in the sixth.
    assert clients.times("y") == [3 * MINUTE, 6 * MINUTE]
    assert clients.times("x") == [3 * MINUTE, 8 * MINUTE]


def test_a_group_that_never_settles_is_asked_each_five_minutes(cluster: RemoteCluster) -> None:
    clients = OneAtATime(cluster)

    def change(rounds: Rounds) -> None:
        for of_broker in cluster.members["G"].values():
            of_broker[2] = (f"z{rounds.now // MINUTE}", "10.0.0.9:1")

    watched(clients, MINUTE, 30 * MINUTE, change)
    assert 4 <= len(clients.times("x")) <= 6
    assert {each for _, each in clients.asked} == {"x", "y"}


def test_a_question_that_was_sent_is_not_sent_again_over_a_new_connection(
    cluster: RemoteCluster,
) -> None:
    async def body(rounds: Rounds) -> list[int]:
        rounds.replay.manners = dict.fromkeys(cluster.addresses, Manners(closes_at=1))
        rounds.client.forget()
        question = running_info("G", "x")
        answers = [await rounds.client.ask(at, question) for at in ("a:10911", "b:10911")]
        assert "may still be under way" in str(answers[1].remark)
        return [each.code for each in answers] + [len(rounds.replay.requests)]

    assert run(body, cluster.answers(), of_cluster(cluster)) == [NOT_REACHED, NOT_REACHED, 1]


def test_who_was_asked_is_known_to_other_processes_and_after_a_kill(tmp_path: Path) -> None:
    one, other = (AskedClients([tmp_path / "asked"], 0) for _ in range(2))
    assert [one.ask("c", 1), other.ask("c", 2), other.ask("d", 2)] == [True, False, True]
    again = AskedClients([tmp_path / "asked"], 3)
    assert [again.waits("c", 3), again.ask("c", 4)] == [True, False]
    other.answered("c")
    assert one.ask("c", 5)
    # A broker could not pass it on.
    one.ended("c")
    assert [again.times("c"), again.ask("c", 6)] == [0, True]
    # A clock that was set back by days forbids nothing.
    one.ask("e", 9 * HOUR)
    assert one.ask("e", HOUR)


def test_files_that_are_none_of_asked_clients_are_made_anew_or_left_out(tmp_path: Path) -> None:
    broken, barred = tmp_path / "broken", tmp_path / "barred"
    broken.write_text("no file of SQLite" * 99)
    barred.write_text("no folder")
    asked = AskedClients([broken, barred / "asked"], 0)
    assert [asked.ask("c", 1), AskedClients([broken], 1).ask("c", 2)] == [True, False]
    assert broken.stat().st_mode & 0o077 == 0
    with pytest.raises(OSError):
        AskedClients([barred / "asked"], 0)


def test_a_file_of_asked_clients_that_is_removed_or_damaged_later_costs_no_round(
    tmp_path: Path,
) -> None:
    ours, home = tmp_path / "dumps" / "asked", tmp_path / "home" / "asked"
    asked = AskedClients([ours, home], 0)
    # Cleaned while a collector runs.
    rmtree(home.parent)
    assert [asked.ask("c", 1), AskedClients([home], 1).waits("c", 2)] == [True, True]
    home.write_text("no file of SQLite" * 999)
    assert [asked.ask("c", 2), asked.ask("d", 2), asked.times("d")] == [False, True, 1]
    rmtree(home.parent)
    home.parent.write_text("no folder")
    assert [asked.ask("e", 3), asked.ask("e", 4)] == [True, False]
    # It is tried again when the next round begins.
    home.parent.unlink()
    asked.forget(5)
    assert [asked.ask("f", 6), AskedClients([home], 6).waits("f", 7)] == [True, True]
    rmtree(ours.parent)
    ours.parent.write_text("no folder")
    with pytest.raises(AuditError, match="nobody is asked without that"):
        asked.ask("g", 8)

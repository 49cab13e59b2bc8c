"""A round in two parts: planned, and then asked address by address, gives the lines of a round."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Mapping
from typing import Any

import pytest

from jobs.collect.client import ClientOptions, RemotingClient
from jobs.collect.memory import Memory
from jobs.collect.planned import ask_planned, plan
from jobs.collect.rounds import PARTS, Round, Target
from tests.support.remote_cluster import RemoteCluster
from tests.support.replay import Answering, Manners, Replay

TIMEOUT = 0.5


def clock() -> int:
    return 5


@pytest.fixture
def cluster() -> RemoteCluster:
    made = RemoteCluster(is_5=True)
    made.add_group("G", ["x", "y", "y"], ["T"])
    made.add_group("H", ["u", "v"], ["T", "U"])
    made.add_group("GONE", [], ["LEFT"])
    return made


def as_one_round(answers: Mapping[str, Answering], target: Target) -> list[dict[str, Any]]:
    async def whole() -> list[dict[str, Any]]:
        lines: list[dict[str, Any]] = []
        async with Replay(answers) as replay:
            options = ClientOptions(TIMEOUT, connect_to=replay.connect_to)
            async with RemotingClient(options, clock) as client:
                await Round(target, client, Memory(), 7, lines.append).run()
        return lines

    return asyncio.run(whole())


def as_planned(
    answers: Mapping[str, Answering],
    target: Target,
    manners: Mapping[str, Manners] | None = None,
    longest: float = 300.0,
) -> tuple[list[dict[str, Any]], float]:
    """The lines, and how long the slowest address took."""

    async def whole() -> tuple[list[dict[str, Any]], float]:
        async with Replay(answers) as replay:
            options = ClientOptions(TIMEOUT, connect_to=replay.connect_to)
            planned = pickle.loads(pickle.dumps(await plan(target, options, clock, 7)))  # noqa: S301
            replay.manners = manners or {}
            began = asyncio.get_running_loop().time()
            of_each = await asyncio.gather(
                *(ask_planned(*each, options, clock, longest) for each in planned.items())
            )
            lines = [line for lines in of_each for line in lines]
            return lines, asyncio.get_running_loop().time() - began

    return asyncio.run(whole())


def in_order(lines: list[dict[str, Any]]) -> list[str]:
    return sorted(repr(sorted(line.items())) for line in lines)


@pytest.mark.parametrize("without", [(), *((part,) for part in PARTS)])
@pytest.mark.parametrize("is_5", [True, False])
def test_address_by_address_the_lines_are_those_of_a_round(
    cluster: RemoteCluster, is_5: bool, without: tuple[str, ...]
) -> None:
    cluster.is_5 = is_5
    # Else the broker that answers first is asked for the running infos.
    target = Target(tuple(cluster.namesrvs), without=frozenset(without), infos_of_each_broker=True)
    lines, _ = as_planned(cluster.answers(), target)
    assert in_order(lines) == in_order(as_one_round(cluster.answers(), target))
    assert len(lines) > 10


def test_who_hangs_after_the_plan_costs_one_time_out_and_no_line(cluster: RemoteCluster) -> None:
    target = Target(tuple(cluster.namesrvs), without=frozenset({"running-infos"}))
    whole, _ = as_planned(cluster.answers(), target)
    lines, seconds = as_planned(
        cluster.answers(), target, {"b:10911": Manners(hangs_after=0), "ns1:9876": Manners()}
    )
    assert seconds < TIMEOUT + 2
    assert len(lines) == len(whole)
    failed = [line for line in lines if "error_code" in line and line["error_code"] < 0]
    assert {line["broker_addr"] for line in failed} == {"b:10911"}


def test_who_hangs_while_it_is_planned_is_in_the_plan(cluster: RemoteCluster) -> None:
    async def whole() -> dict[str, int]:
        async with Replay(cluster.answers(), {"b:10911": Manners(hangs_after=0)}) as replay:
            options = ClientOptions(TIMEOUT, connect_to=replay.connect_to)
            planned = await plan(Target(tuple(cluster.namesrvs)), options, clock, 7)
            asked = {frame.code for _, frame in replay.requests}
            assert not asked & {105, 307, 402}
            return {address: len(lines) for address, lines in planned.items()}

    planned = asyncio.run(whole())
    assert planned.keys() == {*cluster.namesrvs, *cluster.addresses}
    # Lists and offsets of three groups; a master that was silent may have request modes.
    assert planned["b:10911"] >= 6


def test_silent_clients_cost_one_time_out_and_are_told(cluster: RemoteCluster) -> None:
    cluster.add_group("MANY", [f"c{number}" for number in range(40)], ["T"])
    cluster.silent = {f"c{number}" for number in range(40)}
    lines, seconds = as_planned(cluster.answers(), Target(tuple(cluster.namesrvs)))
    assert seconds < TIMEOUT + 2
    infos = [line for line in lines if line["kind"] == "consumer_running_info"]
    silent = [line for line in infos if line["consumer_group"] == "MANY"]
    # Nobody asked the others: a line would say of them what is not so.
    assert 1 <= len(silent) <= 4 * len(cluster.addresses)
    assert {line["error_code"] for line in silent} == {-1}
    assert len([line for line in infos if "body" in line]) >= 4


def test_what_takes_too_long_is_told_and_not_asked(cluster: RemoteCluster) -> None:
    target = Target(tuple(cluster.namesrvs), without=frozenset({"running-infos"}))
    whole, _ = as_planned(cluster.answers(), target)
    lines, _ = as_planned(cluster.answers(), target, longest=0.0)
    assert len(lines) == len(whole)
    assert {line["error_message"].partition(": ")[2] for line in lines} == {
        "not asked: it took longer than 0 s"
    }


def test_no_nameserver_is_no_plan(cluster: RemoteCluster) -> None:
    assert as_planned({}, Target(("127.0.0.1:1",))) == ([], pytest.approx(0, abs=1))

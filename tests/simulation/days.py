"""Days of a cluster with several groups: ``make truth-days``.

    python -m tests.simulation.days --seed 1 --every 60
    python -m tests.simulation.days --busy --days 10 --seed 101 --every 60 300 --out build/busy

A healthy day has deploys, crashes, an autoscaler, topics that grow, groups that consume in order or
are deployed again and again, the restart of each broker and of a nameserver, and answers that are
lost, one here and one there: nothing of WARNING or worse may last, and the run is WELL, however
often rounds come. A day with faults has twelve groups in which one thing goes wrong for an hour or
so: each is to be found, begun within two rounds.

A busy day is healthy too, and there is more of all at a time: groups are deployed while brokers
restart, some of them three times in 45 minutes, an autoscaler changes each group each hour or two,
processes lose their connections once, a controller makes another master.

Each group is a fleet of its own; brokers, nameservers and collector are the same for all, and so
is what happens to them. Names get the number of their group where lines are written.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time as timer
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random

from rebalance_core.message_queue import MessageQueue
from tests.simulation.clients import Process
from tests.simulation.clock import MINUTE, SECOND, Millis, dice_of
from tests.simulation.fleets import Fleet, settled_fleet
from tests.simulation.score import add_workers, audited, unread
from tests.simulation.scoring import FaultRow, Row, score
from tests.simulation.world import GROUP, RETRY

_HOUR: Millis = 60 * MINUTE
#: One group is asked so much later than the one before it.
_A_GROUP_TAKES: Millis = 250
#: The share of answers that are lost on a healthy day.
_LOST = 0.002
_WORSE = ("WARNING", "CRITICAL")
_NAMES = (GROUP, RETRY, "T", "U")


@dataclass(frozen=True)
class Day:
    """What was simulated: by the number of the group its fleet."""

    name: str
    fleets: tuple[Fleet, ...]


def make_day(
    name: str,
    seed: int,
    folder: Path,
    *,
    hours: float,
    groups: int,
    every: Millis,
    faults: bool,
    lasting: bool = False,
    busy: bool = False,
    lists_alone: bool = False,
) -> Day:
    """Simulates a day and writes its dump, a file for each group.

    ``lasting``: its faults are there at its end.
    """
    fleets = []
    until = int(hours * _HOUR)
    for number in range(groups):
        of_group = dice_of(f"{name} {seed} {number}")
        of_cluster = dice_of(f"{name} {seed}")
        fleet = settled_fleet(name, of_group, dice_of(f"{name} {seed} {number} draws"), of_cluster)
        fleet.until = until
        fleet.habits.interval, fleet.habits.drift = every, of_cluster.choice([0, 130])
        fleet.habits.heartbeats = False
        fleet.habits.offsets = fleet.habits.running_infos = not lists_alone
        fleet.habits.infos_each = max(5 * MINUTE // every, 1)
        fleet.habits.pause = 20
        fleet.habits.comes_after = number * _A_GROUP_TAKES
        for pod in fleet.pods:
            pod.strategy = "AVG"
        _happens_to_all(fleet, of_cluster)
        restarts: list[Millis] = []
        if not faults:
            fleet.habits.missing = _LOST
            restarts = _brokers_restart(fleet, of_cluster)
        if faults and number < len(FAULTS):
            began = until // 4 + fleet.between(0, until / 4 / SECOND)
            lasts = until if lasting else min(fleet.between(2400, 5400), until // 8)
            FAULTS[number](fleet, began, began + lasts)
        else:
            if number % 5 == 4:
                _quiet_topic(fleet)
            for pod in fleet.pods if number % 5 == 3 else ():
                pod.orderly = True
            if number % 5 == 2:
                _deployed_often(fleet)
            else:
                _ordinary(fleet)
        if busy:
            # Of pods that are what they will be.
            _busy(fleet, of_cluster, restarts)
        fleet.simulate()
        _write(fleet, number, folder)
        fleets.append(fleet)
    return Day(name, tuple(fleets))


def _write(fleet: Fleet, number: int, folder: Path) -> None:
    own = {name: f"{name}-{number:02}" for name in _NAMES}
    with (folder / f"{fleet.name}-{number:02}.jsonl").open("w") as file:
        for line in fleet.lines:
            for key in ("consumer_group", "topic"):
                if key in line:
                    line[key] = own[line[key]]
            for name in _NAMES if "body" in line else ():
                line["body"] = line["body"].replace(f'"{name}"', f'"{own[name]}"')
            file.write(json.dumps(line) + "\n")
    for collector in fleet.collectors:
        collector.lines.clear()


# ---------------------------------------------------------------- what happens


def _happens_to_all(fleet: Fleet, dice: Random) -> None:
    """One broker and one nameserver restart, at the same time for all groups."""
    world = fleet.world
    name = dice.choice(fleet.broker_names)
    began, away = (dice.randrange(fleet.until * 2 // 3, fleet.until * 4 // 5) for _ in "12")
    fleet.clock.at(began, lambda: world.stop_broker(name))
    fleet.clock.at(began + dice.randrange(20, 130) * SECOND, lambda: world.start_broker(name))
    nameserver = world.nameservers[1]
    fleet.clock.at(away, lambda: world.stop_nameserver(nameserver))
    fleet.clock.at(
        away + dice.randrange(2, 60) * SECOND, lambda: world.start_nameserver(nameserver)
    )


def _brokers_restart(fleet: Fleet, dice: Random) -> list[Millis]:
    """Each broker restarts, one after the other, within two minutes; gives when."""
    restarts = []
    first, apart = fleet.until // 4, fleet.until // 4 // len(fleet.broker_names)
    for number, name in enumerate(fleet.broker_names):
        began = first + number * apart + dice.randrange(apart // 2)
        fleet.clock.at(began, partial(fleet.world.stop_broker, name))
        back = began + dice.randrange(20, 110) * SECOND
        fleet.clock.at(back, partial(fleet.world.start_broker, name))
        restarts.append(began)
    return restarts


def _busy(fleet: Fleet, dice: Random, restarts: list[Millis]) -> None:
    """Beside what is ordinary."""
    random, world, latest = fleet.random, fleet.world, fleet.until - 20 * MINUTE
    keeps_id = random.random() < 0.5
    began = random.choice(restarts) + fleet.between(-180, 30)
    apart = fleet.between(600, 1320)
    for number in range(random.choice([1, 2, 3])):
        fleet.replace_all("stop", keeps_id=keeps_id, began=began + number * apart)
    time = fleet.between(600, 3600)
    while time < latest:
        more = fleet.new_pod()
        more.orderly = fleet.pods[0].orderly
        fleet.clock.at(time, partial(fleet.start, more))
        fleet.do(time + fleet.between(900, 3000), more, Process.stop)
        time += fleet.between(3600, 7200)
    for pod in fleet.pods:
        fleet.do(random.randrange(latest), pod, Process.reconnect)
    # The same for all groups.
    name, elected = fleet.broker_names[0], dice.randrange(fleet.until // 8, fleet.until // 5)
    takes, back = dice.randrange(10, 26) * SECOND, dice.randrange(100, 900) * SECOND
    fleet.habits.is_of_5 = True
    world.have_slave(name)
    fleet.clock.at(elected, lambda: world.elect(name, takes))
    fleet.clock.at(elected + back, lambda: world.start_broker(name))


def _ordinary(fleet: Fleet) -> None:
    """Deploys, each in a third of the day; a crash, an autoscaler, a topic that grows."""
    random, latest = fleet.random, fleet.until - 20 * MINUTE
    keeps_id = random.random() < 0.3
    for third in random.sample(range(3), random.randint(1, 3)):
        how = random.choice(["stop", "stop", "kill"])
        began = third * latest // 3 + random.randrange(latest // 6)
        fleet.replace_all(how, keeps_id=keeps_id, began=began)
    crashing = random.choice(fleet.pods)
    replaced = partial(fleet.replace, crashing, "kill", keeps_id=keeps_id)
    fleet.clock.at(random.randrange(latest), replaced)
    more, (comes, leaves) = fleet.new_pod(), sorted(random.sample(range(latest), 2))
    fleet.clock.at(comes, partial(fleet.start, more))
    fleet.do(leaves + MINUTE, more, Process.stop)
    if random.random() < 0.2:
        queues = fleet.world.topics["broker-a"]["T"] + random.choice([2, 4])
        fleet.clock.at(random.randrange(latest), lambda: fleet.world.set_queues("T", queues))


def _deployed_often(fleet: Fleet) -> None:
    """Processes with fixed ids on VMs, deployed three times within an hour and a half."""
    began = fleet.random.randrange(fleet.until // 2)
    for number in range(3):
        fleet.replace_all("stop", keeps_id=True, began=began + number * 25 * MINUTE)


def _quiet_topic(fleet: Fleet) -> None:
    """A topic with messages of before, of which nothing was ever committed, and nothing comes."""
    fleet.give_u()
    fleet.habits.quiet = frozenset({"U"})


def _shared_id(fleet: Fleet, began: Millis, ends: Millis) -> None:
    pods = fleet.pods[:2]
    fleet.deploy(pods, began, 20 * SECOND, client_id="172.17.0.1@1")
    fleet.deploy(pods, ends, 20 * SECOND, client_id=None)
    fleet.plant("DUPLICATE_CLIENT_ID", began + 20 * SECOND, ends, pods=pods)


def _other_strategy(fleet: Fleet, began: Millis, ends: Millis) -> None:
    pods = fleet.pods[-1:]
    fleet.world.set_queues("T", 2 * len(fleet.pods) + 1)
    fleet.deploy(pods, began, 20 * SECOND, strategy="AVG_BY_CIRCLE")
    fleet.deploy(pods, ends, 20 * SECOND, strategy="AVG")
    fleet.plant("STRATEGY_MISMATCH", began, ends)


def _other_topics(fleet: Fleet, began: Millis, ends: Millis) -> None:
    both, pods = fleet.give_u(), fleet.pods[:1]
    without = both - {"U"}
    fleet.deploy(pods, began, 20 * SECOND, subscriptions=without)
    fleet.deploy(pods, ends, 20 * SECOND, subscriptions=both)
    fleet.plant("SUBSCRIPTION_MISMATCH", began, ends, pods=pods)


def _lost_broker(fleet: Fleet, began: Millis, ends: Millis) -> None:
    pod, name = fleet.pods[0], fleet.broker_names[-1]
    fleet.lose_broker(pod, name, began, seen=True)
    fleet.do(ends, pod, lambda process: process.find(name))
    fleet.plant("BROKER_VIEW_DIVERGENCE", began, ends, pods=[pod], broker_names=[name])


def _hanging_listener(fleet: Fleet, began: Millis, ends: Millis) -> None:
    pod = fleet.pods[0]
    fleet.do(began, pod, Process.block)
    fleet.clock.at(ends, partial(fleet.replace, pod, "kill"))
    fleet.plant("FROZEN_PROCESS", began, ends, pods=[pod])


def _may_not_consume(fleet: Fleet, began: Millis, ends: Millis) -> None:
    fleet.clock.at(began, lambda: fleet.world.set_consume_enabled(False))
    fleet.clock.at(ends, lambda: fleet.world.set_consume_enabled(True))
    fleet.plant("GROUP_NOT_CONSUMING", began, ends)


def _other_tags(fleet: Fleet, began: Millis, ends: Millis) -> None:
    pods = fleet.pods[: max(len(fleet.pods) // 2, 1)]

    def refuse(tag: str) -> None:
        for pod in fleet.pods:
            pod.running.refused = pod.expression != tag
            fleet.world.reads_changed(pod.running)

    fleet.deploy(pods, began, 20 * SECOND, expression="TagB")
    fleet.clock.at(began + len(pods) * 20 * SECOND, partial(refuse, "*"))
    fleet.deploy(pods, ends, 20 * SECOND, expression="*")
    fleet.plant("EXPRESSION_MISMATCH", began, ends)


def _nobody(fleet: Fleet, began: Millis, ends: Millis) -> None:
    for pod in fleet.pods:
        fleet.do(began, pod, Process.stop)
        fleet.clock.at(ends, partial(fleet.start, pod))
    fleet.plant("GROUP_OFFLINE", began, ends)


def _suspended(fleet: Fleet, began: Millis, ends: Millis) -> None:
    pod = fleet.pods[0]
    fleet.do(began, pod, partial(Process.becomes, suspended=True))
    fleet.clock.at(ends, partial(fleet.replace, pod, "stop"))
    fleet.plant("FROZEN_PROCESS", began, ends, pods=[pod])


def _without_consumer(fleet: Fleet, began: Millis, ends: Millis) -> None:
    pod = fleet.pods[0]
    fleet.do(began, pod, Process.shut_consumer)
    fleet.clock.at(ends, partial(fleet.replace, pod, "kill"))
    # Running infos come each five minutes.
    fleet.plant("QUEUE_NOT_HELD", began, ends, pods=[pod], shows_after=5 * MINUTE)


def _offsets_back(fleet: Fleet, began: Millis, _: Millis) -> None:
    """By the messages of half an hour, which are read again within four minutes."""
    world = fleet.world

    def back() -> None:
        for name, topics in world.topics.items():
            for number in range(topics["T"]):
                world.progress.go_back(MessageQueue("T", name, number), began, 30 * MINUTE)

    fleet.clock.at(began, back)
    fleet.plant("OFFSETS_WENT_BACK", began, began + 4 * MINUTE)


def _behind_proxy(fleet: Fleet, began: Millis, ends: Millis) -> None:
    """No broker ever lists a member; for a time there is none."""
    fleet.habits.behind_proxy = True
    _nobody(fleet, began, ends)


FAULTS = (
    _shared_id,
    _other_strategy,
    _other_topics,
    _lost_broker,
    _hanging_listener,
    _may_not_consume,
    _other_tags,
    _nobody,
    _suspended,
    _without_consumer,
    _offsets_back,
    _behind_proxy,
)


# ---------------------------------------------------------------- figures


@dataclass(frozen=True)
class Verdict:
    """What lasts in groups in which nothing was planted, as lines; of what was planted, as fault
    and group, what was missed and what begins at another time. ``unread``: what the run says that
    it did not read or audit."""

    false: tuple[str, ...]
    planted: int
    missed: tuple[str, ...]
    late: tuple[str, ...]
    unread: tuple[str, ...] = ()
    #: What is false, as an operator counts it: severity, group and kind, each once.
    alarms: tuple[tuple[str, str], ...] = ()


def judge_day(
    day: Day, rows: dict[tuple[str, str], list[Row]], faults: dict[tuple[str, str], list[FaultRow]]
) -> Verdict:
    """Compares what was published of a day with what was planted."""
    false, missed, late, planted = [], [], [], 0
    alarms: set[tuple[str, str]] = set()
    for number, fleet in enumerate(day.fleets):
        suffix = f"-{number:02}"
        mine = [
            replace(row, queue=replace(row.queue, topic=row.queue.topic.removesuffix(suffix)))
            for row in rows.get((day.name, GROUP + suffix), ())
        ]
        of_group = faults.get((day.name, GROUP + suffix), [])
        if not fleet.planted:
            every: list[Row | FaultRow] = [*mine, *of_group]
            wrong = [each for each in every if each.lasts and each.severity in _WORSE]
            false += [f"{GROUP}{suffix} {each}" for each in wrong]
            alarms |= {(each.severity, f"{GROUP}{suffix} {_named(each)}") for each in wrong}
            continue
        queues = [row for row in mine if row.kind != "STALLED"]
        stalls = [row for row in mine if row.kind == "STALLED"]
        result = score(fleet, queues, stalls, of_group)
        planted += len(fleet.planted)
        missed += [f"{fault} {GROUP}{suffix}" for fault in sorted(result.faults_missed)]
        late += [f"{each.fault} {GROUP}{suffix}" for each, is_right in result.begun if not is_right]
        seen = {each.fault for each, _ in result.begun}
        missed += [
            f"{each.fault} {GROUP}{suffix} of others"
            for each in fleet.planted
            if each.fault not in seen | result.faults_missed
        ]
    of_all = tuple(false), planted, tuple(missed), tuple(late)
    return Verdict(*of_all, alarms=tuple(sorted(alarms)))


def _named(found: Row | FaultRow) -> str:
    return found.fault if isinstance(found, FaultRow) else " ".join((found.kind, *found.causes))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, default=1, help="of the first day")
    parser.add_argument("--days", type=int, default=1, help="how many, each with the next seed")
    parser.add_argument("--busy", action="store_true", help="busy healthy days, as a table")
    parser.add_argument(
        "--lists-alone", action="store_true", help="poll lists and routes, and nothing else"
    )
    parser.add_argument("--hours", type=float, default=24)
    parser.add_argument("--groups", type=int, default=20)
    parser.add_argument(
        "--every", type=int, nargs="+", default=[60], help="seconds between two rounds"
    )
    parser.add_argument("--out", type=Path, default=Path("build/truth-days"))
    add_workers(parser)
    options = parser.parse_args(arguments)
    if options.busy:
        return _busy_days(options)
    ok = True
    turns = [
        (options.seed + number, every, faults)
        for number in range(options.days)
        for every in options.every
        for faults in (False, True)
    ]
    for seed, every, faults in turns:
        began = timer.monotonic()
        name = "faults" if faults else "healthy"
        verdict = run_day(
            name,
            seed,
            options.out,
            hours=options.hours,
            groups=options.groups,
            every=every * SECOND,
            faults=faults,
            lists_alone=options.lists_alone,
        )
        found = verdict.planted - len(verdict.missed)
        sys.stdout.write(
            f"{name}: seed {seed}, {options.groups} groups, {options.hours:g} h, a round "
            f"each {every} s: {len(verdict.false)} lasting findings of WARNING or worse "
            f"where nothing is wrong, {len(verdict.unread)} things not read or not audited; "
            f"{found} of {verdict.planted} planted faults found, "
            f"{found - len(verdict.late)} begin rightly ({timer.monotonic() - began:.0f} s)\n"
        )
        for title, lines in (
            ("false", verdict.false),
            ("missed", verdict.missed),
            ("begins wrongly", verdict.late),
            ("not read or not audited", verdict.unread),
        ):
            sys.stdout.writelines(f"  {title}: {line}\n" for line in lines)
        ok = ok and not (verdict.false or verdict.missed or verdict.late or verdict.unread)
    return 0 if ok else 1


def _busy_days(options: argparse.Namespace) -> int:
    """For each length of rounds a line over all days, as in docs/truth.md; then what is false."""
    lines = [
        "| rounds of | days | CRITICAL | WARNING | in a day | in the worst day |",
        "|---|---|---|---|---|---|",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    seeds = range(options.seed, options.seed + options.days)
    named: list[str] = []
    with ProcessPoolExecutor(options.workers) as pool:
        for every in options.every:
            verdicts = [*pool.map(partial(_busy_day, options, every), seeds)]
            of_days = [[severity for severity, _ in verdict.alarms] for verdict in verdicts]
            for seed, verdict in zip(seeds, verdicts, strict=True):
                told = [*map(" ".join, verdict.alarms), *map("not read: {}".format, verdict.unread)]
                named += [f"{every} s, seed {seed}: {each}" for each in told]
            counts = [sum(day.count(each) for day in of_days) for each in ("CRITICAL", "WARNING")]
            what = f"{every} s, lists alone" if options.lists_alone else f"{every} s"
            a_day, worst = f"{sum(counts) / len(of_days):.1f}", max(map(len, of_days))
            cells = (what, len(of_days), *counts, a_day, worst)
            lines.append(f"| {' | '.join(map(str, cells))} |")
            sys.stdout.write(lines[-1] + "\n")
            sys.stdout.flush()
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "busy_days.md").write_text("\n".join(lines) + "\n")
    (options.out / "false.txt").write_text("".join(f"{each}\n" for each in named))
    sys.stdout.writelines(f"  {each}\n" for each in named)
    return 0


def _busy_day(options: argparse.Namespace, every: int, seed: int) -> Verdict:
    return run_day(
        "busy",
        seed,
        options.out / f"{every}-{seed}",
        hours=options.hours,
        groups=options.groups,
        every=every * SECOND,
        faults=False,
        busy=True,
        lists_alone=options.lists_alone,
    )


def run_day(
    name: str,
    seed: int,
    out: Path,
    *,
    hours: float,
    groups: int,
    every: Millis,
    faults: bool,
    busy: bool = False,
    lists_alone: bool = False,
) -> Verdict:
    """Simulates a day, audits it, and compares."""
    shutil.rmtree(out, ignore_errors=True)
    dumps = out / "dumps"
    dumps.mkdir(parents=True)
    day = make_day(
        name,
        seed,
        dumps,
        hours=hours,
        groups=groups,
        every=every,
        faults=faults,
        busy=busy,
        lists_alone=lists_alone,
    )
    verdict = judge_day(day, *audited(dumps, out / "audit"))
    return replace(verdict, unread=unread(out / "audit"))


if __name__ == "__main__":
    raise SystemExit(main())

"""One fleet from a seed: what it is made of, what happens to it, its dump and its truth."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from rebalance_core.message_queue import MessageQueue
from tests.simulation.clients import Process, Setup
from tests.simulation.clock import MINUTE, SECOND, Clock, Millis, dice_of
from tests.simulation.collectors import Collector, Habits, Line, instant
from tests.simulation.servers import CHANNEL_EXPIRES_AFTER, SCANNED_EACH, Nameserver
from tests.simulation.truth import Spans, Truth
from tests.simulation.world import RETRY, World

#: Clients run for so long before the first round, so that it finds a settled group.
WARM_UP = 3 * MINUTE


@dataclass(eq=False, kw_only=True)
class Pod(Setup):
    """Where one process of the group runs, one after the other."""

    number: int
    client_id: str | None = None
    #: When its first process starts; None: at any time of the warm-up.
    starts: Millis | None = None
    process: Process | None = None
    #: Of all that ran in it.
    client_ids: set[str] = field(default_factory=set)

    @property
    def running(self) -> Process:
        assert self.process is not None
        return self.process


@dataclass(frozen=True)
class Hidden:
    """What no line of a dump shows, and why: of these topics, of these kinds.

    ``unless_whole``: it shows if the queue was so without a break for as long as a spell lasts.
    """

    reason: str
    topics: frozenset[str] | None = None
    kinds: tuple[str, ...] = ("ORPHANED", "DUPLICATE")
    unless_whole: bool = False


NOTHING_RETRIED = Hidden(
    "nothing comes into the retry topic, so that its offsets show nothing", frozenset({RETRY})
)


@dataclass(frozen=True)
class Planted:
    """What is wrong, from when to when, with whom and with which brokers; none: with any.

    ``fault`` may name several, of which one is enough: ``A|B``. ``shows_after``: how much later
    dumps can show it at the latest.
    """

    fault: str
    start: Millis
    end: Millis
    pods: tuple[Pod, ...] = ()
    broker_names: tuple[str, ...] = ()
    shows_after: Millis = 0

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self.fault.split("|"))

    @property
    def is_of_a_moment(self) -> bool:
        """Whether two rounds show it, one before and one after."""
        return self.fault.startswith("OFFSETS")

    @property
    def client_ids(self) -> frozenset[str]:
        return frozenset(one for pod in self.pods for one in pod.client_ids)


@dataclass(eq=False)
class Fleet:
    """A cluster with one group, as a situation finds it.

    A situation changes pods and habits before they begin, plans what happens, and says which
    faults there are: ``faults`` are there for a while, ``must`` of them the audit has to tell as
    lasting; ``A|B`` is one of them.
    """

    name: str
    random: Random
    world: World
    pods: list[Pod]
    habits: Habits
    until: Millis
    id_style: str
    rates: dict[str, float]
    faults: set[str] = field(default_factory=set)
    must: set[str] = field(default_factory=set)
    #: As ``must``, where dumps show that a queue of the topic was so for long and all the time. A
    #: fault that concerns slots without queues does no harm.
    must_if_lasting: dict[str, tuple[str, str]] = field(default_factory=dict)
    hidden: list[Hidden] = field(default_factory=list)
    #: Times in which no dump shows what is so: a broker still lists whom it does not hear.
    unseen: Spans = field(default_factory=list)
    #: Causes of which dumps show that they are there, but not of whom.
    of_somebody: set[str] = field(default_factory=set)
    #: What is known of when and with whom. A fault of a planted kind is right if it fits one.
    planted: list[Planted] = field(default_factory=list)
    collectors: list[Collector] = field(default_factory=list)
    #: Two collectors, each with a nameserver of its own; else one that asks all.
    is_collected_twice: bool = False
    #: So long after its window it is simulated.
    goes_on_for: Millis = 2 * MINUTE
    _started: int = 0

    @property
    def clock(self) -> Clock:
        return self.world.clock

    @property
    def broker_names(self) -> list[str]:
        return list(dict.fromkeys(broker.name for broker in self.world.brokers))

    def between(self, least: float, most: float) -> Millis:
        """A random time, of seconds."""
        return int(self.random.uniform(least, most) * SECOND)

    def start(self, pod: Pod, client_id: str | None = None) -> Process:
        """Starts a process in a pod; without an id, the one that its client makes up."""
        self._started += 1
        label = f"p{self._started}"
        client_id = client_id or pod.client_id or self._made_up_id(pod)
        setup = {each.name: getattr(pod, each.name) for each in fields(Setup)}
        setup["divides"] = pod.divides and not pod.pops
        process = Process(world=self.world, label=label, client_id=client_id, **setup)
        pod.client_ids.add(process.client_id)
        self.world.processes.append(process)
        pod.process = process
        process.start()
        return process

    def _made_up_id(self, pod: Pod) -> str:
        """``ClientConfig.changeInstanceNameToPID``: with the nanoseconds since 4.9.0."""
        if self.id_style == "pid":
            return f"{pod.host}@1"
        if self.id_style == "custom":
            return f"{pod.host}@app-{pod.number}"
        return f"{pod.host}@1#{self.random.randrange(10**14, 10**15)}"

    def plant(
        self,
        fault: str,
        start: Millis,
        end: Millis | None = None,
        *,
        pods: Sequence[Pod] = (),
        broker_names: Sequence[str] = (),
        shows_after: Millis = 0,
        must: bool = True,
    ) -> None:
        """A fault that is there in that time, with these; ``must``: dumps show that it lasts."""
        until = self.until if end is None else end
        planted = Planted(fault, start, until, tuple(pods), tuple(broker_names), shows_after)
        self.planted.append(planted)
        self.faults |= planted.names
        if must:
            self.must.add(fault)

    def do(self, time: Millis, pod: Pod, action: Callable[[Process], object]) -> None:
        """At that time, to the process that then runs in the pod."""
        self.clock.at(time, lambda: action(pod.running))

    def give_u(self) -> frozenset[str]:
        """All pods subscribe to another topic as well; gives what they subscribe to."""
        self.world.set_queues("U", self.random.choice([2, 4, 6]))
        both = frozenset({"T", "U", RETRY})
        for pod in self.pods:
            pod.subscriptions = both
        return both

    def new_pod(self) -> Pod:
        """One like the others, which nothing has started."""
        like = self.pods[0]
        return Pod(
            number=len(self.pods) + self.random.randrange(100, 10**6),
            host=self.new_host(),
            strategy=like.strategy,
            subscriptions=like.subscriptions,
            nameserver=self.random.choice(self.world.nameservers),
            version=like.version,
        )

    def restart(self, pod: Pod, client_id: str | None = None) -> None:
        """Unless something else has started one: a pod runs one process at a time."""
        if not pod.running.alive:
            self.start(pod, client_id)

    def replace(self, pod: Pod, how: str, *, keeps_id: bool = False) -> None:
        """The pod's process ends, and another one starts some seconds later."""
        process = pod.process
        if process is not None and process.alive:
            process.end(how)
        if not keeps_id:
            pod.host = self.new_host()
        client_id = process.client_id if keeps_id and process is not None else None
        self.clock.after(self.between(1, 12), partial(self.restart, pod, client_id))

    def replace_all(self, how: str, *, keeps_id: bool = False, began: Millis | None = None) -> None:
        """One pod after the other, as a deploy does."""
        if keeps_id:
            self.id_style = "custom"
        step = self.between(12, 60)
        time = self.between(150, 400) if began is None else began
        for pod in self.pods:
            self.clock.at(time, partial(self.replace, pod, how, keeps_id=keeps_id))
            time += step
        if how == "vanish":
            self.faults |= {"GHOST_MEMBER", "STALE_CHANNEL"}
            if not keeps_id:
                self.hide_ghosts()
        self.faults.add("FLAPPING")

    def deploy(self, pods: Sequence[Pod], time: Millis, step: Millis, **changed: object) -> None:
        """One after the other is replaced by one with another setup."""

        def once(pod: Pod) -> None:
            vars(pod).update(changed)
            self.replace(pod, "stop")

        for number, pod in enumerate(pods):
            self.clock.at(time + number * step, partial(once, pod))

    def lose_broker(self, pod: Pod, name: str, time: Millis, *, seen: bool) -> None:
        """From then on the pod does not reach the broker, which may not see it for a while."""
        self.do(time, pod, lambda process: process.lose(name, seen=seen))
        if not seen and not self.habits.offsets:
            self.unseen.append((time, time + CHANNEL_EXPIRES_AFTER + SCANNED_EACH))

    def hide_ghosts(self) -> None:
        """A list alone has a member that is gone as it has any other."""
        habits = self.habits
        if habits.heartbeats or habits.running_infos:
            return
        if habits.offsets:
            reason = "offsets show no ghost where others read the queue in between"
            self.hidden += [Hidden(reason, unless_whole=True), NOTHING_RETRIED]
        else:
            self.hidden.append(Hidden("lists alone: nothing shows that a listed member is gone"))

    def new_host(self) -> str:
        number = self.random.randrange(10, 250)
        return f"10.{self.random.randrange(3, 200)}.{self.random.randrange(250)}.{number}"

    def simulate(self) -> None:
        """Starts the pods and the collectors, and lets the time pass."""
        for pod in self.pods:
            begins = -WARM_UP + self.between(0, 60) if pod.starts is None else pod.starts
            self.clock.at(begins, partial(self.start, pod))
        nameservers: Sequence[Sequence[Nameserver]] = [self.world.nameservers]
        if self.is_collected_twice:
            nameservers = [[each] for each in self.world.nameservers]
        for number, asked in enumerate(nameservers):
            dice = dice_of(self.random.random())
            collector = Collector(
                self.world, self.name, self.habits, asked, self.rates, self.until, dice=dice
            )
            collector.begin(number * self.habits.interval // len(nameservers))
            self.collectors.append(collector)
        if len(self.collectors) > 1 and self.habits.heartbeats:
            # Both would hear the same heartbeats.
            del self.world.heartbeat_listeners[1:]
        self.clock.run(self.until + self.goes_on_for)

    @property
    def truth(self) -> Truth:
        return self.world.truth

    @property
    def lines(self) -> list[Line]:
        """All lines of all collectors, in the order of their times."""
        lines = [line for collector in self.collectors for line in collector.lines]
        return sorted(lines, key=lambda line: str(line["collected_at"]))

    @property
    def rounds(self) -> list[Millis]:
        return sorted(time for collector in self.collectors for time in collector.rounds)

    @property
    def tables(self) -> list[tuple[Millis, frozenset[str]]]:
        """When which topics stood in the group's subscription table, as far as was polled."""
        return [seen for collector in self.collectors for seen in collector.tables]

    def waits(self, queue: MessageQueue, start: Millis, end: Millis) -> bool | None:
        """Whether messages of the queue waited at half of the polls in that time; None: no poll."""
        polled = [
            number
            for collector in self.collectors
            for time, number in collector.waiting.get(queue, ())
            if start <= time <= end
        ]
        return 2 * sum(map(bool, polled)) >= len(polled) if polled else None

    def write(self, folder: Path) -> Path:
        """Writes the dump, and forgets its lines: many fleets fit into the memory without."""
        path = folder / f"{self.name}.jsonl"
        with path.open("w") as file:
            file.writelines(json.dumps(line) + "\n" for line in self.lines)
        for collector in self.collectors:
            collector.lines.clear()
        return path

    def write_truth(self, folder: Path) -> None:
        """By queue the steps of its readers, for looking at."""
        told: dict[str, Any] = {}
        for queue, steps in sorted(self.truth.readers.items()):
            told[str(queue)] = [
                [instant(max(time, -WARM_UP)), sorted(readers)]
                for time, readers in zip(steps.times, steps.values, strict=True)
            ]
        processes = {
            process.label: [process.client_id, process.strategy, sorted(process.subscriptions)]
            for process in self.world.processes
        }
        text = json.dumps({"processes": processes, "readers": told}, indent=1)
        (folder / f"{self.name}.truth.json").write_text(text)


Situation = Callable[[Fleet], None]


@dataclass(frozen=True)
class Polling:
    """How all fleets are polled, whatever their collectors would do by themselves.

    ``every``: the time between two rounds; None: as the fleet and its situations have it.
    ``lists_alone``: lists and routes, and nothing else.
    """

    every: Millis | None = None
    lists_alone: bool = False

    def before(self, fleet: Fleet) -> None:
        """What situations count on: how long it is looked at, and what dumps can show."""
        if self.every is not None:
            fleet.until = max(fleet.until, _ROUNDS * self.every)
        if self.lists_alone:
            for pod in fleet.pods:
                pod.strategy = "AVG"
        self.after(fleet)

    def after(self, fleet: Fleet) -> None:
        """Also where a situation has its own habits."""
        habits = fleet.habits
        if self.every is not None:
            habits.interval = self.every
        if self.lists_alone:
            habits.heartbeats = habits.running_infos = habits.offsets = False


#: A fleet is looked at for so many rounds at least.
_ROUNDS = 12
AS_IT_IS = Polling()


def draw_fleet(
    name: str,
    situations: Sequence[Situation],
    seed: object,
    *,
    draws: int = 0,
    polling: Polling = AS_IT_IS,
) -> Fleet:
    """A fleet in which the situations happen, simulated; the same for the same name and seed.

    ``draws``: the same events, with other draws of the clients.
    """
    random = dice_of(f"{name} {seed}")
    fleet = settled_fleet(name, random, dice_of(f"{name} {seed} {draws}"))
    polling.before(fleet)
    for situation in situations:
        situation(fleet)
    polling.after(fleet)
    fleet.simulate()
    return fleet


def settled_fleet(
    name: str, random: Random, draws: Random, of_cluster: Random | None = None
) -> Fleet:
    """Brokers, nameservers, pods and a collector's habits, before anything happens.

    ``of_cluster``: of the brokers and the habits; those of the groups of one cluster fall alike.
    """
    shared = of_cluster or random
    world = World(random, draws, Clock(-WARM_UP - SECOND), notifies=random.random() < 0.9)
    world.nameservers = [Nameserver(f"10.9.0.{number}:9876") for number in (1, 2)]
    queues = shared.choice([2, 4, 4, 6, 8])
    has_slave = shared.random() < 0.3
    for number in range(shared.choice([2, 2, 3, 3, 4])):
        world.add_broker(
            f"broker-{'abcd'[number]}",
            {"T": queues, RETRY: 1},
            slaves=1 if has_slave and number == 0 else 0,
        )
    id_style = random.choice(["nano", "nano", "nano", "custom", "pid"])
    habits = Habits(
        interval=shared.choice([20, 30, 30, 60, 60]) * SECOND,
        drift=shared.choice([0, 0, 130, 730]),
        pause=shared.choice([20, 20, 50, 500, 1000]),
        heartbeats=shared.random() < 0.4,
        running_infos=shared.random() < 0.5,
        info_pause=shared.choice([20, 50, 200]),
        info_of_every_broker=shared.random() < 0.3,
        offsets=shared.random() < 0.5,
    )
    strategy = "AVG"
    if habits.running_infos:
        strategy = random.choice(["AVG", "AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"])
    version = 373 if id_style == "pid" else random.choice([401, 433])
    pods = [
        Pod(
            number=number,
            host=f"10.2.0.{10 + number}",
            strategy=strategy,
            subscriptions=frozenset({"T", RETRY}),
            nameserver=random.choice(world.nameservers),
            version=version,
        )
        for number in range(random.randint(3, 9))
    ]
    until = random.choice([22, 26, 32, 40]) * MINUTE
    rates = {"T": random.choice([0.5, 5.0, 50.0]), "U": random.choice([0.5, 5.0])}
    return Fleet(name, random, world, pods, habits, until, id_style, rates)

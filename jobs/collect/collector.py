"""Round after round of every cluster: each is a file, a line about it, and the figures."""

import asyncio
import ctypes
import hashlib
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import prometheus_client
from prometheus_client import Counter, Gauge

from ..console.output import Output, text_file_at, write_metrics
from ..console.progress import Say
from ..declared.instants import SECOND, Instant, to_datetime
from ..errors import AuditError, SettingsError
from ..storage.disk import state_folder
from ..texts.failures import sentence_of
from ..texts.shown import iso, visible
from .asked_clients import AskedClients
from .client import Figures, RemotingClient
from .collect_options import CollectOptions
from .dump_folder import DumpFolder
from .frames import find_account
from .rounds import MOST_TROUBLES, CollectError, Round, StoppedError

#: ``M_ARENA_MAX``, ``M_MMAP_THRESHOLD`` and ``M_TRIM_THRESHOLD`` of ``malloc.h``.
_MALLOPT = {-8: 1, -3: 1 << 18, -1: 1 << 18}


class WrittenRound(NamedTuple):
    """One round that was written."""

    path: Path
    snapshot_time: Instant
    figures: Figures
    seconds: float
    troubles: tuple[str, ...]
    #: The names that were given in vain, a sentence each.
    unknown: tuple[str, ...]
    #: The number of running infos that are left to a later round.
    waiting: int

    def summary(self) -> str:
        """A line about the round, and one for each trouble."""
        first = (
            f"round of {iso(to_datetime(self.snapshot_time))}: {self.figures.lines:,} lines, "
            f"{self.figures.requests:,} requests, {self.figures.received_bytes / 1e6:.1f} MB, "
            f"{self.seconds:.1f} s: {visible(str(self.path))}"
        )
        lines = [first, *(f"  {visible(trouble)}" for trouble in self.troubles[:MOST_TROUBLES])]
        if (rest := len(self.troubles) - MOST_TROUBLES) > 0:
            lines.append(f"  and {rest} more")
        return "\n".join(lines)


class Collector:
    """Collects what a client reaches, into a folder."""

    def __init__(self, client: RemotingClient, folder: DumpFolder) -> None:
        self.target = target = client.cluster
        self.options = client.options
        self.figures = Figures()
        self._client, self._folder = client, folder
        # Another list of servers, or other clusters of it, is another memory.
        identity = repr((target.namesrv, target.name, target.clusters))
        digest = hashlib.md5(identity.encode(), usedforsecurity=False).hexdigest()[:8]
        self._key = f"{target.name or 'round'}-{digest}"
        self._memory = folder.remembered(self._key)

    async def collect(self) -> WrittenRound:
        """One round. CollectError where it brought nothing or cannot be written."""
        begins = asyncio.get_running_loop().time()
        figures = self._client.figures = Figures()
        snapshot_time = self._client.now()
        self._client.asked_clients.forget(snapshot_time)
        try:
            with self._folder.new_round(snapshot_time, self.target.name) as file:
                asked = Round(self._client, self._memory, snapshot_time, file.write)
                await asked.run()
                asked.check()
            seconds = asyncio.get_running_loop().time() - begins
            figures.rounds, figures.lines = 1, file.lines
            self.figures.last_seconds = seconds
            self.figures.last_at_seconds = snapshot_time / SECOND
        except OSError as error:
            raise CollectError(
                f"the round of {iso(to_datetime(snapshot_time))} cannot be written to "
                f"{self._folder.root}: {error}; nothing of it was kept"
            ) from error
        finally:
            self.figures.add(figures)
        # If it cannot be remembered, it is asked again; the round itself is there.
        with suppress(OSError):
            self._folder.remember(self._key, self._memory)
        return WrittenRound(
            self._folder.path(snapshot_time, self.target.name),
            snapshot_time,
            figures,
            seconds,
            asked.troubles(),
            tuple(chain(*asked.unknown())),
            asked.waiting,
        )

    async def keep_collecting(self, after: Callable[[WrittenRound | Exception], None]) -> None:
        """A round every ``every_seconds``, for ``for_seconds`` (None: without end).

        A round that fails is passed to ``after`` and counted; the next one comes at its time.
        Rounds whose time is over when a long one ends are left out.
        """
        every, seconds = self._client.options.every_seconds, self._client.options.for_seconds
        assert every is not None  # noqa: S101 - who calls has looked
        loop = asyncio.get_running_loop()
        begins = at = loop.time()
        while seconds is None or at - begins < seconds:
            await asyncio.sleep(at - loop.time())
            try:
                done: WrittenRound | Exception = await self.collect()
            except Exception as error:  # one round is lost, not the day
                self.figures.missed += 1
                done = error
            at += every
            while at < loop.time():
                self.figures.missed += 1
                at += every
            after(done)


async def collect(
    options: CollectOptions,
    environment: Mapping[str, str],
    clock: Callable[[], Instant],
    say: Say,
    complain: Say,
) -> None:
    """Runs the command: one round of every cluster, or round after round.

    SIGTERM ends it: a round under way is not kept.
    Raises AuditError: the folder is another collector's, that of the metrics is not there, or a
    single round failed.
    """
    _give_large_blocks_back()
    metrics = text_file_at(options.metrics) if options.metrics else None
    folder = DumpFolder(Path(options.dumps))
    slots = asyncio.Semaphore(options.parallel_in_all)
    accounts = [find_account(environment, cluster.account_file) for cluster in options.clusters]
    for cluster, account in zip(options.clusters, accounts, strict=True):
        if account is not None and cluster.tls is None:
            complain(
                f"{', '.join(cluster.namesrv)}: the account is used without TLS: a server that a "
                "nameserver names, and whoever listens, gets signatures that can be sent again"
            )
    async with AsyncExitStack() as stack:
        terminated = stack.enter_context(_ended_by_sigterm())
        try:
            stack.enter_context(folder.locked())
            # Who was asked, by this folder, which lasts, and by this user.
            places = [folder.asked_clients]
            with suppress(OSError):
                places.append(state_folder(environment) / folder.asked_clients.name)
            asked_clients = AskedClients(places, clock())
            stack.callback(asked_clients.close)
            collectors = []
            for cluster, account in zip(options.clusters, accounts, strict=True):
                client = RemotingClient(
                    options, cluster, clock, account, slots, asked_clients=asked_clients
                )
                collectors.append(Collector(await stack.enter_async_context(client), folder))
        except OSError as error:
            what = f"{folder.root} cannot be written to: {sentence_of(error)}"
            raise CollectError(what) from error
        try:
            if options.every_seconds is None:
                await _once(collectors, metrics, say)
            else:
                await _again_and_again(collectors, metrics, say, complain)
        except asyncio.CancelledError:
            if not terminated.is_set():  # Ctrl-C
                raise
            if options.every_seconds is None:
                raise StoppedError("stopped; nothing of the round was kept") from None
            say("stopped; a round under way was not kept")


async def _once(collectors: Sequence[Collector], metrics: Output | None, say: Say) -> None:
    done = await asyncio.gather(*map(Collector.collect, collectors), return_exceptions=True)
    _write_metrics(collectors, metrics)
    unknown: list[str] = []
    for collector, written in zip(collectors, done, strict=True):
        if not isinstance(written, WrittenRound):
            continue
        say(written.summary())
        unknown += written.unknown
        if written.waiting:
            settling = collector.options.running_infos_after_seconds
            say(
                f"  running infos left to a later round into this folder: {written.waiting:,}; "
                f"a client is asked when it has been there for {settling} s without a change"
            )
    if unknown:
        raise SettingsError("; ".join(dict.fromkeys(unknown)))
    failed = [error for error in done if isinstance(error, BaseException)]
    if len(failed) > 1 and all(isinstance(error, AuditError) for error in failed):
        raise CollectError("\n".join(map(str, failed)))
    if failed:
        raise failed[0]


async def _again_and_again(
    collectors: Sequence[Collector], metrics: Output | None, say: Say, complain: Say
) -> None:
    def after(done: WrittenRound | Exception) -> None:
        if isinstance(done, WrittenRound):
            say(done.summary())
        else:
            kind = "" if isinstance(done, AuditError) else f"{type(done).__name__}: "
            complain(f"a round failed, the next one comes at its time: {kind}{visible(str(done))}")
        try:
            _write_metrics(collectors, metrics)
        except AuditError as error:
            complain(visible(str(error)))

    async with asyncio.TaskGroup() as tasks:
        for collector in collectors:
            tasks.create_task(collector.keep_collecting(after))


def _write_metrics(collectors: Sequence[Collector], metrics: Output | None) -> None:
    if metrics is not None:
        figures_by_cluster = {it.target.name or "default": it.figures for it in collectors}
        write_metrics(metrics, metrics_text(figures_by_cluster))


def _give_large_blocks_back() -> None:
    """Has the C library give large blocks back to the system when they are freed.

    Else glibc keeps up to 32 MiB blocks of each thread for later, as it does by itself once one was
    freed (``mallopt(3)``): among servers that send long answers that is a third of the memory of a
    process that runs for months. Another C library has no such setting.
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        for option, value in _MALLOPT.items():
            mallopt(option, value)


@contextmanager
def _ended_by_sigterm() -> Iterator[asyncio.Event]:
    """Cancels the task that calls on SIGTERM, within the block; the event is set then.

    After it SIGTERM does what it did before: a loop that closes would have it end the process
    without a word.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine runs in one
    terminated = asyncio.Event()

    def terminate() -> None:
        terminated.set()
        task.cancel()

    before = signal.getsignal(signal.SIGTERM)
    # Signals reach the main thread alone.
    with suppress(ValueError, RuntimeError, NotImplementedError):
        loop.add_signal_handler(signal.SIGTERM, terminate)
    try:
        yield terminated
    finally:
        with suppress(ValueError, RuntimeError, NotImplementedError):
            if loop.remove_signal_handler(signal.SIGTERM):
                signal.signal(signal.SIGTERM, before)


# ---------------------------------------------------------------- figures

_PREFIX = "rebalance_audit_collect_"
#: Metrics by name of the figure: the class, the name, and what it counts.
_METRICS = {
    "rounds": (Counter, "rounds", "Rounds that were written"),
    "missed": (
        Counter,
        "missed",
        "Rounds that failed, or whose time was over before the last one ended",
    ),
    "requests": (Counter, "requests", "Requests sent"),
    "received_bytes": (Counter, "received_bytes", "Bytes of the answers' bodies"),
    "lines": (Counter, "lines", "Lines written"),
    "last_seconds": (Gauge, "last_round_seconds", "How long the last round took"),
    "last_at_seconds": (Gauge, "last_round_timestamp_seconds", "snapshot_time of the last round"),
}


def metrics_text(figures: Mapping[str, Figures]) -> str:
    """The figures by the name of the cluster, as Prometheus' text, for the textfile collector
    of node_exporter. Labels: clusters, and the addresses of servers, as many as there are.

    >>> print(metrics_text({"C": Figures(rounds=3)}).splitlines()[2])
    rebalance_audit_collect_rounds_total{cluster="C"} 3.0
    """
    # When a counter was made is of no use, and doubles the text.
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
    registry = prometheus_client.CollectorRegistry()
    for name, (kind, metric, what) in _METRICS.items():
        made = kind(_PREFIX + metric, what, ["cluster"], registry=registry)
        for cluster, counts in figures.items():
            if (value := getattr(counts, name)) is not None:
                made.labels(visible(cluster)).inc(value)
    errors = Counter(
        _PREFIX + "errors",
        "Answers that were errors; -1 no answer in time, -2 not reached, -3 not understood",
        ["cluster", "address", "code"],
        registry=registry,
    )
    for cluster, counts in figures.items():
        for (address, code), times in sorted(counts.errors.items()):
            errors.labels(visible(cluster), visible(address), str(code)).inc(times)
    return prometheus_client.generate_latest(registry).decode()

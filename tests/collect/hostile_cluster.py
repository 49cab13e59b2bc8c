"""A nameserver with two honest brokers, among 45 that mean harm and thousands that are silent.

    python -m tests.collect.hostile_cluster [--every 20] [--rounds 3]

starts them on loopback, has the collector ask them as a process of its own, and prints what each
round came to: honest lines of those that there must be, seconds, and the process' most memory.
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from tests.support.frames import Frame
from tests.support.remote_cluster import RemoteCluster
from tests.support.replay import Answering, Manners, Replay, answer_frame, error, in_thread

ROOT = Path(__file__).parent.parent.parent
NAMESRV = "ns:9876"
HONEST = ("a:10911", "b:10911")
GROUPS, MEMBERS, SILENT = 40, 3, 5_000
#: The servers of each harm; and the addresses of the one broker name that has many.
COPIES, MANY = 2, 100_000
TIMEOUT = 2.0
#: Longest body that is taken by default, and a little less.
LONG = (8 << 20) - 4_096


def _body(code: int, body: bytes) -> Mapping[int, bytes]:
    return {code: body}


def _names(prefix: str, number: int) -> list[str]:
    return [f"{prefix}{each}" for each in range(number)]


def _groups(names: Iterable[str]) -> bytes:
    return json.dumps({"subscriptionGroupTable": {name: {} for name in names}}).encode()


def _listed(names: Iterable[str]) -> bytes:
    connections = [{"clientId": name, "clientAddr": "10.0.0.1:1"} for name in names]
    return json.dumps({"connectionSet": connections}).encode()[:LONG]


def _offsets(number: int) -> bytes:
    queue = '{"brokerName":"evil","queueId":0,"topic":"o%d"}:{"brokerOffset":1,"consumerOffset":0}'
    table = ",".join(queue % each for each in range(number))
    return f'{{"offsetTable":{{{table}}}}}'.encode()[:LONG]


def bodies() -> dict[str, Mapping[int, bytes]]:
    """By the name of what is done: the body that is answered to a request code."""
    noise = random.Random(7).randbytes(LONG // 2).hex().encode()  # noqa: S311
    every = (201, 203, 208, 307, 343, 402)
    return {
        "groups without end": _body(201, _groups(_names("evil", 300_000))),
        "a name of 7 MB": _body(201, _groups(["L" * (7 << 20)])),
        "topics without end": _body(343, json.dumps({"topicList": _names("t", 500_000)}).encode()),
        "offsets without end": _body(208, _offsets(30_000)),
        "members without end": _body(203, _listed(_names("m", 140_000))),
        "no JSON, slow to read": _body(201, b"{'a':{" + b"'g':{'a':1}," * 600_000 + b"}}"),
        "many small values": _body(201, b'{"subscriptionGroupTable":[' + b"[]," * 2_500_000),
        "brackets": _body(203, b"[" * LONG),
        "noise to whatever is asked": dict.fromkeys(every, noise),
        "characters that grow as JSON": _body(203, b"\x01" * LONG),
        "wide characters": _body(203, '"\U0001f600'.encode() + b"a" * (LONG - 8)),
        "numbers of 5,000 digits": _body(203, b'{"connectionSet":' + b"9" * 5_000 + b"}"),
    }


MANNERS = {
    "silent": Manners(hangs_after=0),
    "refuses": Manners(refuses=True),
    "closes half way": Manners(closes_at=2),
    "byte by byte": Manners(dribbles=True),
    "slow": Manners(delay=0.9 * TIMEOUT),
    "HTTP": Manners(junk=lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    "two gigabytes announced": Manners(junk=lambda data: b"\x7f\xff\xff\xff" + data[4:]),
    "frames that nobody asked for": Manners(junk=lambda data: data * 200),
}


def remarks() -> dict[str, Answering]:
    """Answers that are errors."""
    header = b'{"code":1,"flag":1,"opaque":0,"remark":"\\ud83d","version":401}'
    half = (4 + len(header)).to_bytes(4, "big") + len(header).to_bytes(4, "big") + header
    return {
        "half a surrogate pair": lambda _: half,
        "codes below 0": lambda _: error(-1, "\x1b[2J"),
    }


def _harms(honest: Answering) -> Iterator[tuple[Answering, Manners | None]]:
    """Each way to mean harm: what such a server answers, and how."""
    for by_code in bodies().values():
        made = {code: answer_frame(body) for code, body in by_code.items()}
        yield lambda asked, made=made: made.get(asked.code) or honest(asked), None  # type: ignore[misc]
    for manner in MANNERS.values():
        yield honest, manner
    for answer in remarks().values():
        yield answer, None


class Hostile:
    """The servers, and what of their answers must be in every round."""

    def __init__(self) -> None:
        self.cluster = RemoteCluster(brokers={each[0]: {0: each} for each in HONEST}, is_5=True)
        for number in range(GROUPS):
            ids = [f"10.0.{number}.{member}@app" for member in range(MEMBERS)]
            self.cluster.add_group(f"G_{number:02}", ids, [f"T_{number:02}"])
        whole = self.cluster.answers()
        honest = whole[HONEST[0]]
        self.honest: dict[str, Answering] = {each: whole[each] for each in HONEST}
        self.answers: dict[str, Answering] = {}
        self.manners: dict[str, Manners] = {}
        evil = 0
        for answers, manner in [*_harms(honest)] * COPIES:
            at, evil = f"evil{evil}:10911", evil + 1
            self.answers[at] = answers
            if manner is not None:
                self.manners[at] = manner
        self.silent = [f"s{number}:10911" for number in range(SILENT)]
        names = [*HONEST, *self.answers, *self.silent, "9" * 300]
        table = {at.partition(":")[0]: {"cluster": "C", "brokerAddrs": {"0": at}} for at in names}
        table["digits"] = {"cluster": "C", "brokerAddrs": {"9" * 5_000: "x:1"}}
        many = {str(each): f"10.0.{each >> 8}.{each & 255}:1" for each in range(MANY)}
        table["many"] = {"cluster": "C", "brokerAddrs": many}
        self.answers["silent:1"] = lambda _: None
        self.brokers = answer_frame(json.dumps({"brokerAddrTable": table}).encode())
        self.namesrv = self.cluster.answers()["ns1:9876"]
        self.honest[NAMESRV] = self._namesrv

    def _namesrv(self, asked: Frame) -> bytes | None:
        if asked.code == 106:
            return self.brokers
        return (
            self.namesrv(asked) if asked.fields["topic"].startswith(("T_", "%R")) else error(17, "")
        )

    def expected(self, *, is_first: bool) -> set[tuple[str, ...]]:
        """Kind, server and name of each honest line that has a body."""
        found: set[tuple[str, ...]] = set()
        for group, topics in self.cluster.topics.items():
            for broker in HONEST:
                found |= {
                    (kind, broker, group) for kind in ("consumer_connection", "consume_stats")
                }
            found |= {("topic_route", NAMESRV, topic) for topic in topics}
            if is_first:
                ids = {each for each, _ in self.cluster.members[group][HONEST[0]]}
                found |= {("consumer_running_info", "", each) for each in ids}
        return found


class OfRound(NamedTuple):
    """What one round came to."""

    honest: int
    expected: int
    lines: int
    seconds: float
    left_out: dict[str, int]


class Outcome(NamedTuple):
    """What the collector made of them."""

    rounds: list[OfRound]
    most_mib: float
    cpu_seconds: float
    exit_code: int
    said: str


def run(place: Path, every: float, number: int) -> Outcome:
    """So many rounds among these servers; the dumps stay in the folder."""
    hostile = Hostile()
    with _served(hostile) as ports, in_thread(Replay(hostile.honest)) as replay:
        silent = dict.fromkeys(hostile.silent, ports["silent:1"])
        everywhere = {**replay.connect_to, **ports, **silent}
        connect = [f'"{at}" = "{to}"' for at, to in everywhere.items()]
        head = [f"timeout_seconds = {TIMEOUT}", "running_infos_after_seconds = 0"]
        head += ["[[clusters]]", f'namesrv = ["{NAMESRV}"]']
        config = place / "collect.toml"
        config.write_text("\n".join([*head, "[clusters.connect_to]", *connect]))
        command = [sys.executable, "-m", "jobs", "collect", "--config", str(config)]
        command += ["--dumps", str(place / "dumps"), "--every", f"{every:g}"]
        process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        most, ticks, paths = 0.0, 0, []
        try:
            ends = time.monotonic() + (number + 1) * (every + 6)
            while len(paths) < number and time.monotonic() < ends and process.poll() is None:
                status = Path(f"/proc/{process.pid}/status").read_text()
                found = re.search(r"VmHWM:\s+(\d+) kB", status)
                most = max(most, int(found.group(1)) / 1024 if found else 0.0)
                stat = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
                ticks = int(stat[11]) + int(stat[12])
                paths = sorted((place / "dumps").glob("*/*.gz"))
                time.sleep(0.2)
            process.terminate()
            _, said = process.communicate(timeout=10)
        finally:
            process.kill()
            process.wait()
    seconds = [float(each) for each in re.findall(r"MB, ([0-9.]+) s:", said)]
    rounds = [
        _of_round(hostile, path, took, is_first=place == 0)
        for place, (path, took) in enumerate(zip(paths, seconds, strict=False))
    ]
    return Outcome(rounds, most, ticks / os.sysconf("SC_CLK_TCK"), process.returncode, said)


def _serve(hostile: Hostile, ports: Connection) -> None:
    with in_thread(Replay(hostile.answers, hostile.manners)) as replay:
        ports.send(replay.connect_to)
        signal.pause()


@contextmanager
def _served(hostile: Hostile) -> Iterator[dict[str, str]]:
    """The servers that mean harm, in a process of their own: the honest ones must not be slow."""
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe()
    process = fork.Process(target=_serve, args=(hostile, there), daemon=True)
    process.start()
    try:
        yield here.recv()
    finally:
        process.kill()
        process.join()


def _of_round(hostile: Hostile, path: Path, seconds: float, *, is_first: bool) -> OfRound:
    expected, found, number = hostile.expected(is_first=is_first), set(), 0
    left_out: dict[str, int] = {}
    with gzip.open(path) as file:
        for text in file:
            number += 1
            line: dict[str, Any] = json.loads(text)
            if line["kind"] == "left_out":
                body = json.loads(line["body"])
                left_out[body["what"]] = body["number"]
            server = line.get("namesrv_addr") or line.get("broker_addr", "")
            name = line.get("client_id") or line.get("consumer_group") or line.get("topic", "")
            if "body" in line and line["kind"] == "consumer_running_info":
                found.add((line["kind"], "", name))
            elif "body" in line:
                found.add((line["kind"], server, name))
    return OfRound(len(expected & found), len(expected), number, seconds, left_out)


def main() -> None:
    """Prints a line for each round."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with TemporaryDirectory() as place:
        outcome = run(Path(place), arguments.every, arguments.rounds)
    for each in outcome.rounds:
        say = f"{each.honest} of {each.expected} honest lines, {each.lines:,} lines in all"
        sys.stdout.write(f"{say}, {each.seconds:.1f} s, left out: {each.left_out}\n")
    cost = f"{outcome.cpu_seconds:.1f} CPU s, most memory {outcome.most_mib:.0f} MiB"
    sys.stdout.write(f"{cost}, exit code {outcome.exit_code}\n")


if __name__ == "__main__":
    main()

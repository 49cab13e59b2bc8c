"""Nights of which nothing could be known, made of captures, and what every surface says of each."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from jobs.cli import main
from tests.support.surfaces import Surfaces, surfaces_of

CAPTURES = Path(__file__).parents[1] / "data" / "captures"
DAY = "2026-11-21"
Line = dict[str, Any]
#: Writes the dump files of a night.
Night = Callable[[Path], None]


@dataclass(frozen=True)
class Scenario:
    """A night: what happened to its dumps, and the state that a run of it has.

    ``before``: what writes the dumps of the night before. ``options`` of the command.
    """

    name: str
    state: str
    write: Night
    words: tuple[str, ...] = ()
    before: Night | None = None
    options: tuple[str, ...] = ()


def lines_of(situation: str) -> list[Line]:
    """The lines of a capture."""
    with gzip.open(CAPTURES / situation / "dump.jsonl.gz", "rt") as file:
        return [json.loads(line) for line in file]


def write(lines: Iterable[Line], file: Path) -> bytes:
    """Writes a plain dump; what it is."""
    text = "".join(json.dumps(line) + "\n" for line in lines).encode()
    file.write_bytes(text)
    return text


def changed(situation: str, change: Callable[[Line], Line | None]) -> Night:
    """A capture of which every line is changed, or left out (None)."""

    def night(folder: Path) -> None:
        new = (change(dict(line)) for line in lines_of(situation))
        write([line for line in new if line is not None], folder / "dump.jsonl")

    return night


def without(*kinds: str) -> Callable[[Line], Line | None]:
    """Leaves lines of some kinds out."""
    return lambda line: None if line["kind"] in kinds else line


def in_bodies(kinds: str, pattern: str, by: str) -> Callable[[Line], Line]:
    """Changes the bodies of some kinds."""

    def change(line: Line) -> Line:
        if line["kind"] in kinds.split() and "body" in line:
            line["body"] = re.sub(pattern, by, line["body"])
        return line

    return change


def _no_answer(line: Line) -> Line:
    if line["kind"] == "consumer_connection":
        line.pop("body", None)
        line |= {"error_code": -1, "error_message": "timed out"}
    return line


def _silent_from(broker: str, time: str) -> Callable[[Line], Line]:
    """One broker answers no more from a time on."""

    def change(line: Line) -> Line:
        late = line.get("snapshot_time", "") >= time
        return _no_answer(line) if line.get("broker_name") == broker and late else line

    return change


def _silent(line: Line) -> Line | None:
    return None if line["kind"] == "heartbeat" else _no_answer(line)


def _later(days: int, cluster: str) -> Callable[[Line], Line]:
    return lambda line: _moved(line | {"cluster": cluster}, timedelta(days=days))


def _moved(line: Line, later: timedelta) -> Line:
    for name in ("collected_at", "snapshot_time"):
        if name in line:
            time = datetime.fromisoformat(line[name]) + later
            line[name] = time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return line


def capture(situation: str) -> Night:
    """A capture as it is."""
    return changed(situation, lambda line: line)


def _beside(name: str, damage: Callable[[bytes], bytes]) -> Night:
    """A dump that is damaged so."""

    def night(folder: Path) -> None:
        (folder / name).write_bytes(damage(write(lines_of("S2"), folder / name)))

    return night


def _ahead(folder: Path) -> None:
    write(map(_later(300, "other"), lines_of("S2")), folder / "ahead.jsonl")


def _last(rounds: int, night: Callable[[Line], Line] = lambda line: line) -> Night:
    """The last rounds of a night with a fault, a minute apart."""

    def write_them(folder: Path) -> None:
        lines = [each for each in lines_of("S4") if "snapshot_time" in each]
        times = sorted({line["snapshot_time"] for line in lines})[-rounds:]
        first = datetime.fromisoformat(times[0])
        moved = []
        for number, time in enumerate(times):
            later = timedelta(minutes=number) - (datetime.fromisoformat(time) - first)
            for line in lines:
                if line["snapshot_time"] == time:
                    moved.append(night(_moved(dict(line), later)))
        write(moved, folder / "dump.jsonl")

    return write_them


def _at_one_time(line: Line) -> Line:
    return line | {"snapshot_time": "2026-11-21T02:00:00Z"}


def _both(*nights: Night) -> Night:
    def night(folder: Path) -> None:
        for number, each in enumerate(nights):
            below = folder / str(number)
            below.mkdir()
            each(below)

    return night


def _clusters(*nights: Night) -> Night:
    """Of each night a cluster of its own."""

    def night(folder: Path) -> None:
        _both(*nights)(folder)
        for file in folder.rglob("*.jsonl"):
            named = {"cluster": file.parent.name}
            write([json.loads(line) | named for line in file.read_text().splitlines()], file)

    return night


def _day_before(night: Night) -> Night:
    """The same a day earlier."""

    def earlier(folder: Path) -> None:
        night(folder)
        for file in folder.rglob("*.jsonl"):
            change = _later(-1, "DefaultCluster")
            write([change(json.loads(line)) for line in file.read_text().splitlines()], file)

    return earlier


def _without_zone(line: Line) -> Line:
    """As a collector writes it that prints local times."""
    times = {name: line[name].rstrip("Z") for name in _TIMES if name in line}
    return line | {"cluster": "small"} | times


_TIMES = ("collected_at", "snapshot_time")


def _with_connection(**fields: Any) -> Callable[[Line], Line]:
    """One connection more in each list, of a client that no other witness knows."""

    def change(line: Line) -> Line:
        if line["kind"] == "consumer_connection" and "body" in line:
            odd = {"clientAddr": "10.9.9.9:1234", "language": "GO", "version": 455, **fields}
            line["body"] = line["body"].replace(
                '"connectionSet":[', f'"connectionSet":[{json.dumps(odd)},'
            )
        return line

    return change


def _leaving_out(folder: Path) -> None:
    """A collector that left groups out of its rounds."""
    lines = lines_of("S1")
    rounds = sorted({line["snapshot_time"] for line in lines if "snapshot_time" in line})
    body = json.dumps({"what": "groups (most_groups)", "number": 20_000})
    said = {"kind": "left_out", "cluster": lines[0]["cluster"], "body": body}
    left_out = [{**said, **dict.fromkeys(_TIMES, time)} for time in rounds]
    write([*lines, *left_out], folder / "dump.jsonl")


def _of_one_broker(line: Line) -> Line:
    """Lists of one broker that nobody can read."""
    is_list = line["kind"] == "consumer_connection" and line["broker_name"] == "broker-a"
    return line | {"body": "?"} if is_list else line


CONNECTIONS, ROUTES = "consumer_connection heartbeat consumer_running_info", "topic_route"
_SUBSCRIPTIONS = in_bodies(CONNECTIONS, r'"subscription(Table|DataSet|Set)"', r'"x\1"')
_BILLION_QUEUES = in_bodies(ROUTES, r'"readQueueNums":\d+', '"readQueueNums":1000000000')
_OWN_STRATEGY = in_bodies(
    "consumer_running_info client_log",
    r"(allocateMessageQueueStrategy(?:Name)?[\"=:]+)[\w.@]+",
    r"\1com.example.Mine",
)
#: By name nights in which several things happened, each to a cluster or a dump of its own, and the
#: words of each.
_INCOMPLETE: dict[str, tuple[Night, tuple[str, ...]]] = {
    "clusters of which no topic could be audited": (
        _clusters(
            changed("S2", without("topic_route")),
            changed("S2", _SUBSCRIPTIONS),
            changed("S2", _silent),
            changed("S2", _BILLION_QUEUES),
            changed("S2", in_bodies(ROUTES, r'"perm":\d+', '"perm":2')),
            changed("S1", _OWN_STRATEGY),
        ),
        (
            *("not audited (route not", "do not show to which topics", "never answered"),
            *("not understood", "no readable queue", "strategy not known"),
        ),
    ),
    "clusters of which a part was not seen": (
        _clusters(
            changed("S1", _silent_from("broker-a", "2026-11-21T02:05")),
            changed("S1", in_bodies("consume_stats", r'"brokerOffset":\d+', '"brokerOffset":"x"')),
            changed("S1", _with_connection(clientId="")),
            changed("S1", _of_one_broker),
            _leaving_out,
        ),
        (
            *("did not answer in", "consume_stats of cluster"),
            "no clientId of the connection from 10.9.9.9:1234",
            "broker-a/0, broker-a/1 gave are no evidence",
            "the collector left out 20,000 groups (most_groups)",
        ),
    ),
    "dumps that are damaged or of another time": (
        _both(
            capture("S1"),
            _beside("a.jsonl", lambda text: text.replace(b"\n", b" ")),
            _beside("bad.jsonl", lambda text: text[:300]),
            _beside("empty.jsonl.gz", lambda _: b""),
            _ahead,
            changed("S2", _without_zone),
        ),
        ("bytes", "bad.jsonl", "empty.jsonl.gz", "cluster other", "cluster small: "),
    ),
}
#: And what costs nothing that lasts.
_WELL: dict[str, Night] = {
    "versions and addresses that nobody can read": changed(
        "S1",
        in_bodies("consumer_connection", r'"clientAddr":"[^"]*"|"version":\d+', '"version":1e400'),
    ),
}
_GONE = _day_before(_both(capture("S1"), capture("S2")))
_DATED = ("--date", DAY)
_LASTS = ("--set=persistence_seconds=180",)
#: A fault is in sight in each, and nothing can be seen to last.
_TOO_SHORT = {
    "one round": (_last(1), "cover 0 s of the 180 s", _LASTS),
    "snapshot_time stays": (_last(5, _at_one_time), "snapshot_time stays at", _LASTS),
}
SCENARIOS = (
    Scenario("a healthy night", "WELL", capture("S1")),
    *(Scenario(name, "WELL", night) for name, night in _WELL.items()),
    Scenario("a fault in enough rounds", "WRONG", _last(5), options=_LASTS),
    Scenario("a fault that lasts", "WRONG", capture("S2")),
    *(Scenario(name, "INCOMPLETE", *each) for name, each in _INCOMPLETE.items()),
    *(
        Scenario(name, "INCOMPLETE", night, (words,), options=options)
        for name, (night, words, options) in _TOO_SHORT.items()
    ),
    Scenario("it ends early", "INCOMPLETE", capture("S1"), ("after the last one",), None, _DATED),
    Scenario(
        "a group that is gone", "INCOMPLETE", capture("S1"), ("no longer in any dump",), _GONE
    ),
)


def run(scenario: Scenario, folder: Path, gates: str) -> tuple[int, str]:
    """Audits a scenario; the exit code, and what the console says."""
    nights = [each for each in (scenario.before, scenario.write) if each is not None]
    code, said = 0, io.StringIO()
    for number, night in enumerate(nights):
        dumps = folder / f"dumps-{number}"
        dumps.mkdir()
        night(dumps)
        given = ["run", "--dumps", str(dumps), "--output", str(folder / "out"), "--quiet"]
        settings = ["--engine", "local", "--set=persistence_seconds=60"]
        options = scenario.options if night is scenario.write else ()
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = main([*given, *settings, *options, "--fail-on", gates])
    return code, said.getvalue()


def surfaces(folder: Path) -> Surfaces:
    """Of the run of a scenario."""
    return surfaces_of(folder / "out" / "reports", DAY)

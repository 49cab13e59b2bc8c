"""Nights of which nothing could be known, made of captures, and what every surface says of each.

``python -m tests.verdict.scenarios`` prints them as a table.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from jobs.cli import main
from tests.support.surfaces import Surfaces, surfaces_of

CAPTURES = Path(__file__).parents[1] / "data" / "captures"
DAY = "2026-11-21"
Line = dict[str, Any]
#: What is wrong, the state that is right, the dump files of the night; those of the night before.
Night = Callable[[Path], None]


@dataclass(frozen=True)
class Scenario:
    """A night: what happened to its dumps, and the state that a run of it has.

    ``before``: what writes the dumps of the night before. ``options`` of the command.
    """

    name: str
    state: str
    write: Night
    words: str = ""
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
    def change(line: Line) -> Line:
        line["cluster"] = cluster
        for name in ("collected_at", "snapshot_time"):
            if name in line:
                time = datetime.fromisoformat(line[name]) + timedelta(days=days)
                line[name] = time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return line

    return change


def capture(situation: str) -> Night:
    """A capture as it is."""
    return changed(situation, lambda line: line)


def _in_one_line(folder: Path) -> None:
    text = write(lines_of("S2"), folder / "bad.jsonl")
    (folder / "bad.jsonl").write_bytes(text.replace(b"\n", b" "))
    capture("S1")(folder)


def _full_of_nul(folder: Path) -> None:
    text = write(lines_of("S2"), folder / "bad.jsonl")
    half = len(text) // 4
    (folder / "bad.jsonl").write_bytes(text[:half] + bytes(len(text) - half))
    capture("S1")(folder)


def _cut(folder: Path) -> None:
    text = write(lines_of("S2"), folder / "bad.jsonl")
    (folder / "bad.jsonl").write_bytes(text[:300])
    capture("S1")(folder)


def _empty(name: str) -> Night:
    def night(folder: Path) -> None:
        capture("S1")(folder)
        (folder / name).write_bytes(b"")

    return night


def _ahead(folder: Path) -> None:
    capture("S1")(folder)
    lines = map(_later(300, "other"), lines_of("S2"))
    write(lines, folder / "ahead.jsonl")


def _both(*nights: Night) -> Night:
    def night(folder: Path) -> None:
        for number, each in enumerate(nights):
            below = folder / str(number)
            below.mkdir()
            each(below)

    return night


def _day_before(night: Night) -> Night:
    """The same a day earlier."""

    def earlier(folder: Path) -> None:
        night(folder)
        for file in folder.rglob("*.jsonl"):
            change = _later(-1, "DefaultCluster")
            write([change(json.loads(line)) for line in file.read_text().splitlines()], file)

    return earlier


CONNECTIONS, ROUTES = "consumer_connection heartbeat consumer_running_info", "topic_route"
SCENARIOS = (
    Scenario("a healthy night", "WELL", capture("S1")),
    Scenario("a fault that lasts", "WRONG", capture("S2")),
    Scenario(
        "no route", "INCOMPLETE", changed("S2", without("topic_route")), "not audited (route not"
    ),
    Scenario(
        "no subscriptions",
        "INCOMPLETE",
        changed("S2", in_bodies(CONNECTIONS, r'"subscription(Table|DataSet|Set)"', r'"x\1"')),
        "do not show to which topics",
    ),
    Scenario("no broker answers", "INCOMPLETE", changed("S2", _silent), "never answered"),
    Scenario(
        "a broker answers no more",
        "INCOMPLETE",
        changed("S1", _silent_from("broker-a", "2026-11-21T02:05")),
        "did not answer in",
    ),
    Scenario(
        "a route of 10^9 queues",
        "INCOMPLETE",
        changed("S2", in_bodies(ROUTES, r'"readQueueNums":\d+', '"readQueueNums":1000000000')),
        "not understood",
    ),
    Scenario(
        "nothing may be read",
        "INCOMPLETE",
        changed("S2", in_bodies(ROUTES, r'"perm":\d+', '"perm":2')),
        "no readable queue",
    ),
    Scenario(
        "a strategy of its own",
        "INCOMPLETE",
        changed(
            "S1",
            in_bodies(
                "consumer_running_info client_log",
                r"(allocateMessageQueueStrategy(?:Name)?[\"=:]+)[\w.@]+",
                r"\1com.example.Mine",
            ),
        ),
        "strategy not known",
    ),
    Scenario("line feeds are gone", "INCOMPLETE", _in_one_line, "bytes"),
    Scenario("full of NUL", "INCOMPLETE", _full_of_nul, "NUL"),
    Scenario("cut in its first line", "INCOMPLETE", _cut, "bad.jsonl"),
    Scenario("a cluster 300 days ahead", "INCOMPLETE", _ahead, "cluster other"),
    Scenario("an empty file", "INCOMPLETE", _empty("empty.jsonl"), "is empty"),
    Scenario("an empty .gz", "INCOMPLETE", _empty("empty.jsonl.gz"), "empty.jsonl.gz"),
    Scenario(
        "a night that ends early",
        "INCOMPLETE",
        capture("S1"),
        "after the last one",
        None,
        ("--date", DAY),
    ),
    Scenario(
        "a group that is gone",
        "INCOMPLETE",
        capture("S1"),
        "no longer in any dump",
        _day_before(_both(capture("S1"), capture("S2"))),
    ),
)


def run(scenario: Scenario, folder: Path, gates: str | None = None) -> tuple[int, str]:
    """Audits a scenario; the exit code, and what the console says."""
    nights = [scenario.write] if scenario.before is None else [scenario.before, scenario.write]
    code, said = 0, io.StringIO()
    for number, night in enumerate(nights):
        dumps = folder / f"dumps-{number}"
        if not dumps.exists():
            dumps.mkdir()
            night(dumps)
        given = ["run", "--dumps", str(dumps), "--output", str(folder / "out"), "--quiet"]
        settings = ["--engine", "local", "--set=persistence_seconds=60"]
        options = scenario.options if number == len(nights) - 1 else ()
        fail_on = ["--fail-on", gates] if gates else []
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = main([*given, *settings, *options, *fail_on])
    return code, said.getvalue()


def surfaces(folder: Path) -> Surfaces:
    """Of the run of a scenario."""
    return surfaces_of(folder / "out" / "reports", DAY)


def rows() -> Iterator[list[str]]:
    """A row for each scenario, and for each gate and surface a cell."""
    for scenario in SCENARIOS:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            code, console = run(scenario, folder, "CRITICAL")
            both, _ = run(scenario, folder, "CRITICAL,INCOMPLETE")
            found = surfaces(folder)
            (state,) = (
                name
                for name in ("WRONG", "INCOMPLETE", "WELL")
                if found.metrics[f'state{{state="{name}"}}']
            )
            (level,) = re.findall(r"LEVEL:(\w+)", found.page)
            gate = {name: found.gate[name] for name in ("CRITICAL", "INCOMPLETE")}
            yield [
                scenario.name,
                next((line for line in console.splitlines() if "not complete" in line), "-")[:110],
                f"{code}, {both}",
                f"{level}, {found.night}",
                found.ticket.splitlines()[0][2:].partition(":")[0],
                found.alert.splitlines()[0].partition(": ")[2] or found.alert.splitlines()[0],
                state,
                "closed" if any(gate.values()) else "open",
                found.in_python.splitlines()[0][:60],
            ]


HEADS = (
    *("night", "console", "exit CRITICAL; both", "page, nights", "ticket", "alert", "metrics"),
    *("gate of the DAG", "print(audit(...))"),
)

if __name__ == "__main__":
    for row in (HEADS, ["---"] * len(HEADS), *rows()):
        sys.stdout.write(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |\n")

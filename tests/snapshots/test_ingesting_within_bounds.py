"""What asks for too much, or is of no possible time, is left out by name; the rest is read."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from jobs.config.settings import Settings
from jobs.engines.local import LocalEngine
from jobs.pipeline.ingest import IngestCounts
from jobs.pipeline.ingest import ingest as run_ingest
from jobs.storage import Location, Snapshots
from tests.dumps.samples import line
from tests.support.runs import QUIET, writing

#: (file, line number, reason) of each quarantined line, and its text.
Found = dict[tuple[str, int], tuple[str, str]]
Ingest = Callable[..., tuple[IngestCounts, Found, set[str]]]


@pytest.fixture
def ingest(tmp_path: Path) -> Ingest:
    """``ingest(dumps, **bounds)``: counts, quarantine, topics of routes."""

    def run(dumps: Path, **bounds: int) -> tuple[IngestCounts, Found, set[str]]:
        settings = Settings.model_validate({"allowed_quarantine_share": 1.0, "bounds": bounds})
        output = tmp_path / "out"
        with writing(output) as writer, LocalEngine() as engine:
            result = run_ingest(engine, [str(dumps)], writer, settings, QUIET)
        tables = Snapshots.open(Location(output))
        quarantine = {
            (Path(row["file"]).name, row["line_number"]): (row["reason"], row["line"])
            for row in tables.unchecked("quarantine").to_table().to_pylist()
        }
        routes = tables.unchecked("topic_routes").to_table().to_pylist()
        return result, quarantine, {row["topic"] for row in routes}

    return run


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    folder = tmp_path / "dumps"
    folder.mkdir()
    return folder


def route(topic: str, time: str = "2026-01-05T09:00:00Z", **others: Any) -> str:
    return line("topic_route", topic=topic, snapshot_time=time, collected_at=time, **others)


def write(path: Path, lines: Iterable[str]) -> None:
    data = "".join(f"{each}\n" for each in lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


# ------------------------------------------------------------------ times


def test_dumps_of_two_years_and_logs_that_were_gathered_later_stay_whole(
    ingest: Ingest, dumps: Path
) -> None:
    """The bound is far shorter than the dumps: their middle third says how long they go on."""
    months = [f"{year}-{month:02d}-01T00:00:00Z" for year in (2025, 2026) for month in range(1, 13)]
    lines = [route(time, time) for time in months]
    lines.append(line("client_log", collected_at="2032-01-01T00:00:00Z"))
    write(dumps / "months.jsonl", lines)

    _, quarantine, topics = ingest(dumps, dump_days=31)

    assert quarantine == {}
    assert topics == set(months)


# ------------------------------------------------------------------ lines and archives


@pytest.mark.parametrize("name", ["night.jsonl", "night.jsonl.gz"])
def test_a_line_that_is_too_long_is_left_out_and_those_after_it_keep_their_numbers(
    ingest: Ingest, dumps: Path, name: str
) -> None:
    long = route("LONG") + " " * 5_000
    exact = route("EXACT")
    exact += " " * (2_000 - len(exact))
    write(dumps / name, [route("A"), long, exact, "bad", long, exact + " ", "worse", route("B")])
    write(dumps / "other.jsonl", [route("C")])

    result, quarantine, topics = ingest(dumps, line_bytes=2_000)

    assert topics == {"A", "B", "C", "EXACT"}
    reason = "expected at most 2,000 bytes in a line (bounds.line_bytes), came {}; its beginning "
    assert {number: text for (_, number), (text, _) in quarantine.items()} == {
        2: reason.format(f"{len(long):,}") + "is kept",
        4: "expected one JSON object, came 'bad'",
        5: reason.format(f"{len(long):,}") + "is kept",
        6: reason.format("2,001") + "is kept",
        7: "expected one JSON object, came 'worse'",
    }
    assert quarantine[name, 2][1] == long[:1_000]
    assert (result.lines, result.quarantined) == (9, 5)


def test_of_an_archive_no_more_is_read_than_its_bytes_can_honestly_hold(
    ingest: Ingest, dumps: Path
) -> None:
    """Ten kilobytes of empty lines are three million of them."""
    write(dumps / "bomb.jsonl.gz", [route("A"), *[""] * 300_000, route("NEVER")])
    write(dumps / "night.jsonl.gz", [route("B")])

    result, quarantine, topics = ingest(dumps)

    assert topics == {"A", "B"}
    size = (dumps / "bomb.jsonl.gz").stat().st_size
    # A line counts as 100 bytes at least.
    assert len(quarantine) <= 3 * size + 2
    assert result.quarantined == len(quarantine)
    last = max(quarantine)
    assert quarantine[last][0] == (
        "expected at most 300 times as much text as a .gz has bytes (bounds.archive_expansion), "
        "came more: from this line on nothing was read"
    )

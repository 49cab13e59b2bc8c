"""What is not in the input is said: on the console, in the summary, on the page."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from jobs.cli import main
from jobs.config.bounds import Bounds
from jobs.config.settings import Settings
from jobs.declared.instants import Instant, to_instant
from jobs.dumps.unpacking import SliceLines
from jobs.engines.engine import Slice
from jobs.engines.pieces import all_values
from jobs.fold.kernel import Cutting
from jobs.fold.slice_facts import FACTS, BrokerPolls, Facts
from jobs.schemas import BROKER_POLLS
from jobs.storage import Location, Reports, Snapshots
from jobs.verdict.gaps import gaps_of
from jobs.verdict.silence import OFFSETS, ROUTES, missed_rounds, silences
from tests.support.published import minute

BOUNDS = Bounds()
DATA = Path(__file__).parents[1] / "data" / "captures"


def sentences(output: Path) -> list[str]:
    return [
        str(each.text)
        for each in gaps_of(Reports(Location(output / "reports")).resolve(None).summary)
    ]


def run(dumps: Path, output: Path, *more: str) -> int:
    where = ["--dumps", str(dumps), "--output", str(output), "--engine", "local", "--quiet"]
    return main(["run", *where, "--set=persistence_seconds=60", *more])


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    """The first half of an archive."""
    whole = (DATA / "S2" / "dump.jsonl.gz").read_bytes()
    path = tmp_path / "dumps" / "cut.jsonl.gz"
    path.parent.mkdir()
    path.write_bytes(whole[: len(whole) // 2])
    return path


@pytest.mark.long
def test_an_archive_that_is_cut_short_is_said_everywhere(
    cut: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    assert run(cut.parent, output) == 0
    first, *_ = sentences(output)
    assert first.startswith(f"dump {cut} ends early after ")
    assert " lines: the gzip stream ends early: copy the file again" in first
    assert f"not complete: {first}" in capsys.readouterr().err
    for language, heading in (("en", "Not everything was audited"), ("zh", "并非全部都已审计")):
        page = tmp_path / "page.html"
        report = ["report", "--reports", str(output / "reports"), "--output", str(page), "--quiet"]
        assert main([*report, "--language", language]) == 0
        assert heading in page.read_text()
    assert "行之后提前结束：gzip 数据流提前结束" in page.read_text()
    assert run(cut.parent, output, "--fail-on", "INCOMPLETE") == 1


def test_a_whole_archive_is_complete(tmp_path: Path) -> None:
    whole = DATA.parent / "cases" / "subscription_and_back"
    assert run(whole, tmp_path, "--fail-on", "INCOMPLETE") == 0
    assert sentences(tmp_path) == []


@pytest.mark.parametrize(("size", "what"), [(4, "grew"), (9, "became shorter")])
@pytest.mark.parametrize("stop", [0, 4])
def test_a_file_that_changes_while_it_is_read(
    tmp_path: Path, size: int, what: str, stop: int
) -> None:
    file = tmp_path / "dump.jsonl"
    file.write_text("{}\n{}\n")
    if stop and what != "grew":
        return
    lines = SliceLines(Slice(0, "dump", str(file), size, 0, stop and size), BOUNDS)
    read = [line.text for line in lines]
    assert str(lines.problem) == f"it {what} while it was read"
    assert read[0] == b"{}"


def polls(
    *rows: tuple[int, str, str], address: str | None = None, again: int | None = None
) -> BrokerPolls:
    """Of the groups G and H: the minute, the broker, and what it gave of each (``Y`` or ``-``).
    ``again``: for so many seconds each was asked again in the round.
    """
    outcomes = {"Y": "ANSWERED", "0": "NOT_ONLINE", "-": "NO_ANSWER"}
    table = pa.Table.from_pylist(
        [
            {
                "cluster": "C",
                "snapshot_time": minute(number),
                "broker_name": name,
                "broker_id": 0,
                "consumer_group": group,
                "outcome": outcomes[outcome],
                "connections": int(outcome == "Y"),
                "broker_addr": address,
                "collected_at": minute(number) + timedelta(seconds=again or 0),
                "first_collected_at": None if again is None else minute(number),
            }
            for number, name, given in rows
            for group, outcome in zip("GH", given, strict=True)
        ],
        schema=BROKER_POLLS.schema,
    )
    # Small slices: a round lies in several of them.
    slices = [table.slice(start, 3) for start in range(0, len(table), 3)]
    pieces = [each for rows in slices for each in Cutting(1, 120).pieces(BROKER_POLLS, [rows])]
    return Facts.of(all_values(pieces, FACTS)).polls


def said_of(
    *given: str,
    offsets: Sequence[int] = (),
    offsets_of_b: Sequence[int] = (),
    routes: Sequence[Sequence[int]] = (),
) -> list[str]:
    """Of brokers a, b, ...: what each gave in each minute (``..``: nobody asked). ``offsets``: in
    which minutes broker a gave some, ``routes``: in which each nameserver did.
    """
    rows = [
        (number, broker, each)
        for broker, of_broker in zip("abc", given, strict=False)
        for number, each in enumerate(of_broker.split())
        if each != ".."
    ]
    gave = {
        OFFSETS: {
            ("C", name): {to_instant(minute(each)) for each in of_broker}
            for name, of_broker in (("a", offsets), ("b", offsets_of_b))
            if of_broker
        },
        ROUTES: {
            ("C", f"ns-{number}"): {to_instant(minute(each)) for each in of_one}
            for number, of_one in enumerate(routes)
        },
    }
    every = rounds(*{number for number, _, _ in rows}) if rows else {}
    settings = Settings(persistence_seconds=180, route_max_age_seconds=300)
    found = silences(polls(*rows), every, gave, settings)
    return [str(each.text).replace("2026-11-20 ", "").replace(":00 UTC", "") for each in found]


@pytest.mark.parametrize(
    ("again", "seconds", "is_said"),
    [(None, 180, False), (59, 0, False), (179, 180, False), (180, 180, True), (3_600, 180, True)],
)
def test_a_snapshot_time_that_stays_is_said(again: int | None, seconds: int, is_said: bool) -> None:
    """Two collectors may give their rounds the time of one minute."""
    asked = polls((0, "a", "YY"), (1, "a", "YY"), again=again)
    nothing: dict[str, Any] = {OFFSETS: {}, ROUTES: {}}
    settings = Settings(persistence_seconds=seconds)
    found = [*silences(asked, rounds(0, 1), nothing, settings)]
    words = f"collected_at goes on for {again or 0:,} s"
    assert [words in each.text for each in found] == [True] * is_said


def test_of_a_silent_broker_the_address_that_did_not_answer_is_named() -> None:
    asked = polls((0, "a", "--"), (1, "a", "--"), address="172.17.0.2:10911")
    nothing: dict[str, Any] = {OFFSETS: {}, ROUTES: {}}
    (gap,) = silences(asked, rounds(0, 1), nothing, Settings())
    assert gap.text == "broker a/0 at 172.17.0.2:10911 of cluster C never answered"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("YY YY YY YY YY YY", ""),
        ("-- --", "never answered"),
        # A restart: within the time that a fault has to last nothing can hide.
        ("YY -- -- Y0 YY YY", ""),
        ("YY -Y Y- -- -Y YY", ""),
        ("YY -- -- -- 00 YY", "did not answer in 3 rounds; from 10:01 to 10:04"),
        # Answers that are lost one by one hide nothing.
        ("YY -- YY -- YY -- YY -Y YY", ""),
        # Until the end it is as long as somebody looked.
        ("YY YY YY -- -- --", ""),
        ("-- YY -- -- -- --", "did not answer in 5 rounds; from 10:02 to 10:05"),
        (
            "YY -Y -Y -0 YY YY",
            "did not answer about G in 3 rounds, but about other groups; from 10:01 to 10:04",
        ),
    ],
)
def test_a_broker_that_is_silent_for_as_long_as_what_lasts(given: str, words: str) -> None:
    said = words.replace("; from", "; the longest silence was from")
    expected = [f"broker b/0 of cluster C {said}"] if words else []
    assert said_of("YY YY YY YY YY YY YY", given) == expected


def test_two_rounds_of_two_collectors_are_one_moment() -> None:
    """By hand: each collector asks every 10 minutes, a minute after the other; b misses both."""
    given = ["YY" if number % 10 < 2 else ".." for number in range(80)]
    without = [each if number not in (30, 31) else "--" for number, each in enumerate(given)]
    longer = [each if number not in (30, 31, 40, 41) else "--" for number, each in enumerate(given)]
    assert said_of(" ".join(given), " ".join(without)) == []
    assert len(said_of(" ".join(given), " ".join(longer))) == 1


def test_no_polls_no_silence() -> None:
    assert said_of() == []


LONG = " ".join(["YY"] * 11)
EVERY = [*range(11)]


@pytest.mark.parametrize(
    ("minutes", "since", "until"),
    [
        # By hand: the rounds without offsets are those from 10:06 on, over 240 s.
        (EVERY[:6], "10:06", "10:10"),
        ([*EVERY[:6], 10], "10:06", "10:10"),
        # Over 120 s, in which nothing hides that lasts.
        ([*EVERY[:8], 10], None, None),
        (EVERY[:8], None, None),
        # They are asked for more seldom, or began in the night.
        ([0, 5, 10], None, None),
        (EVERY[5:], None, None),
    ],
)
def test_offsets_that_end_while_brokers_answer(
    minutes: list[int], since: str | None, until: str | None
) -> None:
    said = f"from {since} to {until}: whether its queues were consumed then is not known"
    expected = [f"cluster C: no broker gave offsets {said}"] if since else []
    assert said_of(LONG, offsets=minutes) == expected


@pytest.mark.parametrize(
    ("of_b", "minutes", "is_said"),
    [
        (LONG, EVERY[:6], True),
        # A fault may not hide in 120 s; b is asked for more seldom; it began in the night.
        (LONG, EVERY[:8], False),
        (LONG, [0, 5, 10], False),
        (LONG, EVERY[5:], False),
    ],
)
def test_offsets_of_one_broker_that_end_while_it_answers(
    of_b: str, minutes: list[int], is_said: bool
) -> None:
    said = "broker b of cluster C gave lists and no offsets from 10:06 to 10:10: whether its queues"
    found = said_of(LONG, of_b, offsets=EVERY, offsets_of_b=minutes)
    assert [each.startswith(said) for each in found] == [True] * is_said


def test_a_broker_that_answers_nothing_any_more_is_one_gap() -> None:
    silent = " ".join(["YY"] * 6 + ["--"] * 5)
    (gap,) = said_of(LONG, silent, offsets=EVERY, offsets_of_b=EVERY[:6])
    assert gap.startswith("broker b/0 of cluster C did not answer in 5 rounds")


def test_a_time_in_which_nobody_collected_is_no_time_without_offsets() -> None:
    every = rounds(0, 1, 2, 3, 4, 5, 20, 21, 22)
    given = {OFFSETS: {("C", "a"): set(every["C"])}, ROUTES: {("C", "ns"): set(every["C"])}}
    assert [*silences(BrokerPolls(), every, given, Settings(persistence_seconds=180))] == []


@pytest.mark.parametrize(
    ("routes", "words"),
    [
        ([EVERY, EVERY], []),
        ([EVERY, EVERY[:5]], ["nameserver ns-1 of cluster C gave no route from 10:05 to 10:10"]),
        # Another came in its place.
        ([EVERY, EVERY[:5], EVERY[5:]], []),
        # A route is known for 300 s.
        ([EVERY, EVERY[:6]], []),
    ],
)
def test_a_nameserver_that_gives_no_routes_any_more(
    routes: list[Sequence[int]], words: list[str]
) -> None:
    assert said_of(LONG, routes=routes) == words


def rounds(*minutes: int) -> dict[str, list[Instant]]:
    return {"C": [to_instant(minute(number)) for number in minutes]}


def test_rounds_that_were_missed() -> None:
    found = missed_rounds(rounds(0, 1, 2, 3, 7, 8, 9, 10), 180)
    assert [str(each.text) for each in found] == [
        "cluster C: a round comes every 60 s, and some are missing (3); the longest gap is "
        "from 2026-11-20 10:03:00 UTC to 2026-11-20 10:07:00 UTC",
    ]


@pytest.mark.parametrize(("seconds", "minutes"), [(181, 4), (180, 3)])
def test_a_round_that_comes_late_hides_nothing_that_lasts(seconds: int, minutes: int) -> None:
    later = range(3 + minutes, 12)
    assert [*missed_rounds(rounds(0, 1, 2, 3, *later), seconds)] == []


def test_two_collectors_with_two_schedules_miss_no_round() -> None:
    numbers = [number for each in range(0, 60, 6) for number in (each, each + 1)]
    assert [*missed_rounds(rounds(*numbers), 0)] == []


def lines_of(dump: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.open(dump, "rt", encoding="utf-8")]


def test_a_kind_of_which_most_lines_are_not_understood_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One odd member is none: tests/dumps/test_losses.py."""
    lines = lines_of(DATA / "S2" / "dump.jsonl.gz")
    for line in lines:
        if line["kind"] == "consumer_running_info":
            line["body"] = '{"properties": 7}'
    (tmp_path / "dump.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run(tmp_path / "dump.jsonl", tmp_path / "out") == 3
    assert "most lines of consumer_running_info, see " in capsys.readouterr().err


def test_of_an_archive_of_empty_lines_the_first_are_kept(tmp_path: Path) -> None:
    dump = tmp_path / "dumps" / "dump.jsonl.gz"
    dump.parent.mkdir()
    dump.write_bytes(gzip.compress(b"\n" * 200))
    where = ["--dumps", str(dump), "--snapshots", str(tmp_path / "snapshots"), "--engine=local"]
    bounds = ("quarantined_lines=7", "archive_expansion=100000")
    main(["ingest", *where, "--quiet", *(f"--set=bounds.{each}" for each in bounds)])
    snapshots = Snapshots.open(Location(tmp_path / "snapshots"))
    rows = snapshots.unchecked("quarantine").to_table().to_pylist()
    assert len(rows) == 8
    assert rows[-1]["reason"].startswith("193 more lines of this file, up to this one, were not")
    assert snapshots.ingested is not None
    assert snapshots.ingested["quarantined"] == 200

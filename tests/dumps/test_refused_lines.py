"""Most of what somebody sent was refused: its name is said, once, by the widest name."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobs.config.settings import Settings
from jobs.dumps import reading
from jobs.dumps.counts import ERRORS
from jobs.dumps.statement import KINDS, LEFT_OUT
from jobs.dumps.typed import LINES
from jobs.engines import files
from jobs.engines.local import LocalEngine
from jobs.pipeline.ingest import read_dumps

DATA = Path(__file__).parents[1] / "data"
Line = dict[str, Any]
SETTINGS = Settings.model_validate({"allowed_quarantine_share": 1.0})


def lines_of(capture: str, cluster: str) -> list[Line]:
    with gzip.open(DATA / "captures" / capture / "dump.jsonl.gz", "rt") as file:
        return [json.loads(line) | {"cluster": cluster} for line in file]


A, B = lines_of("S5", "A"), lines_of("S1", "B")


def without_zone(line: Line) -> Line:
    times = {
        name: line[name].rstrip("Z") for name in ("collected_at", "snapshot_time") if name in line
    }
    return line | times


def without_body(line: Line) -> Line:
    return line | {"body": "{}x"} if "body" in line else line


def gaps(folder: Path, **dumps: list[Line]) -> list[str]:
    """The gaps of some dumps, up to the first reason."""
    folder.mkdir(exist_ok=True)
    for name, lines in dumps.items():
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"{name}.jsonl").write_text(text)
    with LocalEngine() as engine:
        read = read_dumps(engine, engine.list_files([str(folder)]), SETTINGS)
        found = [(each.kind, str(each.text)) for each in read.incomplete(SETTINGS)]
    assert {kind for kind, _ in found} <= {"LINES_REFUSED", "ANSWERS_FAILED"}
    return [text.replace(f"{folder}/", "").partition(" not understood")[0] for _, text in found]


def spoiled(lines: list[Line], which: Callable[[Line], Any], how: Any = without_zone) -> list[Line]:
    return [how(line) if which(line) else line for line in lines]


def number(lines: list[Line], which: Callable[[Line], Any]) -> int:
    return sum(bool(which(line)) for line in lines)


CLIENT = next(line["client_id"] for line in A if line["kind"] == "consumer_running_info")
PARTS: dict[str, tuple[Callable[[Line], Any], str]] = {
    "a kind": (lambda it: it["kind"] == "consume_stats", "consume_stats of cluster A"),
    "a broker": (lambda it: it.get("broker_name") == "broker-b", "broker broker-b/0 of cluster A"),
    "a nameserver, the only one of its kind": (
        lambda it: "namesrv_addr" in it,
        "topic_route of cluster A",
    ),
    "a client": (lambda it: it.get("client_id") == CLIENT, f"client {CLIENT} of cluster A"),
    "a group": (
        lambda it: "consumer_group" in it,
        "group G_S5 of cluster A",
    ),
    "offsets from a broker": (
        lambda it: it["kind"] == "consume_stats" and it["broker_name"] == "broker-b",
        "consume_stats of broker broker-b/0 of cluster A",
    ),
}


@pytest.mark.parametrize("ranges", [False, True])
def test_a_small_cluster_of_which_all_was_refused_is_said_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ranges: bool
) -> None:
    """Not its brokers, groups and files; and all the same however the files are cut."""
    if ranges:
        monkeypatch.setattr(files, "MOST_BYTES", 1_000)
        monkeypatch.setattr(files, "_BYTES_OF_A_RANGE", 9_997)
    small = [without_zone(line) for line in B[:119]]
    assert gaps(tmp_path / "dumps", a=A, b=small) == ["cluster B: 119 of 119 lines were"]


@pytest.mark.parametrize(("which", "name"), PARTS.values(), ids=PARTS)
def test_the_widest_part_of_which_most_was_refused_is_said_once(
    tmp_path: Path, which: Callable[[Line], Any], name: str
) -> None:
    lines = number(A, which)
    said = gaps(tmp_path / "dumps", a=spoiled(A, which), b=B)
    assert said == [f"{name}: {lines} of {lines} lines were"]


@pytest.mark.parametrize(("which", "name"), PARTS.values(), ids=PARTS)
def test_a_part_of_which_most_was_understood_is_not_said(
    tmp_path: Path, which: Callable[[Line], Any], name: str
) -> None:
    """Of every second line: of each sender at most half is refused."""
    seen: dict[tuple[Any, ...], int] = {}

    def every_third(it: Line) -> bool:
        if not which(it):
            return False
        names = ("kind", "broker_name", "namesrv_addr", "client_id", "consumer_group", "topic")
        key = tuple(it.get(field) for field in names)
        seen[key] = seen.get(key, 0) + 1
        return seen[key] % 3 == 0

    dump = spoiled(A, every_third)
    assert dump != A
    assert gaps(tmp_path / "dumps", a=dump, b=B) == [], name


def test_a_file_is_said_where_no_sender_is(tmp_path: Path) -> None:
    """An hour of a day: of all who sent it most was understood in other hours."""
    hour = [without_zone(line) for line in A if line["kind"] != "consumer_running_info"]
    said = gaps(tmp_path / "dumps", a=A, b=A, hour=hour)
    assert said == [f"dump hour.jsonl: {len(hour)} of {len(hour)} lines were"]


def test_lists_that_were_refused_are_told_by_their_polls_alone(tmp_path: Path) -> None:
    which = PARTS["a kind"][0]
    assert gaps(tmp_path / "stats", a=spoiled(A, which, without_body)) != []
    lists = spoiled(A, lambda it: it["kind"] == "consumer_connection", without_body)
    assert gaps(tmp_path / "lists", a=lists) == []


def test_of_more_senders_than_are_told_apart_nobody_is_blamed_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.dumps.statements.MOST_SENDERS", 3)
    monkeypatch.setattr(reading, "MOST_REFUSED", 2)
    last = len(A) - 1
    few = [without_zone(line) if number == last else line for number, line in enumerate(A)]
    assert gaps(tmp_path / "few", a=few) == []
    every = [without_zone(line) for line in B]
    assert gaps(tmp_path / "all", b=every) == [f"dump b.jsonl: {len(B)} of {len(B)} lines were"]


@pytest.mark.parametrize("kind", LINES)
def test_no_kind_of_line_is_refused_without_a_word(tmp_path: Path, kind: str) -> None:
    refused = without_zone(B[0] | {"kind": kind, "cluster": "C"})
    (said,) = gaps(tmp_path / "dumps", a=[*A, refused])
    assert said == "cluster C: 1 of 1 lines was"


def with_error(line: Line, code: int) -> Line:
    without = {name: value for name, value in line.items() if name != "body"}
    return without | {"error_code": code, "error_message": "No permission"}


def lines_of_names(code: int | None, kind: str, rounds: int = 3) -> list[Line]:
    """Answers of a server, of which the last one is no error where ``code`` is None."""
    server = (
        {"namesrv_addr": "ns:9876"}
        if kind == "cluster_info"
        else {"broker_name": "broker-a", "broker_id": 0, "consumer_group": "G_S5"}
    )
    times = sorted({line["snapshot_time"] for line in A if "snapshot_time" in line})[:rounds]
    line = {"cluster": "A", "kind": kind, **server}
    answers = [{**line, "snapshot_time": time, "collected_at": time} for time in times]
    found = [with_error(answer, 16 if code is None else code) for answer in answers]
    if code is None:
        found[-1] = answers[-1] | {"body": '{"brokerAddrTable":{},"topicList":[]}'}
    return found


@pytest.mark.parametrize("kind", sorted(ERRORS))
def test_errors_alone_are_said_of_each_kind_that_no_other_rule_knows(
    tmp_path: Path, kind: str
) -> None:
    dump = [line for line in A if line["kind"] != kind]
    server = "nameserver ns:9876" if kind == "cluster_info" else "broker broker-a/0"
    failed = gaps(tmp_path / "failed", a=[*dump, *lines_of_names(16, kind)])
    assert [each.partition(";")[0] for each in failed] == [
        f"{kind} of {server} of cluster A: 3 answers, and none but errors: error 16: No permission"
    ]
    # A request that this version does not have; and a server that nobody reached.
    assert gaps(tmp_path / "old", a=[*dump, *lines_of_names(3, kind)]) == []
    if kind != "cluster_info":
        assert gaps(tmp_path / "away", a=[*dump, *lines_of_names(-2, kind)]) == []
    if kind in ("cluster_info", "consumer_topics"):
        assert gaps(tmp_path / "once", a=[*dump, *lines_of_names(None, kind)]) == []


def test_a_broker_that_refuses_all_is_silent_and_that_is_said_already(tmp_path: Path) -> None:
    def refuse(line: Line) -> Line:
        is_answer = line.get("broker_name") == "broker-a" and line["kind"] != "heartbeat"
        return with_error(line, 16) if is_answer else line

    refused = [refuse(line) for line in A]
    assert gaps(tmp_path / "dumps", a=refused) == []


def test_each_kind_of_line_ends_in_a_rule_or_in_a_gap() -> None:
    """What makes no statement of a group or topic is reported where it went wrong."""
    assert set(LINES) == {*KINDS, *ERRORS, LEFT_OUT}

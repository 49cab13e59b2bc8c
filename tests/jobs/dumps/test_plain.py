"""The reader without Spark: it understands the lines that the one with Spark understands."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.dumps.lines import read_lines
from jobs.dumps.plain import find_dump_files, read_dumps
from jobs.dumps.records import read_records
from jobs.errors import InputError
from tests.support.snapshots import (
    GROUP,
    heartbeat_line,
    log_line,
    poll_line,
    route_line,
    running_info_line,
    stats_line,
)


def changed(line: str, **values: object) -> str:
    return json.dumps(json.loads(line) | values)


POLL = poll_line("a")
ROUTE = route_line({"brokerDatas": [], "queueDatas": []})
QUEUE = {"brokerName": "b", "perm": 6, "readQueueNums": 4, "writeQueueNums": 4}
#: Each concerns the group (a plain reader does not look into the others), or is a route.
LINES = [
    POLL,
    ROUTE,
    heartbeat_line("a", "T"),
    heartbeat_line("a", without_sub=True),
    running_info_line("a", "T"),
    log_line("a", "AVG"),
    stats_line({0: (1, 1)}),
    "\ufeff" + POLL,
    POLL + " ",
    POLL + POLL,
    POLL[:-1],
    f"[{POLL}]",
    "",
    " ",
    "null",
    '"text"',
    changed(POLL, kind="poll"),
    changed(POLL, kind=None),
    changed(POLL, cluster=""),
    changed(POLL, cluster=["C"]),
    changed(POLL, kind=["consumer_connection"]),
    POLL[:-1] + ',"x":' + "[" * 2000 + "]" * 2000 + "}",
    changed(POLL, collected_at="2026-01-05T00:00:00"),
    changed(POLL, collected_at="2026-01-05T00:00:00+08:00"),
    changed(POLL, collected_at="2026-01-05T00:00:00.123456789Z"),
    changed(POLL, collected_at="2026-13-05T00:00:00Z"),
    changed(POLL, snapshot_time=None),
    changed(POLL, broker_id="0"),
    changed(POLL, broker_id="first"),
    changed(POLL, broker_id=1.5),
    changed(POLL, body=None),
    changed(POLL, body=""),
    changed(POLL, body="{"),
    changed(POLL, body="[]"),
    changed(POLL, body={"connectionSet": []}),
    changed(POLL, body={"connection": 1}),
    changed(POLL, body=[1]),
    changed(POLL, body="{}"),
    changed(POLL, body='{"connectionSet":[{"clientId":"a"}]}'),
    changed(POLL, body='{"connectionSet":[{"clientAddr":"x"}]}'),
    changed(POLL, body='{"connectionSet":[]}'),
    changed(POLL, body='{"status":0,"data":{"connectionSet":[]},"errMsg":null}'),
    changed(POLL, body='{"status":-1,"data":null,"errMsg":"CODE: 206  DESC: not online"}'),
    changed(POLL, body='{"connectionSet":[{"clientId":"a","clientAddr":"x"}],"f":{0:1}}'),
    changed(POLL, body='{"a":{"$ref":"$.nothing"},"connectionSet":[]}'),
    changed(POLL, body=None, error_code=206, error_message="not online"),
    changed(POLL, body=None, error_code="206"),
    changed(POLL, body=None, error_code=0),
    changed(POLL, body=None, error_code="many"),
    changed(POLL, error_code=0),
    changed(heartbeat_line("a", "T"), body=None, error_code=1),
    changed(heartbeat_line("a", "T"), body='{"clientID":"","consumerDataSet":[{"groupName":"G"}]}'),
    changed(heartbeat_line("a", "T"), body='{"clientID":"G","consumerDataSet":[{"groupName":""}]}'),
    changed(heartbeat_line("a", "T"), body='{"clientID":"G"}'),
    changed(
        heartbeat_line("a", "T"),
        body='{"clientID":"a","consumerDataSet":[{"groupName":"G"},{"groupName":""}]}',
    ),
    changed(ROUTE, broker_id="first"),
    changed(ROUTE, body='{"queueDatas":[],"brokerDatas":[{"brokerName":""}]}'),
    changed(ROUTE, body='{"queueDatas":[{"brokerName":"b","perm":6,"readQueueNums":4}]}'),
    changed(ROUTE, body='{"queueDatas":[{"brokerName":"b","perm":6,"writeQueueNums":4}]}'),
    changed(ROUTE, body='{"brokerDatas":[]}'),
    changed(ROUTE, body="{}"),
    *[
        changed(ROUTE, body=json.dumps({"queueDatas": [QUEUE | {key: value}]}))
        for key, value in [
            ("brokerName", ""),
            ("perm", None),
            ("readQueueNums", -1),
            ("writeQueueNums", 100_001),
            ("readQueueNums", None),
            ("readQueueNums", 100_000),
            ("readQueueNums", 0),
            ("writeQueueNums", 100_000),
            ("writeQueueNums", 0),
        ]
    ],
    changed(ROUTE, body=None, error_code=17),
    changed(running_info_line("a"), body="{}"),
    changed(running_info_line("a"), body='{"mqTable":{{"no":"queue"}:{}}}'),
    changed(running_info_line("a"), body='{"mqTable":{}}'),
    changed(running_info_line("a"), body='{"properties":{}}'),
    changed(running_info_line("a"), client_id=""),
    changed(stats_line({}), body="{}"),
    changed(log_line("a", "AVG"), body="rebalanced result changed. group=G"),
    changed(log_line("a", "AVG"), body="another line of G"),
    changed(log_line("a", "AVG"), body={"G": 1}),
]  # fmt: skip


@pytest.mark.spark
def test_a_line_is_refused_by_both_readers_or_by_none(spark: SparkSession, tmp_path: Path) -> None:
    files = []
    for number, line in enumerate(LINES):
        files.append(tmp_path / f"{number:03d}.jsonl")
        files[-1].write_text(line + "\n", encoding="utf-8")
    read = read_records(read_lines(spark, [str(file) for file in files]))
    reasons = {
        Path(row["file"]).name: row["reason"] for row in read.select("file", "reason").collect()
    }
    assert len(reasons) == len(LINES)
    differing = []
    for file, line in zip(files, LINES, strict=True):
        dumps = read_dumps([str(file)], GROUP)
        assert dumps.refused + len(dumps.records) == 1, line
        if bool(dumps.refused) != (reasons[file.name] is not None):
            differing.append((line, reasons[file.name]))
    assert differing == []


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        (changed(POLL, error_code=0), None, None),
        (changed(POLL, body=None, error_code=206, error_message="why"), 206, "why"),
        (changed(POLL, body='{"status":-1,"errMsg":"why"}'), -1, "why"),
        (changed(POLL, body='{"status":-1,"errMsg":"x"}', error_code=206), 206, "x"),
        (changed(POLL, body='{"status":1}', error_message="why"), -1, "why"),
    ],
)
def test_an_error_is_that_of_the_envelope_else_that_of_the_dashboard(
    tmp_path: Path, line: str, code: int | None, message: str | None
) -> None:
    dump = tmp_path / "dump.jsonl"
    dump.write_text(line)
    (record,) = read_dumps([str(dump)], GROUP).records
    assert (record.code, record.message) == (code, message)
    assert bool(record.body) == (code is None)


def test_what_the_dashboard_wrapped_is_bare(tmp_path: Path) -> None:
    wrapped = {
        "status": 0,
        "data": {"connectionSet": [], "consumeType": "x"},
        "connectionSet": None,
    }
    dump = tmp_path / "dump.jsonl"
    dump.write_text(changed(POLL, body=json.dumps(wrapped)))
    (record,) = read_dumps([str(dump)], GROUP).records
    assert (record.body["connectionSet"], record.body["consumeType"]) == ([], "x")


def test_a_group_is_found_however_its_name_is_written(tmp_path: Path) -> None:
    dump = tmp_path / "dump.jsonl"
    beat = '{"clientID":"a","consumerDataSet":[{"groupName":"%s"}]}'
    lines = [changed(heartbeat_line("a", "T"), body=beat % name) for name in ("\\u0047", "H")]
    lines += [log_line("a", "AVG"), changed(log_line("a", "AVG"), body="of H")]
    dump.write_text("".join(f"{line}\n" for line in lines))
    dumps = read_dumps([str(dump)], GROUP)
    assert [record.kind for record in dumps.records] == ["heartbeat", "client_log"]
    assert dumps.refused == 0


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    dump = tmp_path / "dump.jsonl"
    dump.write_bytes(POLL.encode().replace(b"DefaultCluster", b"\xff") + b"\n" + POLL.encode())
    dumps = read_dumps([str(dump)], GROUP)
    assert (dumps.refused, len(dumps.records)) == (1, 1)


def test_other_groups_are_named_and_not_read(tmp_path: Path) -> None:
    dump = tmp_path / "dump.jsonl"
    dump.write_text(f"{poll_line('a', consumer_group='G2')}\n{POLL}\n{ROUTE}\n")
    dumps = read_dumps([str(dump)], GROUP)
    assert dumps.groups == {"G", "G2"}
    assert dumps.topics == {"T"}
    assert [record.envelope.get("consumer_group") for record in dumps.records] == ["G", None]


def test_files_folders_and_globs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "day").mkdir()
    with gzip.open(tmp_path / "day" / "a.jsonl.gz", "wt") as stream:
        stream.write(POLL + "\n")
    (tmp_path / "day" / "b.jsonl").write_text(POLL)
    (tmp_path / "day" / "_SUCCESS").write_text("no dump")
    (tmp_path / "day" / ".hidden").write_text("no dump")
    for named in ("day", "day/*", "d*"):
        found = find_dump_files([str(tmp_path / named)])
        assert sorted(file.name for file in found) == ["a.jsonl.gz", "b.jsonl"], named
    assert len(read_dumps([str(tmp_path)], GROUP).records) == 2
    monkeypatch.chdir(tmp_path / "day")
    assert len(find_dump_files([".."])) == 2
    with pytest.raises(InputError, match="no dump at"):
        find_dump_files([str(tmp_path / "night")])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no dump file below"):
        read_dumps([str(tmp_path / "empty")], GROUP)


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-12], lambda b: b[:20] + b"x" * 20, lambda b: b[1:]]
)
def test_an_archive_that_cannot_be_read_is_an_error_that_names_it(
    damage: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    dump = tmp_path / "dump.jsonl.gz"
    dump.write_bytes(damage(gzip.compress((POLL + "\n").encode() * 9)))
    with pytest.raises(InputError, match=r"dump\.jsonl\.gz"):
        read_dumps([str(dump)], GROUP)

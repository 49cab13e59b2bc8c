"""Names that strangers chose, in all that is printed, written and posted: they are text, no more.

A terminal obeys control characters, direction marks turn a line around, a line feed makes a line of
its own, a spreadsheet runs formulas, a page runs scripts. Each name here names a group, its
topic, its client, its broker, the cluster and the file of the dump, one after the other.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.cli import main
from jobs.schemas import REPORT_TABLES
from tests.support import bodies
from tests.support.html import Page

pytestmark = pytest.mark.e2e

#: No line of any output may begin with it: a name would have made the line.
FORGED = "FORGED: all is well"
NAMES = {
    "escape": "a\x1b[2J\x1b]0;owned\x07b",
    "control": "a\x08\x0b\x0c\x7f\x9b31mb",
    "lines": f"a\r\n{FORGED}\n{FORGED}",
    "separators": f"a\u2028{FORGED}\u2029{FORGED}\x85{FORGED}",
    "direction": "a\u202eb\u2066c\u200fd",
    "unseen": "a\u200bb\ufeffc\u00add\U000e0041",
    "private": "a\ue000b",
    "half": "a\ud83db",
    "chinese": "订单•组",
    "emoji": "a😀👩‍👩‍👧",
    "html": """"'><script>alert(1)</script><img src=x onerror=alert(1)>""",
    "attribute": "x' onmouseover='alert(1)' \" onfocus=\"alert(1)",
    "markdown": "[a](http://evil.example) ![i](//evil.example/i.png) `` ` ``",
    "table": "a | b |\\| c",
    "entity": "&lt;b&gt; &#60; <!-- -->",
    "mention": "@channel <!here> <@U1> @all",
    "bold": "*b* _i_ ~s~ **c** # h",
    "formula": "=cmd|'/C calc'!A0",
    "indented": "  =1+1",
    "wide": "\uff1d1+1",
    "semicolon": "a;=1+1",
    "template": "{{7*7}}{% raw %}%s{0}$(id)`id`",
    "quotes": "\"'\\",
    "long": "x" * 300,
}
GROUPS = {key: f"G_{name}" if key == "long" else name for key, name in NAMES.items()}
ROUNDS = 9


def line(kind: str, minute: int, body: object, **keys: object) -> str:
    time = f"2026-11-20T10:{minute:02}:00.000Z"
    envelope = {"kind": kind, "cluster": "C", "snapshot_time": time, "collected_at": time}
    text = body if isinstance(body, str) else json.dumps(body)
    return json.dumps(envelope | keys | {"body": text})


def lines_of(name: str) -> Iterator[str]:
    """Two processes with one client id: their queues are consumed twice, others by nobody."""
    route = bodies.route({name: {0: "10.0.0.1:10911"}}, 8)
    for minute in range(ROUNDS):
        yield line("topic_route", minute, route, namesrv_addr=name, topic=name, cluster=name)
        ids = enumerate([name, name, "10.0.0.9@9"])
        listed = [(each, f"10.9.0.{number}:5000") for number, each in ids]
        members = bodies.members(listed, bodies.subscriptions([name], name))
        broker = {"broker_name": name, "broker_id": 0, "broker_addr": "10.0.0.1:10911"}
        yield line(
            "consumer_connection", minute, members, consumer_group=name, cluster=name, **broker
        )
    yield json.dumps({"kind": name, "cluster": name})
    yield name.encode("utf-8", "replace").decode()


def file_name(name: str) -> str:
    """The name as one of a file: without slashes, of at most 200 bytes, no half characters."""
    plain = name.replace("/", "∕").encode("utf-8", "replace").decode()
    return f"d {plain[:60]}.jsonl"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where one run of all names was published."""
    folder = tmp_path_factory.mktemp("names")
    dumps = folder / "dumps"
    dumps.mkdir()
    for key, name in NAMES.items():
        (dumps / file_name(name)).write_text("\n".join(lines_of(GROUPS[key])), newline="")
    command = ["run", "--dumps", str(dumps), "--output", str(folder / "out"), "--engine", "local"]
    assert main([*command, "--set", "allowed_quarantine_share=1"]) == 0
    return folder


@pytest.fixture
def reports(folder: Path) -> list[str]:
    return ["--reports", str(folder / "out" / "reports")]


def check_inert(text: str) -> None:
    """Nothing that commands a terminal or cannot be seen, and no line that a name made."""
    for number, each in enumerate(text.split("\n"), 1):
        unseen = [
            c for c in each if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
        ]
        assert not unseen, f"line {number}: {unseen!r} in {each!r}"
        assert not each.lstrip(" \"'|>-").startswith(FORGED), f"line {number}: {each!r}"


class Terminal(io.TextIOWrapper):
    """A standard output that says that it is a terminal."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), "utf-8", newline="\n")

    def isatty(self) -> bool:
        return True

    def printed(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode(self.encoding)  # type: ignore[attr-defined]


TABLES = [*(table.name for table in REPORT_TABLES), "quarantine"]
#: What the audit itself paints: a severity, and the names of columns.
PAINTED = re.compile(r"\x1b\[[0-9;]+m([A-Za-z_]+) *\x1b\[0m")


@pytest.mark.parametrize(
    ("form", "options", "columns"),
    [
        ("table", [], 30),
        ("table", ["--wide"], 100),
        ("table", [], 20_000),
        ("json", [], 80),
        ("csv", [], 80),
    ],
    ids=str,
)
def test_tables_on_a_terminal(
    reports: list[str], monkeypatch: pytest.MonkeyPatch, form: str, options: list[str], columns: int
) -> None:
    for name, value in (("TERM", "xterm"), ("COLUMNS", str(columns)), ("PAGER", "cat")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    # Not in a fixture: pytest puts its own standard output there when the test begins.
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    for table in TABLES:
        assert main(["show", table, "--format", form, *options, *reports]) == 0
    assert main(["show", "summary", *reports]) == 0
    printed = terminal.printed()
    assert r"\u202e" in printed
    assert (PAINTED.search(printed) is not None) == (form == "table" and not options)
    # The rest of a folded cell is indented, as no line of the audit's is.
    check_inert(re.sub("(?m)^  +", "(folded) ", PAINTED.sub(r"\1", printed)))


def test_all_names_are_in_the_tables_exactly(
    reports: list[str], capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    # As in a pipe whose reader's locale is another: data is UTF-8.
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(sys.stdout.buffer, "ascii"))
    kept = {name for name in GROUPS.values() if name != GROUPS["half"]}
    assert main(["show", "group_health", "--format", "json", *reports]) == 0
    rows = [json.loads(each) for each in capfdbinary.readouterr().out.decode().splitlines()]
    assert kept <= {row["consumer_group"] for row in rows}
    assert main(["show", "group_health", "--format", "csv", *reports]) == 0
    out = capfdbinary.readouterr().out.decode()
    groups = {row["consumer_group"] for row in csv.DictReader(io.StringIO(out, newline=""))}
    assert {name.replace("'", "") for name in kept} <= {name.replace("'", "") for name in groups}
    for group in groups:
        for part in re.split(r"[;\t\r\n]", group):
            assert not part.strip().startswith(("=", "+", "-", "@", "\uff1d")), group


@pytest.mark.parametrize("form", ["html", "markdown"])
def test_the_report(
    reports: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    output = tmp_path / f"re[p]ort\n{FORGED}"
    assert main(["report", "--format", form, "--output", str(output), "--top", "99", *reports]) == 0
    check_inert(capsys.readouterr().out)
    text = output.read_text()
    check_inert(text)
    {"html": check_html, "markdown": check_markdown}[form](text)


def check_html(text: str) -> None:
    page = Page(text)
    assert page.elements
    # The page has one script, which no name can change: the policy has its hash.
    (script,) = re.findall("<script>(.*?)</script>", text, re.DOTALL)
    own = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{own}'" in text
    assert [tag for tag, _ in page.elements].count("script") == 1
    for tag, attributes in page.elements:
        assert tag not in {"img", "iframe", "object"}
        assert not [each for each in attributes if each.startswith("on")]
        # A link within the page may have any name in it.
        assert not re.match("(?!#).*evil.example", str(attributes.get("href")))


def check_markdown(text: str) -> None:
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    assert not re.search(r"<\w|(?<!\\)\]\((?!http://pages)|!\[", outside.replace("\\[", ""))
    assert not re.search(r"(?<![\w\\])@(channel|all|here)", outside)
    for row in (each for each in text.splitlines() if each.startswith("| ")):
        assert len(re.findall(r"(?<!\\)\|", row)) == 8, row


@pytest.mark.parametrize("key", NAMES)
def test_explain_and_what_if(folder: Path, capsys: pytest.CaptureFixture[str], key: str) -> None:
    name = GROUPS[key]
    if key == "half":
        pytest.skip("no argument of a command can have it")
    question = ["--snapshots", str(folder / "out" / "snapshots"), "--group", name]
    assert main(["explain", *question, "--topic", name]) == 0
    check_inert(capsys.readouterr().out)
    # The lines are made as those of explain: every third name shows it, and each is in the JSON.
    for form in ("table", "json")[[*NAMES].index(key) % 3 != 0 :]:
        assert main(["what-if", *question, f"--leave={name}", "--format", form]) in (0, 1)
        out = capsys.readouterr().out
        check_inert(out)
    assert name in json.dumps(json.loads(out), ensure_ascii=False) or json.dumps(name)[1:-1] in out


@pytest.mark.parametrize("key", NAMES)
def test_errors(
    folder: Path, reports: list[str], capsys: pytest.CaptureFixture[str], key: str
) -> None:
    name = NAMES[key]
    snapshots = ["--snapshots", str(folder / "out" / "snapshots")]
    commands = [
        ["explain", *snapshots, f"--group={name}x", "--topic=T"],
        ["explain", *snapshots, f"--group={GROUPS[key]}", f"--topic={name}x"],
        ["explain", *snapshots, f"--group={GROUPS[key]}", f"--topic={name}", f"--cluster={name}x"],
        ["explain", *snapshots, f"--group={GROUPS[key]}", "--topic=T", f"--at={name}"],
        ["what-if", *snapshots, f"--group={GROUPS[key]}", f"--leave={name}x"],
        ["what-if", *snapshots, "--group=G", f"--queues={name}"],
        ["show", f"{name}x", *reports],
        ["show", "group_health", f"--columns={name}", *reports],
        ["show", "group_health", f"--date={name}", *reports],
        ["show", "group_health", "--reports", f"{folder}/{file_name(name)}"],
        ["report", f"--format={name}", *reports],
        ["report", f"--top={name}", *reports],
        ["run", "--dumps", f"{folder}/{file_name(name)}", "--output", f"{folder}/x"],
        ["audit", "--snapshots", f"{folder}/{file_name(name)}", "--reports", f"{folder}/x"],
        ["audit", *snapshots, *reports, f"--since={name}"],
        ["audit", *snapshots, *reports, f"--set={name}=1"],
        ["audit", *snapshots, *reports, f"--set=sdk={name}"],
        ["audit", *snapshots, *reports, "--settings", f"{folder}/{file_name(name)}"],
        ["audit", *snapshots, *reports, "--known-issues", f"{folder}/{file_name(name)}"],
        ["collect", f"--namesrv={name}", "--dumps", f"{folder}/x"],
        ["collect", "--config", f"{folder}/{file_name(name)}"],
        [name],
    ]
    # All names go the same way out: each command gets every third one.
    for command in commands[[*NAMES].index(key) % 3 :: 3]:
        assert main(command) in (2, 3, 4), command
        captured = capsys.readouterr()
        check_inert(captured.out + captured.err)
        assert "Traceback" not in captured.err, command
        assert "defect" not in captured.err, command


def test_the_dry_run_the_alert_and_the_metrics(
    folder: Path, reports: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    dumps = ["run", "--dumps", str(folder / "dumps"), "--output", str(folder / "out")]
    assert main([*dumps, "--dry-run"]) == 0
    check_inert(capsys.readouterr().out)
    metrics = tmp_path / f"{file_name(NAMES['escape'])}.prom"
    assert main(["alert", *reports]) == 0
    out = capsys.readouterr()
    check_inert(out.out + out.err)
    assert main(["alert", *reports, "--metrics", str(metrics)]) == 0
    out = capsys.readouterr()
    check_inert(out.out + out.err)
    check_inert(metrics.read_text())


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_knows_few_characters(
    folder: Path, reports: list[str], monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding, newline="\n")
    monkeypatch.setattr(sys, "stdout", stream)
    question = ["--snapshots", str(folder / "out" / "snapshots"), "--group", NAMES["chinese"]]
    assert main(["explain", *question, "--topic", NAMES["chinese"]]) == 0
    assert main(["alert", *reports]) == 0
    assert main(["show", "group_health", *reports]) == 0
    stream.flush()
    text = stream.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]
    check_inert(text)
    assert NAMES["chinese"].encode(encoding, "backslashreplace").decode(encoding) in text

"""What the command line takes, told before it starts a session, and how it ends."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import NoReturn

import pytest

import jobs
from jobs import __main__ as console
from jobs.cli import main
from jobs.commands.batch import expired_known_issues, is_closed
from jobs.commands.engine_choice import Choice
from jobs.declared.kinds import QUEUE_FINDINGS
from jobs.errors import QuarantineError
from jobs.pipeline.ingest import IngestCounts
from jobs.publish.run import Task
from jobs.storage import PublishedRun
from tests.support.published import RowTables

NEXT = "expected --snapshots"
TO_R = ["--snapshots", "s", "--reports", "r"]
OF_GT = ["--group", "g", "--topic", "t"]
BOTH = "expected --date or --since/--until, came both"


@pytest.mark.parametrize("options", [[], ["--dry-run"]], ids=str)
def test_known_issues_that_are_wrong_are_told_before_a_session_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    known = tmp_path / "known.toml"
    known.write_text('[[known_issues]]\ngroups = "G"\n')
    places = ["--snapshots", "s", "--reports", "r"]
    assert main(["audit", *places, "--known-issues", str(known), *options]) == 2
    said = capsys.readouterr().err
    assert "known_issues.0.reason: expected a value, there is none" in said
    assert "known_issues.0.expires: expected a value, there is none" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--date", "2026-11-20"], NEXT),
        (["--since", "2026-11-20T10:00:00Z", "--until", "2026-11-20T11:00:00Z"], NEXT),
        (["--since", "last"], NEXT),
        (["--since", "last", "--until", "2026-11-20T11:00:00Z"], NEXT),
        (["--date", "2026-11-20", "--since", "last"], NEXT),
        (["--date", "2026-11-20", "--since", "2026-11-20T10:00:00Z"], BOTH),
        (["--date", "2026-11-20", "--until", "2026-11-20T10:00:00Z"], BOTH),
        (["--date", "2026-11-20", "--since", "last", "--until", "2026-11-20T10:00Z"], BOTH),
        (["--since", "LAST"], "--since: expected a time as ISO 8601, or last, came 'LAST'"),
        (["--until", "last"], "--until: expected a time as ISO 8601, came 'last'"),
        (["--since", "2026-11-20", "--until", "2026-11-20"], "expected --since before --until"),
        # A time without a zone is UTC.
        (["--since", "2026-11-20T10:00", "--until", "2026-11-20T10:00Z"], "expected --since befo"),
        (["--since", "2026-11-20T10:00:00+08:00", "--until", "2026-11-20T03:00"], NEXT),
        (["--since", "2026-11-20T10:00:00Z"], NEXT),
    ],
)
def test_a_date_or_times_or_where_the_last_run_ended(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["audit", "--date", "../../x", "--snapshots", "s", "--reports", "r"], 2, "--date: expec"),
        (["audit", "--date", "2026-02-30", "--snapshots", "s", "--reports", "r"], 2, "--date: exp"),
        # One form of a date, wherever one is asked for.
        (["audit", "--date", "20261120", *TO_R], 2, "--date: expected a date as YYYY-MM-DD"),
        (["show", "summary", "--date", "yesterday"], 2, "expected a date as YYYY-MM-DD, came 'yes"),
        (["report", "--nights", "3", "--date", "2026-11-20\n"], 2, r"came '2026-11-20\n'"),
        (["report", "--nights", "0"], 2, "expected a number of nights, 1 to 999, came '0'"),
        # What has several files does not go to standard output, nor into a folder of that name.
        (["run", "--dumps", "d", "--output", "-"], 2, "--output: expected a folder, came '-'"),
        (["ingest", "--snapshots", "-"], 2, "--snapshots: expected a folder, came '-'"),
        (["audit", "--snapshots", "s", "--reports", "-"], 2, "--reports: expected a folder"),
        (["report", "--nights", "3", "--output", "-"], 2, "expected a folder and --format html"),
        (["live", "--output", "-"], 2, "--output: expected a folder"),
        (["collect", "--dumps", "-"], 2, "--dumps: expected a folder"),
        (["completion", "tcsh"], 2, "invalid choice"),
        (["audit", "--reports", "r"], 2, "expected --snapshots"),
        (["ingest", "--snapshots", "s"], 2, "expected --dumps"),
        (["run", "--dumps", "d"], 2, "--output"),
        (["audit", "--settings", "nowhere.toml"], 2, "nowhere.toml"),
        (["show", "orphaned_queues"], 2, "expected --reports"),
        (["report", "--reports", "nowhere"], 3, "expected the folder that a run names in its last"),
        (["report"], 2, "expected --reports"),
        (["report", "--reports", "r", "--top", "-1"], 2, "--top: expected a whole number from 0 "),
        (["report", "--reports", "r", "--format", "pdf"], 2, "invalid choice"),
        (["report", "--set", "paths.finding_pages=javascript:x"], 2, "finding_pages"),
        (["alert"], 2, "expected --reports"),
        (["show", "t", "--columns", ""], 2, "expected names with commas between, came ''"),
        (["show", "t", "--zzz", "3"], 2, "--zzz; rebalance-audit show --help lists"),
        (["run", "--dumps", "d", "--output", "o", "--workers", "0"], 2, "1 to 999, came '0'"),
        (["run", "--dumps", "d", "--output", "o", "--engine", "sparc"], 2, "did you mean spark?"),
        (["audit", *TO_R, "--since", "2026-11-22", "--until", "2026-1"], 2, "--until: expected a"),
        (
            ["audit", "--since", "2026-11-22", "--until", "2026-11-21"],
            2,
            "2026-11-22T00:00:00.000Z and 2026-11-",
        ),
        (["audit", *TO_R, "--known-issues", "none.toml"], 2, "none.toml cannot be read: No such"),
        (["audit", *TO_R, "--set", "alerts.service=SLAK"], 2, "came 'SLAK'"),
        (["explain", "--snapshots", "s", *OF_GT, "--at", "noon"], 2, "--at: expected a t"),
        (["explain", "--snapshots", "s", *OF_GT], 3, "snapshot tables that ingest or run"),
        (["what-if", "--snapshots", "s", *OF_GT], 2, "expected a change, such as --leave"),
        (["explain", "--reports", "r"], 2, "--reports: did you mean --snapshots?"),
        (["collect", "--namesrv", "h:99999", "--dumps", "d"], 2, "expected host:port, came 'h:99"),
        (["collect", "--namesrv", "", "--dumps", "d"], 2, "--namesrv: expected host:port, came ''"),
        (["collect", "--namesrv", "h", "--dumps", "d", "--every", "0"], 2, "expected 0.1 or more"),
        (["prune", "--reports", "r", "--keep", "-1"], 2, "such as 90d or 12w, came '-1'"),
        (["report", "--reports", "r", "--language", "fr"], 2, "choose from 'en', 'zh'"),
        (["init"], 2, "expected --namesrv or --dumps, or an answer on a terminal"),
        (["shw"], 2, "invalid choice: 'shw' (choose from "),
        (["shw"], 2, ": did you mean show?"),
        (["nights"], 2, ": did you mean report --nights 30?"),
        (["run", "--ouput", "x"], 2, "did you mean --output?; rebalance-audit run --help lists"),
    ],
    ids=str,
)
def test_wrong_usage_is_told_with_its_exit_code(
    arguments: list[str], code: int, said: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == code
    told = capsys.readouterr()
    assert said in told.err
    assert "Traceback" not in told.err
    assert told.out == ""
    assert list(here.iterdir()) == []


def test_what_the_settings_name_needs_no_option(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "d").mkdir()
    places = ['paths.dumps=["d"]', "paths.snapshots=s", "paths.reports=r"]
    options = [part for place in places for part in ("--set", place)]
    assert main(["ingest", *options, "--dry-run"]) == 3
    assert "no dump at d: expected" in capsys.readouterr().err
    assert main(["audit", *options, "--dry-run"]) == 3
    assert f"no table heartbeats at {here}/s/heartbeats" in capsys.readouterr().err
    assert main(["show", "summary", *options]) == 3
    assert f"no published reports under {here}/r" in capsys.readouterr().err


def test_gates_add_up_and_each_is_closed_by_what_is_its() -> None:
    gates = {"INFO": 3, "WARNING": 2, "CRITICAL": 0, "INCOMPLETE": 0}
    published = PublishedRun("2026-11-20", "run-1", {"verdict": {"gates": gates}}, {})
    assert is_closed(published, ["CRITICAL", "WARNING"])
    assert not is_closed(published, ["CRITICAL", "INCOMPLETE"])
    assert not is_closed(published, [])


@pytest.mark.parametrize("gates", ["WORST", "CRITICAL,", "critical", "CRITICAL;INCOMPLETE"])
def test_a_gate_that_there_is_not_is_an_error_of_usage(
    gates: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", *TO_R, "--fail-on", gates]) == 2
    assert "expected some of INFO, WARNING, CRITICAL, INCOMPLETE" in capsys.readouterr().err


COUNTS = {"total": 2, "persistent": 2, "INFO": 0, "WARNING": 2, "CRITICAL": 0}
SUMMARY = {
    "window": {
        "first_snapshot": "2026-01-07T00:00:00Z",
        "last_snapshot": "2026-01-07T23:00:00Z",
    },
    "findings": {name: {**COUNTS, "known": dict.fromkeys(COUNTS, 1)} for name in QUEUE_FINDINGS},
    "assumptions": {"groups": 3, "asked": 1},
    "rounds": {"groups_too_wide": 1},
    "events": {"total": 0, "first": []},
    "verdict": {"gates": {"INFO": 2, "WARNING": 1, "CRITICAL": 0, "INCOMPLETE": 1}},
    "rows": {"stacked_client_ids": 1, "group_health": 4},
    "known_issues": [{"expires": "2026-01-06", "expired": True, "reason": "OPS-1"}],
}


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which jobs of which engine were called; the dumps of ``bad`` are half garbage."""
    names: list[str] = []

    @contextmanager
    def engine(
        choice: Choice,
        name: str,
        _dumps: object,
        _snapshots: object,
        master: str | None,
        *_: object,
    ) -> Iterator[None]:
        if choice.engine == "spark":
            names.append(f"{name} on {master}")
        yield None

    def ingest(_: None, dumps: Sequence[str], *__: object) -> IngestCounts:
        names.append("ingest")
        if dumps == ["bad"]:
            raise QuarantineError("half of the lines")
        return IngestCounts(files=2, bytes=10, lines=1000, quarantined=3)

    def audit(_: None, task: Task, *__: object) -> PublishedRun:
        names.append("audit since last" if task.since_last else "audit")
        return PublishedRun("2026-01-07", "run-1", SUMMARY, {})

    monkeypatch.setattr("jobs.commands.batch.open_engine", engine)
    monkeypatch.setattr("jobs.commands.batch.ingest", ingest)

    def tables(_: object, published: PublishedRun) -> RowTables:
        found = RowTables()
        found.published = published
        return found

    monkeypatch.setattr("jobs.commands.batch.audit", audit)
    monkeypatch.setattr("jobs.commands.batch.PublishedTables", tables)
    return names


SUMMED_UP = (
    "rebalance audit of 2026-01-07: 2 persistent of 2 orphaned, 2 persistent of 2 duplicated, "
    "2 persistent of 2 stalled queues (3 of all these are known issues), 1 shared client id, "
    "in 4 groups and topics; 2 groups rest on an assumption: collect running infos; 1 group rests "
    "on an assumption: members asked for running infos did not answer, or name no strategy; "
    "1 group was asked in rounds that are too wide to compare brokers; reports at "
    "{}/r"
)
EXPIRED = "a known issue expired on 2026-01-06, its findings count again: OPS-1"
INGESTED = "ingested 1,000 lines of 2 files into {}/s, 3 not understood"


@pytest.mark.parametrize(
    ("arguments", "code", "jobs", "said"),
    [
        (["ingest", "--dumps", "d", "--snapshots", "s"], 0, ["ingest"], [INGESTED]),
        (["ingest", "--dumps", "bad", "--snapshots", "s"], 3, ["ingest"], ["half of the lines"]),
        (["audit", *TO_R], 0, ["audit"], [SUMMED_UP, EXPIRED]),
        (["audit", *TO_R, "--since", "last"], 0, ["audit since last"], [SUMMED_UP, EXPIRED]),
        (["audit", *TO_R, "--fail-on", "WARNING"], 1, ["audit"], [SUMMED_UP, EXPIRED]),
        (["audit", *TO_R, "--fail-on", "CRITICAL"], 0, ["audit"], [SUMMED_UP, EXPIRED]),
        (["audit", *TO_R, "--fail-on", "CRITICAL,INCOMPLETE"], 1, ["audit"], [SUMMED_UP]),
        (["audit", *TO_R, "--fail-on=CRITICAL", "--fail-on=INCOMPLETE"], 1, ["audit"], []),
        (["run", "--dumps", "d", "--output", "."], 0, ["ingest", "audit"], [EXPIRED]),
        # What was understood is audited; that not all was is worse than what was found.
        (
            ["run", "--dumps", "bad", "--output", ".", "--fail-on", "INFO"],
            3,
            ["ingest", "audit"],
            ["half of the lines", EXPIRED],
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_job_ends_with_a_line_and_an_exit_code_whichever_engine_runs_it(
    engine: str,
    arguments: list[str],
    code: int,
    jobs: list[str],
    said: list[str],
    called: list[str],
    here: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("d", "bad"):
        (here / name).mkdir()
    assert main([*arguments, "--engine", engine]) == code
    told = capsys.readouterr()
    started = [f"{arguments[0]} on None"] if engine == "spark" else []
    assert called == [*started, *jobs]
    assert f"engine {engine}, by --engine\n" in told.err
    # An audit has a line with its verdict, and one that sums it up.
    lines = {"ingest": 1 - (code == 3)}.get(arguments[0], 2)
    assert len(told.out.splitlines()) == lines
    for line in said:
        assert line.format(here) in (told.out + told.err).replace("rebalance-audit: ", "")


def test_a_small_input_starts_no_session_unless_there_is_a_master(
    called: list[str], here: Path
) -> None:
    (here / "d").mkdir()
    of_dumps = ["ingest", "--dumps", "d", "--snapshots", "s", "--quiet"]
    assert main(of_dumps) == main(["audit", *TO_R, "--quiet"]) == 0
    assert called == ["ingest", "audit"]
    assert main([*of_dumps, "--master", "local[7]"]) == 0
    assert called[2:] == ["ingest on local[7]", "ingest"]
    # More text than one process reads within seconds; the file has none of its bytes on the disk.
    with (here / "d" / "dump.jsonl").open("wb") as dump:
        dump.truncate((1 << 30) + 1)
    assert main(of_dumps) == 0
    assert called[4:] == ["ingest on None", "ingest"]
    assert main([*of_dumps, "--engine", "local", "--master", "local"]) == 2


def test_only_what_has_expired_is_told_and_on_one_line() -> None:
    entries = [
        {"expires": "2026-01-06", "expired": True, "reason": "OPS-1\n\u202e"},
        {"expires": "2026-01-07", "expired": False, "reason": "OPS-2"},
    ]
    (line,) = expired_known_issues(PublishedRun("2026-01-07", "", {"known_issues": entries}, {}))
    assert line.startswith("a known issue expired on 2026-01-06, ")
    assert line.endswith(r": OPS-1\n\u202e")


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "rebalance-audit: interrupted\n"),
        (PermissionError(13, "Permission denied", "/x"), 4, "Permission denied: /x: give user"),
        # Of a connection, say: only of standard output does it mean that all was read.
        (BrokenPipeError(32, "Broken pipe"), 4, ": Broken pipe: --verbose shows where\n"),
        (ZeroDivisionError("x"), 4, "ZeroDivisionError: x; this is a defect of the audit: report"),
    ],
    ids=repr,
)
def test_whatever_happens_is_one_line_and_an_exit_code(
    raised: BaseException,
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object) -> None:
        raise raised

    monkeypatch.setattr("jobs.commands.common.load_settings", fail)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert main(["show", "summary", "--settings", "s"]) == code
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    stacks = [path.read_text() for path in tmp_path.iterdir()]
    assert len(stacks) == (1 if "defect" in said else 0)
    assert all("Traceback" in stack and "ZeroDivisionError: x" in stack for stack in stacks)


def test_the_stack_is_shown_to_whoever_asks_for_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("jobs.commands.common.load_settings", lambda *_: 1 / 0)
    assert main(["show", "summary", "--settings", "s", "-v"]) == 4
    error = capsys.readouterr().err
    assert "Traceback" in error
    assert error.endswith("rebalance-audit: ZeroDivisionError: division by zero\n")


def test_a_failure_in_the_midst_of_sigterm_is_the_sigterm(
    called: list[str],
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whoever stops a service stops its Java too, and what cleans up finds none."""

    def audit(*_: object) -> NoReturn:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            raise ZeroDivisionError

    monkeypatch.setattr("jobs.commands.batch.audit", audit)
    assert main(["audit", *TO_R, "--engine", "local", "--quiet"]) == 143
    said = f"terminated by SIGTERM; there is no published report at {here}/r\n"
    assert capsys.readouterr().err == f"rebalance-audit: {said}"
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_which_files_are_read_is_said_unless_it_is_to_be_quiet(
    called: list[str], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "conf").mkdir()
    (here / "conf" / "audit.toml").touch()
    (here / "known.toml").touch()
    command = ["audit", *TO_R, "--known-issues", "known.toml", "--set", "alerts.attempts=2"]
    assert main([*command, "--engine", "local"]) == 0
    first, *_ = capsys.readouterr().err.splitlines()
    assert first == (
        f"rebalance-audit: reads settings of {here}/conf/audit.toml, known issues of "
        f"{here}/known.toml, 1 --set"
    )
    assert main([*command, "--engine", "local", "--quiet"]) == 0
    assert "reads settings" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "master", ["foo", "local[x]", "local[0]", "spark://", "spark://host", "k8s://", "mesos://h:1"]
)
def test_a_master_that_spark_does_not_have_is_refused_before_java_starts(
    master: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", *TO_R, "--master", master]) == 2
    assert f"spark://host:7077, yarn or k8s://..., came '{master}'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "master",
    ["local", "local[*]", "local[2,3]", "local-cluster[2,1,1024]", "spark://a:1,b:2", "k8s://x:1"],
)
def test_the_masters_of_spark_are_taken(master: str, called: list[str], here: Path) -> None:
    assert main(["audit", *TO_R, "--master", master, "--quiet"]) == 0
    assert called[0] == f"audit on {master}"


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["--version"])
    assert raised.value.code == 0
    assert capsys.readouterr().out.startswith(f"rebalance-audit {jobs.__version__} (Python 3.")


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Standard output goes to a reader that has read enough."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stream:
        monkeypatch.setattr("sys.stdout", stream)
        yield


def test_a_reader_that_has_read_enough_changes_neither_work_nor_exit_code(
    called: list[str], here: Path, closed: None, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["audit", *TO_R, "--engine", "local", "--quiet", "--fail-on", "WARNING"]
    assert main(command) == 1
    assert capsys.readouterr().err == f"rebalance-audit: {EXPIRED}\n"


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["show", "--help"]], ids=str)
def test_nobody_has_to_read_the_version_or_the_help_to_its_end(
    arguments: list[str], closed: None, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "arguments",
    [["--version"], ["--help"], ["audit", *TO_R, "--engine", "local", "--quiet"]],
    ids=["version", "help", "result"],
)
def test_what_cannot_be_written_is_a_failure(
    arguments: list[str],
    called: list[str],
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    full = Path("/dev/full").open("w")  # noqa: SIM115 - closing it fails as well
    monkeypatch.setattr("sys.stdout", full)
    assert main(arguments) == 4
    said = "standard output cannot be written to: No space left on device: make room on that disk"
    assert said in capsys.readouterr().err
    with suppress(OSError):
        full.close()


def test_without_standard_error_a_run_runs(
    called: list[str], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr", None)
    assert main(["audit", *TO_R, "--engine", "local"]) == 0
    monkeypatch.setattr("sys.stdout", None)
    assert main(["audit", *TO_R, "--engine", "local"]) == 0


LINE = (
    '{"kind": "topic_route", "cluster": "C", "snapshot_time": "2026-11-20T10:00:00Z", '
    '"collected_at": "2026-11-20T10:00:00Z", "namesrv_addr": "n", "topic": "T", "body": "{}"}\n'
)


@pytest.mark.parametrize(
    ("content", "first"),
    [
        (LINE.replace("topic_route", "topic_routes"), " line 1: expected kind"),
        (LINE.replace(', "body": "{}"', ""), " line 1: expected body or error_code"),
    ],
    ids=["kind", "no body"],
)
def test_a_dump_of_which_nothing_is_understood_says_first_what_is_wrong_and_where(
    here: Path, capsys: pytest.CaptureFixture[str], content: str, first: str
) -> None:
    """Others are in test_wrong_inputs."""
    (here / "d.jsonl").write_text(content)
    assert main(["run", "--dumps", "d.jsonl", "--output", "out", "--quiet"]) == 3
    assert capsys.readouterr().err.startswith(f"rebalance-audit: {here}/d.jsonl{first}")


def test_where_nothing_was_understood_the_end_says_so(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = here / "dump.jsonl"
    dump.write_text("no dump\n" * 3)
    assert main(["run", "--dumps", str(dump), "--output", str(here / "out"), "--quiet"]) == 3
    said = capsys.readouterr().err
    start = f"rebalance-audit: {dump} line 1: expected one JSON object, came 'no dump'; "
    assert said.startswith(f"{start}3 of 3 lines, 24 of 24 bytes, were not understood")
    assert "rebalance-audit show quarantine lists them" in said
    # It does, though nothing was published; and after a run that published nothing for another
    # reason it does not show the lines of this one.
    assert main(["show", "quarantine", "--format", "csv", "--columns", "line_number,line"]) == 0
    assert capsys.readouterr().out == "line_number,line\n1,no dump\n2,no dump\n3,no dump\n"
    dump.write_text("")
    assert main(["run", "--dumps", str(dump), "--output", str(here / "out"), "--quiet"]) == 3
    assert capsys.readouterr().err.startswith(f"rebalance-audit: dump {dump} is empty")
    assert main(["show", "quarantine"]) == 2


@pytest.mark.parametrize(("arguments", "code"), [("completion bash", None), ("shw", 2)])
def test_who_calls_the_console_script_as_a_function_sees_a_failure(
    monkeypatch: pytest.MonkeyPatch, arguments: str, code: int | None
) -> None:
    monkeypatch.setattr(sys, "argv", ["rebalance-audit", *arguments.split()])
    with nullcontext() if code is None else pytest.raises(SystemExit, match=str(code)):
        console.main()

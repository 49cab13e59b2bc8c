"""One night's job in a process of its own, and what readers see of it afterwards."""

from __future__ import annotations

import concurrent.futures.process  # noqa: F401 - before the fork: not every user may read it
import gzip
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jobs.alerts.message import read_digest
from jobs.cli import main
from jobs.errors import AuditError
from jobs.pipeline import audit as _audit  # noqa: F401 - before the fork: each child has it
from jobs.pipeline import ingest as _ingest  # noqa: F401 - as above
from jobs.rendering.page_values import build_report
from jobs.reports.table_text import read_table
from jobs.reports.tables import PublishedTables
from jobs.storage import Location, PublishedRun, Reports, publication
from tests.faults.calls import Hook, Storage

DATE = "2026-11-21"
#: A process that hangs fails its test.
_LONGEST_SECONDS = 120

Tables = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Ended:
    """How a process ended: its exit code (below 0: by a signal), and what it wrote."""

    code: int
    text: str


def in_child(place: Path, work: Callable[[], int]) -> Ended:
    """Does the work in a forked process: whatever happens there does not happen here."""
    output = place / "output.txt"
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        code = 99
        try:
            signal.alarm(_LONGEST_SECONDS)
            os.chdir(place)  # settings of the current directory would be read
            publication._warn.cache_clear()  # the parent's warnings are not the child's
            file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(file, 1)
            os.dup2(file, 2)
            sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
            sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
            code = work()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    _pid, status = os.waitpid(child, 0)
    return Ended(os.waitstatus_to_exitcode(status), output.read_text(errors="replace"))


class Night:
    """A folder with the dumps of a night, and where its tables go."""

    def __init__(self, place: Path, dumps: Path) -> None:
        self.place = place
        self.output = place / "out"
        self.reports = Reports(Location(self.output / "reports"))
        self._dumps = dumps
        self._settings = place / "settings.toml"
        self._settings.write_text("persistence_seconds = 60\n[publishing]\nwait_seconds = 0\n")

    def command(self, command: str = "run") -> list[str]:
        where = {
            "run": ["--dumps", str(self._dumps), "--output", str(self.output)],
            "ingest": ["--dumps", str(self._dumps), "--snapshots", str(self.output / "snapshots")],
            "audit": [
                *("--snapshots", str(self.output / "snapshots")),
                *("--reports", str(self.output / "reports")),
            ],
        }[command]
        return [command, *where, "--engine", "local", "--quiet", "--settings", str(self._settings)]

    def run(self, hook: Hook | None = None, command: str = "run") -> Ended:
        """The job in a process of its own, every storage call of which the hook gets."""

        def work() -> int:
            if hook is not None:
                Storage(self.output, hook).install(pytest.MonkeyPatch())
            return main(self.command(command))

        return in_child(self.place, work)

    def read(self, date: str | None = DATE) -> Tables:
        """What every reader reads: all tables; the report and the alert are made of them, too."""
        return self.reports.read(date, lambda published: read_everything(self.reports, published))

    def files(self) -> list[str]:
        """All files and folders, without what differs from run to run in their names.

        Pointers stay for a day: their numbers are left out.
        """
        paths = [str(path.relative_to(self.output)) for path in self.output.rglob("*")]
        paths = [each for each in paths if not re.search(r"/_published/.*\.\d{6}\.json", each)]
        return sorted(re.sub(r"\d{8}T\d{6}Z-[0-9a-f]{6}", "RUN", path) for path in paths)


def read_everything(reports: Reports, published: PublishedRun) -> Tables:
    """All tables of a run, of which the report and the digest of an alert are made as well.

    Without the ids of runs: each run has its own.
    """
    tables = PublishedTables(reports, published)
    build_report(published, tables, 10)
    read_digest(published, tables)
    return {
        name: [
            {column: value for column, value in row.items() if not column.endswith("run_id")}
            for row in read_table(reports, published, name).to_pylist()
        ]
        for name in sorted(published.tables)
    }


def read_or_refuse(read: Callable[[], Tables]) -> Tables | str:
    """The tables, or the one line of the refusal. Any other exception is a defect."""
    try:
        return read()
    except AuditError as error:
        text = str(error)
        assert "\n" not in text
        return text


def is_one_line(ended: Ended) -> bool:
    """Whether a command that failed said so in one line, without a stack."""
    lines = [line for line in ended.text.splitlines() if line]
    return (
        len(lines) == 1 and "Traceback" not in ended.text and "defect of the audit" not in lines[0]
    )


def cut_dump(source: Path, target: Path, share: float) -> None:
    """The first lines of a dump."""
    with gzip.open(source, "rt", encoding="utf-8") as file:
        lines = file.readlines()
    target.mkdir(parents=True)
    (target / "dump.jsonl").write_text("".join(lines[: int(len(lines) * share)]), encoding="utf-8")


@dataclass(frozen=True)
class Nights:
    """What was published before the night, what an undisturbed night publishes, and the dumps."""

    before: Path
    old: Tables
    new: Tables
    dumps: Path
    files_after: Sequence[str]

    def begin(self, place: Path) -> Night:
        """A night in a new folder, with all that was published before it."""
        place.mkdir()
        shutil.copytree(self.before, place / "out")
        return Night(place, self.dumps)

    @classmethod
    def make(cls, place: Path, dump: Path) -> Nights:
        """From the dump of one night; the night before has the first lines of it."""
        cut_dump(dump, place / "dumps-before", 0.7)
        cut_dump(dump, place / "dumps", 1)
        before = Night(place, place / "dumps-before")
        for _again in range(2):  # of the second on the files are as they are every night
            ended = before.run()
            assert ended.code == 0, ended.text
        old = before.read()
        undisturbed = place / "undisturbed"
        undisturbed.mkdir()
        shutil.copytree(before.output, undisturbed / "out")
        night = Night(undisturbed, place / "dumps")
        ended = night.run()
        assert ended.code == 0, ended.text
        new = night.read()
        assert old != new
        return cls(before.output, old, new, place / "dumps", night.files())

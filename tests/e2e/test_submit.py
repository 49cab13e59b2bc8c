"""Through spark-submit, from another directory: what is published, and what its caller is told."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.conftest import QUICK_JAVA
from tests.e2e.conftest import Run
from tests.support.event_log import rows_of_udfs, situations
from tests.support.reports import PublishedReports
from tests.support.truth import CAPTURES

pytestmark = pytest.mark.e2e

#: A stacked id, rooms by pattern from the settings, brokers whose lists differ.
SITUATIONS = ("S2", "S10", "S15")


def test_the_package_has_the_settings_and_the_known_issues(
    run_command: Run, package: Path, repository: Path
) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(package)!r})\n"
        "from rebalance_audit.config.choices import DEFAULT_KNOWN_ISSUES, DEFAULT_SETTINGS\n"
        "from rebalance_audit.config.settings import find_text\n"
        "for default in (DEFAULT_KNOWN_ISSUES, DEFAULT_SETTINGS):\n"
        "    print(*find_text(default), sep='\\n', end='')\n"
    )
    said = run_command([sys.executable, "-c", code]).stdout
    names = ("conf/known_issues.toml", "conf/audit.toml")
    assert said == "".join(f"{package}/{n}\n{(repository / n).read_text()}" for n in names)


def submit(package: Path, entry: Path, *arguments: str) -> list[str]:
    # Each worker compiles the zip for itself: two of them are tried by test_standalone.py.
    command = ["spark-submit", "--master", "local[1]", "--driver-memory", "2g"]
    command += ["--py-files", str(package), "--driver-java-options", QUICK_JAVA]
    for each in ("ui.enabled=false", "sql.codegen.wholeStage=false"):
        command += ["--conf", f"spark.{each}"]
    return [*command, str(entry), *arguments]


@pytest.mark.spark
def test_what_is_submitted_publishes_what_one_process_does(
    tmp_path: Path,
    run_command: Run,
    package: Path,
    entries: Path,
    settings_file: str,
    sample: PublishedReports,
) -> None:
    """What is true of the one (test_sample_truth.py) is true of the other; so is the exit code."""
    # In one Java: the entries differ in the command alone, and test_standalone.py has two of them.
    entry = (entries / "ingest.py").read_text(encoding="utf-8")
    (script := tmp_path / "run.py").write_text(entry.replace('entry("ingest")', 'entry("run")'))
    dumps = [str(CAPTURES / situation / "dump.jsonl.gz") for situation in SITUATIONS]
    run = ["--dumps", *dumps, "--output", str(tmp_path), "--settings", settings_file]
    (events := tmp_path / "events").mkdir()
    logged = ("spark.eventLog.enabled=true", f"spark.eventLog.dir={events.as_uri()}")
    command = submit(package, script, *run, "--fail-on", "CRITICAL")
    command[1:1] = [word for each in logged for word in ("--conf", each)]
    done = run_command(command, expect=1)
    # Spark passes on what the command says on standard error as standard output.
    assert "engine spark, by spark-submit" in done.stdout
    here, there = sample, PublishedReports(tmp_path / "reports")
    assert (here.summary["engine"], there.summary["engine"]) == ("local", "spark")
    tables = set(here.published["tables"])
    assert set(there.published["tables"]) | {"quarantine"} == tables | {"quarantine"}
    groups = {f"G_{situation}" for situation in SITUATIONS}
    # Events, and when the cluster was last asked, are of all groups together: both engines have
    # the same in tests/engines.
    for table in sorted(tables - {"quarantine", "events", "verdict", "gaps"}):
        of_groups = here.comparable(table, groups, without="unseen_since")
        assert there.comparable(table, without="unseen_since") == of_groups, table
    assert there.rows("duplicate_queues")
    # Its event log has the UDF, with a row for each situation, and one for each shard of groups.
    ((name, rows),) = rows_of_udfs(events).items()
    assert name == "recompute_allocations"
    assert 0 < rows - situations(there.reports) <= len(groups)

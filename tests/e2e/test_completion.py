"""What bash completes: the script that the command prints, in a real bash."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.cli import main
from tests.support.written_reports import publish, report_row

pytestmark = pytest.mark.e2e

#: What the Tab key does: the function that the script registered is asked what may follow.
ASK = r"""
. "$2"
COMP_LINE="$1" COMP_POINT=${#1} COMP_TYPE=9 COMPREPLY=()
complete -p rebalance-audit | grep -q -- '-F _python_argcomplete' || exit 1
_python_argcomplete rebalance-audit
printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    health = [
        report_row("group_health", consumer_group=group, topic=topic)
        for group, topic in (
            ("G_ORDER", "ORDER"),
            ("G_ORDER", "%RETRY%G_ORDER"),
            ("G_PAY", "PAY"),
            ("$(touch hacked)", "x; touch hacked"),
        )
    ]
    publish(tmp_path / "reports", "2026-11-19", {})
    publish(tmp_path / "reports", "2026-11-20", {"group_health": health})
    return tmp_path / "reports"


ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the command prints, which a shell reads once."""
    script = tmp_path_factory.mktemp("completion") / "script"
    with script.open("w") as file:
        command = ["rebalance-audit", "completion", "bash"]
        subprocess.run(command, env=ENVIRONMENT, stdout=file, check=True)
    return script


def completed(line: str, folder: Path, script: Path) -> list[str]:
    done = subprocess.run(
        ["bash", "--norc", "-c", ASK, "bash", line, str(script)],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )
    return sorted(each.strip() for each in done.stdout.splitlines() if each.strip())


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("sh", ["show"]),
        ("show dupl", ["duplicate_queues"]),
        ("show quarantine --columns file,re", ["file,reason"]),
        ("show quarantine --columns reason,rea", []),
        ("show group_health --reports reports --date ", ["2026-11-19", "2026-11-20"]),
        # What a shell would read as a command is offered to nobody.
        ("show group_health --reports reports --group ", ["G_ORDER", "G_PAY"]),
        (
            "show group_health --reports reports --group G_ORDER --topic ",
            ["%RETRY%G_ORDER", "ORDER"],
        ),
        ("show group_health --reports reports --date 2026-11-19 --group ", []),
        ("show group_health --reports nowhere --group ", []),
        ("collect --group G", []),
        ("report --format h", ["html"]),
        ("report --reports re", ["reports/"]),
        ("report --output f", ["file.html"]),
        ("explain --set bounds.future", ["bounds.future_days="]),
        ("what-if --mend GHOST", ["GHOST_MEMBER"]),
        ("show nothing-like-it --columns x", []),
    ],
)
def test_names_are_completed_as_far_as_they_are_there(
    reports: Path, script: Path, line: str, expected: list[str]
) -> None:
    (reports.parent / "file.html").touch()
    assert completed(f"rebalance-audit {line}", reports.parent, script) == expected
    assert not (reports.parent / "hacked").exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script_that_it_can_read(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "rebalance-audit" in script
    assert script == script.strip() + "\n"
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)

"""Which windows the command line takes; it tells before it starts a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.cli import main

NEXT = "expected --snapshots"
BOTH = "expected --date or --since/--until, came both"


def test_known_issues_that_are_wrong_are_told_before_a_session_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = tmp_path / "known.toml"
    known.write_text('[[known_issues]]\ngroups = "G"\n')
    places = ["--snapshots", "s", "--reports", "r"]
    assert main(["audit", *places, "--known-issues", str(known)]) == 2
    said = capsys.readouterr().err
    assert "known_issues.0.reason: Field required" in said
    assert "known_issues.0.expires: Field required" in said


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
    ],
)
def test_a_date_or_times_or_where_the_last_run_ended(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", *arguments]) == 2
    assert said in capsys.readouterr().err

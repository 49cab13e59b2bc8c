"""Nights in which many lines are damaged: nothing is lost, and nothing stops the audit."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from jobs.cli import main
from tests.fuzz.nights import (
    arguments,
    changed_night,
    recorded_nights,
    report_rows,
    snapshot_rows,
    write_dump,
)
from tests.support.reports import PublishedReports


# A seed has no smaller one that would tell more.
@pytest.mark.long
@settings(max_examples=2, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.integers(0, 2**32), st.sampled_from([0.02, 0.3, 0.9]))
def test_a_night_of_changed_lines_is_audited_and_every_line_is_counted(
    seed: int, share: float
) -> None:
    random = Random(seed)  # noqa: S311 - to be repeated
    lines = changed_night(random.choice(recorded_nights()), random, share)
    with TemporaryDirectory() as folder:
        dump, output = Path(folder) / "dump", Path(folder) / "out"
        write_dump(lines, dump, random, files=4)
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            code = main(arguments(dump, output, "local"))
        assert code == 0, said.getvalue()
        reports = PublishedReports(output / "reports")
        ingested = reports.summary["inputs"]["ingested"]
        assert ingested["lines"] == len(lines)
        assert ingested["quarantined"] == len(snapshot_rows(output)["quarantine"])
        assert report_rows(output)["group_health"]

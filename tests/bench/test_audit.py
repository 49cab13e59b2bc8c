"""An audit of the bench is the first of its folder, however often the bench runs."""

from __future__ import annotations

from pathlib import Path

from tests.bench.contenders import audit
from tests.bench.engines import ingest_on
from tests.bench.ingest import write_dump


def test_a_second_audit_into_the_same_folder_is_measured_like_the_first(tmp_path: Path) -> None:
    ingest_on(None, write_dump(tmp_path / "dump.jsonl", 1, 3), tmp_path / "snapshots")
    for _ in range(2):
        audit.run(None, tmp_path / "snapshots", tmp_path / "output")
    manifests = list((tmp_path / "output" / "reports" / "_manifests").rglob("*.json"))
    assert len(manifests) == 1

"""The audit in this very process, without Spark: as a small input is audited, whatever its size."""

from __future__ import annotations

from pathlib import Path

from jobs.pipeline.audit_on_driver import audit
from jobs.progress import Progress
from tests.bench.contenders.audit import task, to_findings

__all__ = ["run", "to_findings"]


def run(_: None, snapshots: Path, output: Path) -> None:
    """Publishes into ``reports`` of the output."""
    audit(task(snapshots, output / "reports"), Progress(quiet=True))

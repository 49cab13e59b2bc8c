"""Batch jobs of the rebalance audit.

    dumps -> snapshots -> fold -> judge -> publish

For a PySpark shell, over DataFrames and with the shell's session::

    from jobs import Settings, audit_frames

    reports = audit_frames(spark.read.parquet("snapshots/heartbeats"),
                           spark.read.parquet("snapshots/topic_routes"))
    reports["orphaned_queues"].show()

Of one group and topic: ``explain`` and ``what_if``. Of what was published: ``read_reports``, and
without Spark ``report_rows``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jobs.pipeline.explain import explain, what_if
    from jobs.pipeline.frames import audit_frames, snapshot_frames
    from jobs.reports.read import read_reports, report_rows
    from jobs.settings import Settings, load_settings

#: That of the package; the zip of spark-submit has no other place for it.
__version__ = "0.2.0"

__all__ = [
    "Settings",
    "audit_frames",
    "explain",
    "load_settings",
    "read_reports",
    "report_rows",
    "snapshot_frames",
    "what_if",
]

_HOMES = {
    "audit_frames": "jobs.pipeline.frames",
    "snapshot_frames": "jobs.pipeline.frames",
    "explain": "jobs.pipeline.explain",
    "what_if": "jobs.pipeline.explain",
    "read_reports": "jobs.reports.read",
    "report_rows": "jobs.reports.read",
    "Settings": "jobs.settings",
    "load_settings": "jobs.settings",
}


def __getattr__(name: str) -> Any:
    # Lazy: a Spark worker imports this package for the UDF alone, and has not all of the driver's
    # dependencies.
    if name in _HOMES:
        try:
            return getattr(import_module(_HOMES[name]), name)
        except ModuleNotFoundError as error:
            if error.name != "pyspark":
                raise
            raise ImportError(
                f"jobs.{name} needs Spark: pip install 'rocketmq-rebalance-audit[spark]'; "
                "the command rebalance-audit and jobs.report_rows do not"
            ) from error
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

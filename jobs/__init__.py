"""Batch jobs of the rebalance audit.

    dumps -> snapshots -> fold -> judge -> publish

For a PySpark shell, over DataFrames and with the shell's session::

    from jobs import Frames

    frames = Frames(spark.read.parquet("snapshots/heartbeats"),
                    spark.read.parquet("snapshots/topic_routes"))
    frames.audit()["orphaned_queues"].show()

The audit in one call: ``audit_frames``. Of one group and topic: ``Frames.explain`` and
``Frames.what_if``. Of what was published: ``read_reports``, and without Spark ``report_rows``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .pipeline.frames import Frames, audit_frames, read_reports
    from .reports.read import report_rows
    from .settings import Settings, load_settings

#: That of the package; the zip of spark-submit has no other place for it.
__version__ = "0.2.0"

__all__ = [
    "Frames",
    "Settings",
    "audit_frames",
    "load_settings",
    "read_reports",
    "report_rows",
]

_HOMES = {
    "Frames": ".pipeline.frames",
    "audit_frames": ".pipeline.frames",
    "read_reports": ".pipeline.frames",
    "report_rows": ".reports.read",
    "Settings": ".settings",
    "load_settings": ".settings",
}


def __getattr__(name: str) -> Any:
    # Lazy: a Spark worker imports this package for the UDF alone, and has not all of the driver's
    # dependencies.
    if name in _HOMES:
        try:
            return getattr(import_module(_HOMES[name], __name__), name)
        except ModuleNotFoundError as error:
            from .environment import SPARK_PACKAGE  # noqa: PLC0415 - only where it is missing

            if error.name != SPARK_PACKAGE:
                raise
            raise ImportError(
                f"rebalance_audit.{name} needs Spark: "
                "pip install 'rocketmq-rebalance-audit[spark]'; the command rebalance-audit and "
                "rebalance_audit.report_rows do not"
            ) from error
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""The rebalance audit: installed, and imported, as ``rebalance_audit``.

    dumps -> snapshots -> fold -> judge -> publish

In a shell or a notebook, of dumps, Arrow tables or DataFrames of Spark::

    from rebalance_audit import audit

    report = audit("dumps/")
    report["orphaned_queues"].to_pandas()
    report.explain("G_ORDER", "ORDER")

Of what was published: ``report_rows``, and in Spark ``read_reports`` and ``read_tables``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import audit
    from .config.settings import Settings, load_settings
    from .reports.tables import report_rows
    from .shell.report import Report
    from .spark.dataframes import read_reports, read_tables

#: The version of the package; the zip of spark-submit has no other place for it.
__version__ = "0.2.0"

__all__ = [
    "Report",
    "Settings",
    "audit",
    "load_settings",
    "read_reports",
    "read_tables",
    "report_rows",
]

_HOMES = {
    "Report": ".shell.report",
    "audit": ".api",
    "read_reports": ".spark.dataframes",
    "read_tables": ".spark.dataframes",
    "report_rows": ".reports.tables",
    "Settings": ".config.settings",
    "load_settings": ".config.settings",
}


# The job has the name of a function. Imported once it no longer takes the name when it is used.
import_module(".audit", __name__)
del globals()["audit"]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    # Lazy: a Spark worker imports this package for the UDF alone, and has not all of the driver's
    # dependencies.
    if name in _HOMES:
        try:
            return getattr(import_module(_HOMES[name], __name__), name)
        except ModuleNotFoundError as error:
            from .engines.environment import SPARK_PACKAGE  # noqa: PLC0415 - only where it is missing

            if error.name != SPARK_PACKAGE:
                raise
            raise ImportError(
                f"rebalance_audit.{name} needs Spark: pip install "
                "'rocketmq-rebalance-audit[spark]'; rebalance_audit.report_rows does not"
            ) from error
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

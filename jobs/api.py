"""The audit from Python: ``audit``, which gives a shell, a notebook or a job a ``Report``.

A front, as the console is one: it publishes into a folder of its own what a night publishes, and
shows of it what the commands show. A session of Spark is the caller's: none is started or stopped.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from .audit import audit as publish_audit
from .contract import as_plain, check_tables, with_declared_nulls
from .engines.engine import Engine
from .engines.local import LocalEngine
from .errors import InputError, QuarantineError
from .fold.heartbeat_rounds import as_rounds
from .pipeline.audit import with_window
from .pipeline.ingest import ingest
from .pipeline.inputs import Inputs
from .publish.run import Task
from .schemas import SNAPSHOT_TABLES
from .shell.asked import (
    QUIET,
    Day,
    GivenHistory,
    GivenIssues,
    GivenSettings,
    Time,
    as_arrow,
    asked_task,
    check_named,
    history_of,
    temporary_folder,
)
from .shell.report import Report
from .storage import Location, ReportHistory, Snapshots, SnapshotWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Dumps = str | PathLike[str] | Sequence[str | PathLike[str]]


def audit(
    source: Dumps | Mapping[str, Any],
    settings: GivenSettings = None,
    *,
    known_issues: GivenIssues = None,
    date: Day | None = None,
    since: Time | None = None,
    until: Time | None = None,
    history: GivenHistory | None = None,
    round_seconds: int | None = None,
    spark: SparkSession | None = None,
) -> Report:
    """Audits dumps, or snapshot tables by their names.

    Dumps are files, folders and globs. A table is of Arrow, of Polars (all that has Arrow's stream)
    or a DataFrame of Spark; ``heartbeats`` and ``topic_routes`` must be there. The audit runs in
    this process; with a session, or with DataFrames of one, on Spark: see ``spark.auditing``.

    What is written on the way lies in a temporary folder, and is removed with the report.

    Settings are a file of settings, a mapping with its names, or those of ``load_settings``.
    ``known_issues`` are a file of them, or a mapping that is as one; None: none are known.

    ``date`` is the day (UTC) to audit, ``since`` and ``until`` (exclusive) are the times, as those
    of the command; ``since="last"`` begins where the run before did. None: all that is given.

    ``history`` is the folder of the reports of earlier dates, as ``out/reports``: with them the run
    compares itself, as the command does with those where it writes. Without it, and where it has no
    earlier date, every finding is NEW. With a session it may be a schema that ``save_as_tables``
    wrote: see ``spark.auditing``.

    ``round_seconds``, as 60: each heartbeat has a time of its own, as in a sink of events. They are
    put into rounds of so many seconds, as a collector would have been given them: a client is
    listed from its heartbeat until it expires. Without it tables of rounds are expected.

    Warns where more lines were not understood than the settings allow, and of snapshots that are
    left out because they lie in the future. Raises SettingsError for settings that are wrong,
    InputError where there is nothing to audit, ContractError, before anything runs, where a table
    has not the columns that it must have, and SparkError where Spark fails over dumps.

    >>> report = audit("dumps/")  # doctest: +SKIP
    >>> report["orphaned_queues"].to_pandas()  # doctest: +SKIP
    """
    make_task = asked_task(settings, known_issues, date, since, until)
    if isinstance(source, Mapping):
        check_named(source)
        if spark is not None or any(hasattr(rows, "sparkSession") for rows in source.values()):
            from .spark.auditing import audit_tables  # noqa: PLC0415 - Spark takes its time

            return audit_tables(source, make_task, history, spark, round_seconds=round_seconds)
    elif round_seconds is not None:
        raise InputError(
            "round_seconds: expected tables, as audit({'heartbeats': ..., 'topic_routes': ...}, "
            "round_seconds=60), came dumps, whose lines have the times of their rounds"
        )
    elif not isinstance(source, str | PathLike | Sequence):
        raise InputError(
            "expected dumps, or snapshot tables by name, as audit({'heartbeats': ..., "
            f"'topic_routes': ...}}), came {type(source).__name__}; "
            "rebalance_audit.spark.audit takes DataFrames, of tables or as lines=..."
        )
    with temporary_folder() as folder, _opened(spark, history) as (engine, reports, is_here):
        task = with_window(make_task(folder, reports))
        if isinstance(source, Mapping):
            given = [
                (table, with_declared_nulls(as_arrow(table.name, source[table.name]), table))
                for table in SNAPSHOT_TABLES
                if table.name in source
            ]
            check_tables((table, rows.schema) for table, rows in given)
            tables = {table.name: rows for table, rows in given}
            if round_seconds is not None:
                tables = as_rounds(tables, round_seconds, task.settings.heartbeat_expiry_seconds)
            for name, rows in tables.items():
                _write(rows, task.snapshots / name)
        else:
            _ingest(engine, source, task)
        inputs = Inputs(Snapshots.open(task.snapshots), task.settings, in_driver=not is_here)
        published = publish_audit(engine, task, QUIET, inputs)
    report = Report(task, published)
    weakref.finalize(report, folder.delete)
    return report


@contextmanager
def _opened(
    spark: SparkSession | None, history: GivenHistory | None
) -> Iterator[tuple[Engine, ReportHistory | None, bool]]:
    """The engine; the reports to compare with; True if the engine's workers see the temporary
    folders of this machine.
    """
    if spark is None:
        with LocalEngine() as local:
            yield local, history_of(history), True
        return
    from .spark.dataframes import history_in  # noqa: PLC0415 - Spark takes its time
    from .spark.session import suited  # noqa: PLC0415
    from .spark.spark_engine import SparkEngine, in_a_sentence, is_here  # noqa: PLC0415

    with in_a_sentence(), suited(spark) as own, SparkEngine(own) as engine:
        yield engine, history_in(spark, history), is_here(spark)


def _ingest(engine: Engine, dumps: Dumps, task: Task) -> None:
    given = [dumps] if isinstance(dumps, str | PathLike) else dumps
    with SnapshotWriter.open(task.snapshots, task.run.run_id, 0, QUIET.say) as writer:
        try:
            ingest(engine, [fspath(each) for each in given], writer, task.settings, QUIET)
        except QuarantineError as error:
            warnings.warn(str(error), stacklevel=3)


def _write(rows: pa.Table, place: Location) -> None:
    place.make_folder()
    pq.write_table(as_plain(rows), (place / "part-0.parquet").base, filesystem=place.file_system)

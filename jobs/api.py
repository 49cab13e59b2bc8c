"""The audit from Python: ``audit``, and the ``Report`` that it gives a shell, a notebook, a job.

A front, as the console is one: it publishes into a folder of its own what a night publishes, and
shows of it what the commands show. A session of Spark is the caller's: none is started or stopped.
"""

from __future__ import annotations

import tempfile
import warnings
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from html import escape
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from rebalance_core import Change
from rebalance_core.errors import near_names

from .audit import audit as publish_audit
from .commands.batch import closing_lines
from .commands.clock import now
from .commands.common import time_of
from .config.known_issues import KnownIssues
from .config.settings import Settings, checked, load_settings
from .config.window import Window, future_after
from .console.progress import Progress
from .contract import as_plain, check_tables, with_declared_nulls
from .engines.engine import Engine
from .engines.local import LocalEngine
from .errors import InputError, QuarantineError, SettingsError
from .judge.moment import Moment
from .pipeline.ingest import ingest
from .pipeline.inputs import Inputs
from .pipeline.moment_texts import Prediction, ShellText, explain_moment, predict_moments
from .pipeline.moments import MomentQuestion, moments_of_tables
from .publish.run import Run, Task
from .rendering.write import Look, report_text
from .reports.tables import PublishedTables, declared_table
from .reports.text_templates import WIDTH
from .schemas import HEARTBEATS, SNAPSHOT_TABLES, TOPIC_ROUTES
from .storage import (
    Location,
    PublishedRun,
    Reports,
    Snapshots,
    SnapshotWriter,
    new_run_id,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GivenSettings = Settings | Mapping[str, Any] | str | Path | None
Dumps = str | PathLike[str] | Sequence[str | PathLike[str]]
#: A time, or its text as ISO 8601; UTC where it has no zone.
Time = datetime | str

#: The number of topics with pictures on the page in a notebook, as on that of ``report``.
_TOP = 10
QUIET = Progress(quiet=True)


def audit(
    source: Dumps | Mapping[str, Any],
    settings: GivenSettings = None,
    *,
    spark: SparkSession | None = None,
) -> Report:
    """Audits dumps, or snapshot tables by their names.

    Dumps are files, folders and globs. A table is of Arrow, of Polars (all that has Arrow's stream)
    or a DataFrame of Spark; ``heartbeats`` and ``topic_routes`` must be there. The audit runs in
    this process; with a session, or with DataFrames of one, on Spark: see ``spark.auditing``.

    What is written on the way lies in a temporary folder, and is removed with the report.

    Settings are a file of settings, a mapping with its names, or those of ``load_settings``.

    Warns where more lines were not understood than the settings allow, and of snapshots that are
    left out because they lie in the future. Raises SettingsError for settings that are wrong,
    InputError where there is nothing to audit, ContractError, before anything runs, where a table
    has not the columns that it must have, and SparkError where Spark fails over dumps.

    >>> report = audit("dumps/")  # doctest: +SKIP
    >>> report["orphaned_queues"].to_pandas()  # doctest: +SKIP
    """
    settings = settings_of(settings)
    if isinstance(source, Mapping):
        check_named(source)
        if spark is not None or any(hasattr(rows, "sparkSession") for rows in source.values()):
            from .spark.auditing import audit_tables  # noqa: PLC0415 - Spark takes its time

            return audit_tables(source, settings, spark)
    elif not isinstance(source, str | PathLike | Sequence):
        raise InputError(
            "expected dumps, or snapshot tables by name, as audit({'heartbeats': ..., "
            f"'topic_routes': ...}}), came {type(source).__name__}; "
            "rebalance_audit.spark.audit(heartbeats, topic_routes) takes DataFrames"
        )
    with temporary_folder() as folder, _engine_on(spark) as engine:
        task = new_task(folder, settings)
        if isinstance(source, Mapping):
            given = [
                (table, with_declared_nulls(as_arrow(table.name, source[table.name]), table))
                for table in SNAPSHOT_TABLES
                if table.name in source
            ]
            check_tables((table, rows.schema) for table, rows in given)
            for table, rows in given:
                _write(rows, task.snapshots / table.name)
        else:
            _ingest(engine, source, task)
        inputs = Inputs(Snapshots.open(task.snapshots), settings, in_driver=not _is_here(spark))
        published = publish_audit(engine, task, QUIET, inputs)
    report = Report(folder, published, settings)
    weakref.finalize(report, folder.delete)
    return report


class Report(Mapping[str, pa.Table]):
    """The result of an audit: the report tables by name, as Arrow, and answers about its moments.

    A shell shows the worst that was found, a notebook the page of ``rebalance-audit report``.
    """

    def __init__(self, folder: Location, published: PublishedRun, settings: Settings) -> None:
        self.summary = published.summary
        self._published = published
        self._settings = settings
        self._snapshots = folder / "snapshots"
        self._reports = Reports(folder / "reports")
        self._tables = PublishedTables(self._reports, published)

    def __getitem__(self, name: str) -> pa.Table:
        if name not in self._published.tables:
            raise KeyError(f"no report table {name!r}: {near_names(name, self)}")
        return self._tables.read(name, declared_table(name).schema.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._published.tables)

    def __len__(self) -> int:
        return len(self._published.tables)

    def explain(
        self,
        group: str,
        topic: str,
        at: Time | None = None,
        cluster: str | None = None,
        *,
        full: bool = False,
    ) -> ShellText:
        """Explains a topic: what this report has of it at a moment, why, what repairs it, and who
        takes what by lists and routes.

        ``at`` is a time or the text of one (UTC where it has no zone): the last snapshot up to it
        is explained; None: the last one. ``full``: the pictures have every broker, queue and
        client. Raises InputError for a group, topic, cluster or time that is not there, with those
        that come near, and SettingsError for what is not a time.
        """
        (moment,) = self._moments(group, topic, at, cluster)
        moment = replace(moment, date=self._published.date)
        return explain_moment(moment, self._settings, published=self._tables, is_full=full)

    def what_if(
        self,
        group: str,
        topic: str | None,
        changes: Change | Iterable[Change],
        at: Time | None = None,
        cluster: str | None = None,
        *,
        full: bool = False,
    ) -> Prediction:
        """Predicts what changes do to a topic of a group, one after the other; None: to all topics.

        Changes are made by the functions of ``rebalance_core``: leave, join, separate_ids,
        use_strategy, subscribe_all, add_broker, remove_broker, resize, unify_list, mend. Raises as
        ``explain`` does, InputError for what is not a change, and ChangeError where one cannot be
        made. ``full``: the pictures have every broker, queue and client.

        >>> report.what_if("G", "T", [leave("10.0.0.4@app")]).safe  # doctest: +SKIP
        """
        made = _changes_of(changes)
        moments = self._moments(group, topic, at, cluster)
        return predict_moments(moments, made, self._settings, is_full=full)

    def _moments(
        self, group: str, topic: str | None, at: Time | None, cluster: str | None
    ) -> list[Moment]:
        time = time_of("at", None if at is None else str(at))
        question = MomentQuestion(group, topic, time, cluster)
        return moments_of_tables(self._snapshots, question, self._settings)

    def __repr__(self) -> str:
        missing, lines = closing_lines(self._tables, self._settings, WIDTH)
        return "\n".join([*missing, *lines])

    def _repr_html_(self) -> str:
        """The page, in a frame: its style and script are not the notebook's."""
        settings = self._settings
        look = Look(_TOP, settings.paths.finding_pages, settings.reader)
        page, _ = report_text(self._reports, self._published, "html", look)
        return f'<iframe srcdoc="{escape(page)}" width="100%" height="800"></iframe>'


def settings_of(given: GivenSettings) -> Settings:
    """The settings, in whichever form they are given."""
    if isinstance(given, Settings):
        return given
    if given is None or isinstance(given, str | Path):
        return load_settings(given)
    if isinstance(given, Mapping):
        return checked(Settings, "of audit()", dict(given))
    raise SettingsError(f"expected a file of settings or a mapping of their names, came {given!r}")


def new_task(folder: Location, settings: Settings) -> Task:
    """A run that begins now, of tables that are there for it alone, with reports in a folder."""
    began = now()
    run = Run(new_run_id(began), began)
    window = Window(future=future_after(began, settings.bounds.future_days))
    reports, snapshots = folder / "reports", folder / "snapshots"
    return Task(run, snapshots, reports, window, settings, KnownIssues(), are_staged=True)


def _changes_of(given: Change | Iterable[Change]) -> list[Change]:
    changes: list[Any] = [given]
    if isinstance(given, Iterable) and not isinstance(given, str):
        changes = list(given)
    for each in changes:
        if not isinstance(each, Change):
            raise InputError(
                "expected changes that functions of rebalance_core make, as [separate_ids()], "
                f"came {each!r}"
            )
    return changes


def check_named(tables: Iterable[str]) -> None:
    """InputError for a name that no snapshot table has, and where one is missing."""
    names = [table.name for table in SNAPSHOT_TABLES]
    for name in tables:
        if name not in names:
            raise InputError(f"no snapshot table {name!r}: {near_names(name, names)}")
    for table in (HEARTBEATS, TOPIC_ROUTES):
        if table.name not in tables:
            raise InputError(
                f"no table {table.name}: expected heartbeats, the lists of the brokers, and "
                "topic_routes, which have the queues"
            )


def as_arrow(name: str, rows: Any) -> pa.Table:
    """The rows of a snapshot table, of pandas, Polars or Arrow; else InputError."""
    if hasattr(rows, "convert_dtypes"):
        # pandas: numbers beside a null are not floats.
        try:
            return pa.Table.from_pandas(rows.convert_dtypes(), preserve_index=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise InputError(
                f"{name}: expected values of one type in each column, came {'; '.join(error.args)}"
            ) from error
    if isinstance(rows, pa.Table) or hasattr(rows, "__arrow_c_stream__"):
        return pa.table(rows)
    raise InputError(
        f"{name}: expected a DataFrame, the name of a table or view in a session of Spark, or a "
        f"table of pandas, Polars or Arrow, came {type(rows).__name__}"
    )


@contextmanager
def temporary_folder() -> Iterator[Location]:
    """A new folder, which stays, unless the block fails."""
    folder = Location(tempfile.mkdtemp(prefix="rebalance-audit-"))
    try:
        yield folder
    except BaseException:
        folder.delete()
        raise


@contextmanager
def _engine_on(spark: SparkSession | None) -> Iterator[Engine]:
    if spark is None:
        with LocalEngine() as local:
            yield local
        return
    from .spark.session import suited  # noqa: PLC0415
    from .spark.spark_engine import SparkEngine, in_a_sentence  # noqa: PLC0415 - Spark takes its time

    with in_a_sentence(), suited(spark) as own, SparkEngine(own) as engine:
        yield engine


def _is_here(spark: SparkSession | None) -> bool:
    """True if the engine's workers see the temporary folders of this machine."""
    if spark is None:
        return True
    from .spark.spark_engine import is_here  # noqa: PLC0415 - Spark takes its time

    return is_here(spark)


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

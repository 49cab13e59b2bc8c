"""The audit of DataFrames, of one date or of several: snapshot tables in, report tables out.

    rows -> pieces of groups -> allocations, by the UDF -> rows of the report tables

Nothing is staged: the rows go from their plan to the fold by Arrow, where Spark reads them, and
report tables are DataFrames.
"""

import warnings
import weakref
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import cached_property
from typing import Any, cast

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from rebalance_core.errors import near_names

from ..audit import audit as publish_audit
from ..declared.kinds import MEMBERS_LEFT
from ..engines.environment import sentence_of_spark
from ..errors import AuditError, InputError, NothingToAuditError, QuarantineError, SettingsError
from ..fold.heartbeat_rounds import checked_round_seconds
from ..judge.moment import Moment
from ..pipeline.audit import with_window
from ..pipeline.ingest import check_quarantine
from ..pipeline.moments import MomentQuestion, moments_of_inputs
from ..publish.run import Task
from ..reports.tables import declared_table
from ..schemas import (
    ALLOCATIONS,
    BROKER_POLLS,
    EVENTS,
    HEARTBEATS,
    PROBLEMS,
    RUNS,
    TOPIC_ROUTES,
)
from ..shell import asked
from ..shell.asked import (
    as_arrow,
    check_named,
)
from ..shell.report import Report
from ..storage import PublishedRun
from ..texts.failures import sentence_of
from . import dataframes, frame_inputs
from .dataframe_rows import Names, prepared
from .schemas import spark_schema
from .session import adopted, fitting_workers, suited
from .spark_engine import SparkEngine

#: The tables of which the driver makes the rows, and why; those of the others are read where the
#: tasks of their groups made them.
MADE_BY_THE_DRIVER = {
    "events": "groups of several tasks see one event: their sightings are merged, and problems"
    " that began with one that several groups saw are given its name",
    "quarantine": "each step adds the rows that it refuses",
    "gaps": "most are found in all that was published",
    "verdict": "it is made of all that was published",
    "runs": "it names what was published",
}


def audit(
    heartbeats: Any = None,
    topic_routes: Any = None,
    broker_polls: Any = None,
    *,
    lines: Any = None,
    settings: asked.GivenSettings = None,
    known_issues: asked.GivenIssues = None,
    date: asked.Day | None = None,
    since: asked.Time | None = None,
    until: asked.Time | None = None,
    history: asked.GivenHistory | None = None,
    columns: Names | None = None,
    round_seconds: int | None = None,
    spark: SparkSession | None = None,
    **further: Any,
) -> "SparkReport":
    """Audits snapshot tables: DataFrames, names of tables or views, or of pandas, Polars, Arrow.

    ``lines``, in place of tables, are the lines of dumps, one a row: ``spark.read.text("dumps/")``,
    or what a sink of raw answers has. ``columns`` may name the column, ``{"line": "value"}``, and
    that of the file that a refused line is named with, ``"file"``.

    ``further`` snapshot tables by their names, as ``queue_offsets``. The audit runs in the session
    of the first DataFrame, or in the active one.

    ``columns`` has theirs by our names, ``{"client_id": "clientId"}``, or what is made of theirs,
    ``{"snapshot_time": F.timestamp_millis("ts")}``; by table where tables differ,
    ``{"heartbeats": {"client_id": "clientId"}}``. Case does not matter. Whole numbers of any width,
    decimals without digits behind the point and times as ISO 8601, UTC where they have no zone, are
    taken.

    ``settings``, ``known_issues``, ``date``, ``since`` and ``until`` are those of
    ``rebalance_audit.audit``; of files that have statistics Spark reads what lies in the window.
    ``history`` is the schema that ``save_as_tables`` writes to, or a folder of reports: what has a
    slash. A schema without any run is one before the first night.

    With a window Spark also leaves out the partitions of other days, where a table has a column
    ``dt`` or ``date``.

    ``round_seconds``, as 60: each heartbeat has a time of its own, as in a sink of events. They are
    put into rounds of so many seconds, as a collector would have been given them: a client is
    listed from its heartbeat until it expires. Without it tables of rounds are expected.

    A row whose values break the contract is left out, and named in ``quarantine``, and so is a line
    that is not understood; it warns where these are more than the settings allow. Raises
    ContractError, before anything runs, where columns are missing or of a wrong type, InputError
    for what is not a table or a name, SettingsError for settings that are wrong.

    >>> result = audit(heartbeats, topic_routes)  # doctest: +SKIP
    >>> result.orphaned_queues.where("persistence = 'PERSISTENT'").show()  # doctest: +SKIP
    """
    if isinstance(heartbeats, Mapping):
        raise InputError(
            "expected heartbeats as a table, came a mapping: audit(**tables), or "
            "rebalance_audit.audit(tables)"
        )
    given = {
        HEARTBEATS.name: heartbeats,
        TOPIC_ROUTES.name: topic_routes,
        BROKER_POLLS.name: broker_polls,
        **further,
    }
    tables = {name: rows for name, rows in given.items() if rows is not None}
    if lines is not None and (tables or round_seconds is not None):
        beside = ", ".join(tables) or "round_seconds: lines have their rounds"
        raise InputError(f"expected lines or snapshot tables, came lines and {beside}")
    make_task = asked.asked_task(settings, known_issues, date, since, until)
    return audit_tables(tables, make_task, history, spark, columns, round_seconds, lines)


def audit_tables(
    tables: Mapping[str, Any],
    make_task: asked.MakeTask,
    history: asked.GivenHistory | None = None,
    spark: SparkSession | None = None,
    columns: Names | None = None,
    round_seconds: int | None = None,
    lines: Any = None,
) -> "SparkReport":
    """The same of tables by their names, or of lines."""
    length = None if round_seconds is None else checked_round_seconds(round_seconds)
    spark = spark or _session_of([*tables.values(), lines])
    given = tables if lines is None else {frame_inputs.LINES: lines}
    with fitting_workers(spark):
        frames = {name: _as_frame(spark, name, rows) for name, rows in given.items()}
    if lines is None:
        if HEARTBEATS.name in frames and TOPIC_ROUTES.name not in frames:
            frame_inputs.check_no_lines(frames[HEARTBEATS.name])
        check_named(tables)
    with asked.temporary_folder() as folder, suited(spark) as own:
        engine = SparkEngine(own)
        task = with_window(make_task(folder, dataframes.history_in(spark, history)))
        settings = task.settings
        expiry = settings.heartbeat_expiry_seconds
        # A heartbeat from before the window is listed in its first rounds.
        window = task.window if length is None else task.window.earlier(expiry)
        try:
            of_lines = in_rounds = None
            if lines is not None:
                came = adopted(
                    own, frame_inputs.as_lines(frames[frame_inputs.LINES], columns or {})
                )
                of_lines = frame_inputs.read_lines(
                    engine, came, frame_inputs.size_of(came), settings
                )
                frames, columns = dict(of_lines.tables), None
            in_window = prepared(frames, columns, window, settings.route_max_age_seconds)
            rows = {name: adopted(own, data_frame) for name, data_frame in in_window.items()}
            if length is not None:
                in_rounds = frame_inputs.FramesInRounds.of(rows[HEARTBEATS.name], length, expiry)
            by_rounds = rows if in_rounds is None else in_rounds(rows)
            inputs = frame_inputs.FrameInputs(
                frame_inputs.FrameTables(folder, rows=by_rounds, lines=of_lines), settings
            )
            published = publish_audit(engine, task, asked.QUIET, inputs)
            if of_lines is not None:
                read, refused = of_lines.counts, of_lines.refused
                try:
                    check_quarantine(read, refused, "the table quarantine", settings)
                except QuarantineError as error:
                    warnings.warn(str(error), stacklevel=3)
        except BaseException:
            engine.close()
            raise
    report = SparkReport(task, published, engine, rows, spark, in_rounds)
    weakref.finalize(report, folder.delete)
    # At the end of Python its Java may be gone, with all that it kept.
    weakref.finalize(report, engine.close).atexit = False
    return report


def _session_of(tables: Iterable[Any]) -> SparkSession:
    of_frames = (table.sparkSession for table in tables if hasattr(table, "sparkSession"))
    spark: SparkSession | None = next(of_frames, None) or SparkSession.getActiveSession()
    if spark is None:
        raise InputError("no session of Spark is active: audit(..., spark=spark) names one")
    return spark


def _as_frame(spark: SparkSession, name: str, rows: Any) -> DataFrame:
    if isinstance(rows, str):
        try:
            frame = spark.table(rows)
            frame.schema  # noqa: B018 - Connect asks the server here
        except PySparkException as error:
            raise InputError(
                f"{name}: no table or view {rows!r} in this session: "
                f"{sentence_of_spark(str(error))}"
            ) from error
        return frame
    is_frame = hasattr(rows, "sparkSession")
    return cast(DataFrame, rows) if is_frame else dataframes.to_frame(spark, as_arrow(name, rows))


class SparkReport(Report):
    """The result of an audit: each report table as a DataFrame, by its name: ``orphaned_queues``.

    By name in brackets it is a table of Arrow. ``print`` shows the verdict and the worst.
    """

    def __init__(
        self,
        task: Task,
        published: PublishedRun,
        engine: SparkEngine,
        rows: Mapping[str, DataFrame],
        spark: SparkSession,
        in_rounds: frame_inputs.FramesInRounds | None = None,
    ) -> None:
        super().__init__(task, published)
        self._engine, self._rows, self._spark = engine, rows, spark
        self._in_rounds = in_rounds

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *self]

    def __getattr__(self, name: str) -> DataFrame:
        if name.startswith("_") or name not in list(self):
            raise AttributeError(f"no report table {name!r}: {near_names(name, self)}")
        with fitting_workers(self._spark):
            if name == ALLOCATIONS.name:
                return dataframes.allocations_of(self._made[1], self._settings.masking.to_masking())
            table = RUNS if name == RUNS.name else declared_table(name)
            # Problems that began with an event of several groups are given its name.
            is_renamed = (
                name == PROBLEMS.name and MEMBERS_LEFT in self[EVENTS.name]["kind"].to_pylist()
            )
            if is_renamed or name in MADE_BY_THE_DRIVER:
                return dataframes.to_frame(self._spark, self[name], spark_schema(table))
            return dataframes.rows_of_pieces(self._made[0], table)

    @property
    def situations(self) -> DataFrame:
        """The distinct situations, as the UDF ``recompute_allocations`` has them: a row for all
        that the members of a group could see of a topic. ``state_runs`` has when it was so.
        """
        with fitting_workers(self._spark):
            return dataframes.situations_of(self._made[1], self._settings.masking.to_masking())

    @cached_property
    def _made(self) -> list[DataFrame]:
        """The pieces of the report tables, and the situations with what came of each."""
        return [adopted(self._spark, data_frame) for data_frame in self._engine.read_again()]

    def save_as_tables(self, schema: str) -> None:
        """Writes every report table to ``schema``, as ``catalog.schema``, with the columns ``date``
        and ``run_id``; ``runs`` last, which names the run that counts for each date.

        A date that is there is replaced, the others stay. A table that is not there is made, in the
        catalogue's own format, by ``date`` as partitions. ``read_tables`` reads them, and
        ``audit(..., history=schema)`` compares the next run with them.
        """
        dataframes.save(schema, self._published, self, lambda name: getattr(self, name))

    def _moments(self, question: MomentQuestion) -> list[Moment]:
        with fitting_workers(self._spark), SparkEngine(self._engine.spark) as engine:
            rows = self._rows
            if self._in_rounds is not None:
                # Its UDFs are made here, where they get the Python that is lent.
                rows = self._in_rounds(
                    {
                        name: frame_inputs.rows_of_group(table, question.group)
                        for name, table in rows.items()
                    }
                )
            inputs = frame_inputs.FrameInputs(
                frame_inputs.FrameTables(self._task.snapshots, rows=rows), self._settings
            )
            names = lambda: {*map(str, self["group_health"]["consumer_group"].to_pylist())}  # noqa: E731
            return moments_of_inputs(engine, inputs, question, names)


# ---------------------------------------------------------------- several dates


def backfill(
    *tables: Any, first: asked.Day, last: asked.Day, schema: str, **given: Any
) -> DataFrame:
    """Audits each date (UTC) from ``first`` to ``last`` and saves it to ``schema``, in their order.

    ``tables`` and ``given`` are those of ``audit``. Each date is compared with those before it in
    the schema, so that it is as if each night had been audited in its turn. Dates that are there
    are replaced. Gives the rows of ``runs`` of the dates that were saved.

    A date without rows is left out, with a warning. A date that fails stops no other one: in the
    end an AuditError names it. Raises NothingToAuditError where no date has rows, SettingsError for
    arguments that are wrong.

    >>> backfill(heartbeats, topic_routes, first="2026-11-14", last="2026-11-20",
    ...     schema="main.rocketmq_audit").select("date", "state", "sentence").show()
    ... # doctest: +SKIP
    """
    first_day, last_day = asked.day_of("first", first), asked.day_of("last", last)
    if first_day > last_day:
        raise SettingsError(f"expected first before last, came {first_day} and {last_day}")
    saved, failed = [], defaultdict(list)
    for number in range((last_day - first_day).days + 1):
        day = first_day + timedelta(days=number)
        try:
            result = audit(*tables, date=day, history=schema, **given)
            result.save_as_tables(schema)
            saved.append(day)
        except SettingsError:
            raise
        except NothingToAuditError as error:
            warnings.warn(f"{day} is left out: {error}", stacklevel=2)
        except Exception as error:  # whatever it is, the other dates are audited
            # What is in words already may have options of the command behind it.
            said = str(error) if isinstance(error, AuditError) else sentence_of(error)
            failed[said].append(str(day))
    if failed:
        several = "; ".join(f"{', '.join(dates)}: {said}" for said, dates in failed.items())
        raise AuditError(f"{len(saved)} dates were saved to {schema}, others failed: {several}")
    if not saved:
        raise NothingToAuditError(f"no date from {first_day} to {last_day} has a list of members")
    return dataframes.read_tables(result.runs.sparkSession, schema, RUNS.name, saved).orderBy(
        "date"
    )

"""The audit of DataFrames: snapshot tables in, report tables out, as DataFrames.

    rows -> pieces of groups -> allocations, by the UDF -> rows of the report tables

Nothing is staged: the rows go from their plan to the fold by Arrow, where Spark reads them.
"""

import warnings
import weakref
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from rebalance_core.errors import near_names

from ..audit import audit as publish_audit
from ..config.masking import Masking
from ..config.settings import Settings
from ..declared.kinds import MEMBERS_LEFT
from ..engines.environment import sentence_of_spark
from ..errors import InputError, QuarantineError
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
from ..shell.asked import (
    QUIET,
    Day,
    GivenHistory,
    GivenIssues,
    GivenSettings,
    MakeTask,
    Time,
    as_arrow,
    asked_task,
    check_named,
    temporary_folder,
)
from ..shell.report import Report
from ..storage import PublishedRun
from .dataframe_rows import Names, prepared
from .dataframes import allocations_of, rows_of_pieces, situations_of, to_frame
from .dump_lines import LINES, ReadLines, as_lines, check_no_lines, read_lines
from .frame_inputs import FrameInputs, FrameTables, of_group, size_of
from .heartbeat_frames import FramesInRounds
from .saved_tables import history_in, save
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
    settings: GivenSettings = None,
    known_issues: GivenIssues = None,
    date: Day | None = None,
    since: Time | None = None,
    until: Time | None = None,
    history: GivenHistory | None = None,
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
    ``dt`` or ``date``: see ``days``.

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
    make_task = asked_task(settings, known_issues, date, since, until)
    return audit_tables(tables, make_task, history, spark, columns, round_seconds, lines)


def audit_tables(
    tables: Mapping[str, Any],
    make_task: MakeTask,
    history: GivenHistory | None = None,
    spark: SparkSession | None = None,
    columns: Names | None = None,
    round_seconds: int | None = None,
    lines: Any = None,
) -> "SparkReport":
    """The same of tables by their names, or of lines."""
    length = None if round_seconds is None else checked_round_seconds(round_seconds)
    spark = spark or _session_of([*tables.values(), lines])
    given = tables if lines is None else {LINES: lines}
    with fitting_workers(spark):
        frames = {name: _as_frame(spark, name, rows) for name, rows in given.items()}
    if lines is None:
        if HEARTBEATS.name in frames and TOPIC_ROUTES.name not in frames:
            check_no_lines(frames[HEARTBEATS.name])
        check_named(tables)
    with temporary_folder() as folder, suited(spark) as own:
        engine = SparkEngine(own)
        task = with_window(make_task(folder, history_in(spark, history)))
        settings = task.settings
        expiry = settings.heartbeat_expiry_seconds
        # A heartbeat from before the window is listed in its first rounds.
        window = task.window if length is None else task.window.earlier(expiry)
        try:
            of_lines = in_rounds = None
            if lines is not None:
                came = adopted(own, as_lines(frames[LINES], columns or {}))
                of_lines = read_lines(engine, came, size_of(came), settings)
                frames, columns = dict(of_lines.tables), None
            in_window = prepared(frames, columns, window, settings.route_max_age_seconds)
            rows = {name: adopted(own, data_frame) for name, data_frame in in_window.items()}
            if length is not None:
                in_rounds = FramesInRounds.of(rows[HEARTBEATS.name], length, expiry)
            read = rows if in_rounds is None else in_rounds(rows)
            inputs = FrameInputs(FrameTables(folder, rows=read, lines=of_lines), settings)
            published = publish_audit(engine, task, QUIET, inputs)
            if of_lines is not None:
                _warn_of_quarantine(of_lines, settings)
        except BaseException:
            engine.close()
            raise
    report = SparkReport(task, published, engine, rows, spark, in_rounds)
    weakref.finalize(report, folder.delete)
    # At the end of Python its Java may be gone, with all that it kept.
    weakref.finalize(report, engine.close).atexit = False
    return report


def _warn_of_quarantine(read: ReadLines, settings: Settings) -> None:
    try:
        check_quarantine(read.counts, read.refused, "the table quarantine", settings)
    except QuarantineError as error:
        warnings.warn(str(error), stacklevel=4)


def _session_of(tables: Iterable[Any]) -> SparkSession:
    of_frames = (table.sparkSession for table in tables if hasattr(table, "sparkSession"))
    spark: SparkSession | None = next(of_frames, None) or SparkSession.getActiveSession()
    if spark is None:
        raise InputError("no session of Spark is active: audit(..., spark=spark) names one")
    return spark


def _as_frame(spark: SparkSession, name: str, rows: Any) -> DataFrame:
    if hasattr(rows, "sparkSession"):
        frame: DataFrame = rows
        return frame
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
    return to_frame(spark, as_arrow(name, rows))


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
        in_rounds: FramesInRounds | None = None,
    ) -> None:
        super().__init__(task, published)
        self._in_rounds = in_rounds
        self._engine = engine
        self._rows = rows
        self._spark = spark

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *self]

    def __getattr__(self, name: str) -> DataFrame:
        if name.startswith("_") or name not in list(self):
            raise AttributeError(f"no report table {name!r}: {near_names(name, self)}")
        with fitting_workers(self._spark):
            if name == ALLOCATIONS.name:
                return allocations_of(self._made[1], self._masking)
            table = RUNS if name == RUNS.name else declared_table(name)
            if self._is_of_the_driver(name):
                return to_frame(self._spark, self[name], spark_schema(table))
            return rows_of_pieces(self._made[0], table)

    @property
    def situations(self) -> DataFrame:
        """The distinct situations, as the UDF ``recompute_allocations`` has them: a row for all
        that the members of a group could see of a topic. ``state_runs`` has when it was so.
        """
        with fitting_workers(self._spark):
            return situations_of(self._made[1], self._masking)

    @cached_property
    def _made(self) -> list[DataFrame]:
        """The pieces of the report tables, and the situations with what came of each."""
        return [adopted(self._spark, data_frame) for data_frame in self._engine.read_again()]

    @property
    def _masking(self) -> Masking:
        return self._settings.masking.to_masking()

    def _is_of_the_driver(self, name: str) -> bool:
        # Problems that began with it are given its name.
        is_renamed = name == PROBLEMS.name and MEMBERS_LEFT in self[EVENTS.name]["kind"].to_pylist()
        return is_renamed or name in MADE_BY_THE_DRIVER

    def save_as_tables(self, schema: str) -> None:
        """Writes every report table to ``schema``, as ``catalog.schema``, with the columns ``date``
        and ``run_id``; ``runs`` last, which names the run that counts for each date.

        A date that is there is replaced, the others stay. A table that is not there is made, in the
        catalogue's own format, by ``date`` as partitions. ``read_tables`` reads them, and
        ``audit(..., history=schema)`` compares the next run with them.
        """
        save(schema, self._published, self, lambda name: getattr(self, name))

    def _moments(self, question: MomentQuestion) -> list[Moment]:
        with fitting_workers(self._spark), SparkEngine(self._engine.spark) as engine:
            rows = self._rows
            if self._in_rounds is not None:
                its = {
                    name: of_group(data_frame, question.group) for name, data_frame in rows.items()
                }
                # Its UDFs are made here, where they get the Python that is lent.
                rows = self._in_rounds(its)
            inputs = FrameInputs(FrameTables(self._task.snapshots, rows=rows), self._settings)
            return moments_of_inputs(engine, inputs, question, self._groups)

    def _groups(self) -> set[str]:
        return {*map(str, self["group_health"]["consumer_group"].to_pylist())}

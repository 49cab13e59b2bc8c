"""The jobs over DataFrames, for a shell, a notebook or another job: snapshots in, reports out.

Nothing here starts or stops a session, or knows the time of day. What a function is given is
written to a folder first, as Parquet by Spark, and the same engine audits it that audits a night;
the folder is removed whatever happens. Nested lists that go from rows straight to Python would take
minutes.
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from rebalance_core import Change, WhatIf

from ..contract import check_columns, type_name
from ..engines.engine import Slice
from ..engines.spark import SparkEngine
from ..errors import InputError
from ..fold.kernel import Cutting
from ..fold.slices import TableStep
from ..judge.moment import Moment
from ..masking import Masking
from ..pieces import Piece, unpack_rows
from ..reports.read import declared_table, published_runs
from ..schemas import BROKER_POLLS, HEARTBEATS, SNAPSHOT_TABLES, Table, comment_of
from ..session import AS_NAMED, suited
from ..settings import Settings
from ..storage import Location, Published, Reports
from ..text import in_utc
from ..window import Window
from .audit import fold_slices, report_tables
from .explain import ShellText, explain_moment, predict_moment
from .moments import Question, moments_of_rows
from .terms import terms_of

#: A file that Spark writes for the audit has so many rows at most: it is read whole.
_ROWS_OF_A_FILE = 2_000_000
_WHERE_TO_WRITE = (
    "expected staging=FOLDER, for the rows are written where Spark's workers reach them, and this "
    "session's are on other machines"
)
#: One row per queue that changes hands.
_MOVE = "broker_name string, queue_id int, before array<string>, after array<string>"


@dataclass(frozen=True)
class Frames:
    """The snapshot tables as DataFrames, and what is asked of them; two of them must be there.

    ``route_polls`` and ``route_contents`` count in place of ``topic_routes`` where both are there:
    they say when each nameserver was asked. Without them it was asked when the round began.

    Each method raises ContractError, before anything runs, where a table has not the columns that
    it must have.

    >>> frames = Frames(heartbeats, topic_routes)  # doctest: +SKIP
    >>> frames.audit()["orphaned_queues"].show()  # doctest: +SKIP
    """

    heartbeats: DataFrame
    topic_routes: DataFrame
    broker_polls: DataFrame | None = None
    queue_offsets: DataFrame | None = None
    client_states: DataFrame | None = None
    route_polls: DataFrame | None = None
    route_contents: DataFrame | None = None

    def audit(
        self, settings: Settings | None = None, *, staging: str | None = None
    ) -> dict[str, DataFrame]:
        """The report tables by name, as DataFrames.

        The audit runs here; what comes back is its result. ``staging``: a folder that Spark's
        workers reach, in which the rows are written and removed again; on this machine a temporary
        one does. Raises InputError where a folder for staging has to be named.
        """
        settings = settings or Settings()
        spark = self._spark
        tables = self._checked(self._cutting(1, settings))
        with suited(spark), _staging(spark, staging) as folder, SparkEngine(spark) as engine:
            slices = _staged(tables, folder, engine)
            cutting = self._cutting(engine.shards(sum(each.size for each in slices)), settings)
            step = TableStep(cutting, Window(), settings.route_max_age_seconds)
            folded = fold_slices(engine, slices, step, cutting)
            pieces = list(engine.collect(folded.judge(terms_of(settings), {}, settings)))
            made = report_tables(has_clients=self.client_states is not None)
            return {table.name: _frame(spark, table, pieces) for table in made}

    def explain(
        self,
        group: str,
        topic: str,
        *,
        at: datetime | None = None,
        cluster: str | None = None,
        settings: Settings | None = None,
    ) -> ShellText:
        """Who takes what of a topic, why, what is wrong, what repairs it and what if, as a text.

        The text is in the language of the settings: ``Settings(language="zh")``.
        ``at`` is a time (UTC where it has no zone): the last snapshot up to it is explained; None:
        the last one. Raises InputError for a group, topic, cluster or time that is not there, with
        those that come near.

        >>> frames.explain("G_S2", "T_S2")  # doctest: +SKIP
        G_S2 on T_S2, cluster DefaultCluster
        ...
        """
        settings = settings or Settings()
        moment = self._moment(Question(group, topic, at and in_utc(at), cluster), settings)
        return explain_moment(moment, settings)

    def what_if(
        self,
        group: str,
        topic: str,
        changes: Sequence[Change],
        *,
        at: datetime | None = None,
        cluster: str | None = None,
        settings: Settings | None = None,
    ) -> Prediction:
        """What the changes would do to a group and topic, one after the other.

        Changes are made by the functions of ``rebalance_core``: leave, join, separate_ids,
        use_strategy, subscribe_all, add_broker, remove_broker, resize, unify_list, mend. Raises as
        ``explain`` does, and ChangeError where a change cannot be made.

        >>> from rebalance_core import leave
        >>> predicted = frames.what_if("G", "T", [leave("10.0.0.4@app")])  # doctest: +SKIP
        >>> predicted.moves.show()  # doctest: +SKIP
        """
        settings = settings or Settings()
        moment = self._moment(Question(group, topic, at and in_utc(at), cluster), settings)
        answer, text = predict_moment(moment, changes, settings)
        return Prediction(text, answer, self._spark, settings.masking.to_masking())

    @property
    def _spark(self) -> SparkSession:
        """The session that they are of."""
        return self.heartbeats.sparkSession

    def _cutting(self, shards: int, settings: Settings) -> Cutting:
        """How they become pieces."""
        by_id = self.route_polls is not None and self.route_contents is not None
        return Cutting(shards, settings.heartbeat_expiry_seconds, route_ids=by_id)

    def _checked(self, cutting: Cutting) -> dict[Table, DataFrame]:
        """The tables that are read; ContractError where one has not the columns it must have."""
        given = {table: getattr(self, table.name, None) for table in SNAPSHOT_TABLES}
        checked = {t: check_contract(t, rows) for t, rows in given.items() if rows is not None}
        return {table: checked[table] for table in cutting.tables() if table in checked}

    def _moment(self, question: Question, settings: Settings) -> Moment:
        """The moment of a question; the rows of the one group come to this process."""
        cutting = self._cutting(1, settings)
        tables = self._checked(cutting)
        with suited(self._spark):
            rows = {
                table.name: _collected(_of_group(table, frame, question.group)).cast(table.schema)
                for table, frame in tables.items()
            }
            groups: set[str] = set()
            if not any(rows[t.name].num_rows for t in (HEARTBEATS, BROKER_POLLS) if t in tables):
                names = tables[HEARTBEATS].select("consumer_group").distinct()
                groups = {row[0] for row in names.collect()}
        (moment,) = moments_of_rows(rows, cutting, question, settings, groups)
        return moment


def audit_frames(
    heartbeats: DataFrame,
    topic_routes: DataFrame,
    broker_polls: DataFrame | None = None,
    queue_offsets: DataFrame | None = None,
    client_states: DataFrame | None = None,
    settings: Settings | None = None,
    *,
    route_polls: DataFrame | None = None,
    route_contents: DataFrame | None = None,
    staging: str | None = None,
) -> dict[str, DataFrame]:
    """The report tables by name, as DataFrames: ``Frames(...).audit(...)`` in one call.

    >>> reports = audit_frames(heartbeats, topic_routes)  # doctest: +SKIP
    >>> reports["orphaned_queues"].show()  # doctest: +SKIP
    """
    others = (broker_polls, queue_offsets, client_states, route_polls, route_contents)
    return Frames(heartbeats, topic_routes, *others).audit(settings, staging=staging)


@dataclass(frozen=True)
class Prediction:
    """What changes would do: ``text`` for people, ``answer`` for programs, ``moves`` for Spark."""

    text: ShellText
    answer: WhatIf
    _spark: SparkSession
    _masking: Masking

    def __repr__(self) -> str:
        return str(self.text)

    @cached_property
    def moves(self) -> DataFrame:
        """One row per queue that changes hands: broker_name, queue_id, and who takes it."""
        rows = [
            # Plain texts: Java cannot read what a class of Python's is pickled as.
            (
                move.queue.broker_name,
                move.queue.queue_id,
                [str(each) for each in move.before],
                [str(each) for each in move.after],
            )
            for move in self._masking.mask_all(self.answer.moves)
        ]
        return self._spark.createDataFrame(rows, _MOVE)


@contextmanager
def _staging(spark: SparkSession, named: str | None) -> Iterator[Location]:
    """A new folder that the workers reach; it is removed whatever happens."""
    if named is None and not str(spark.conf.get("spark.master", "local")).startswith("local"):
        raise InputError(_WHERE_TO_WRITE)
    if named is None:
        with tempfile.TemporaryDirectory(prefix="rebalance-audit-") as temporary:
            yield Location(temporary)
        return
    folder = Location(named) / f"rebalance-audit-{secrets.token_hex(8)}"
    try:
        yield folder
    finally:
        folder.delete()


def _staged(
    tables: Mapping[Table, DataFrame], folder: Location, engine: SparkEngine
) -> list[Slice]:
    """Writes the tables; their files as slices."""
    for table, rows in tables.items():
        place = (folder / table.name).uri
        rows.write.option("maxRecordsPerFile", _ROWS_OF_A_FILE).parquet(place)
        if not (folder / table.name).exists():
            raise InputError(_WHERE_TO_WRITE)
    return [
        Slice(number, path.rsplit("/", 2)[-2], path, size)
        for number, (path, size) in enumerate(engine.list_below(folder.uri))
    ]


def _frame(spark: SparkSession, table: Table, pieces: Iterable[Piece]) -> DataFrame:
    """The rows of a table, from pieces that the driver has."""
    schema = table.schema
    rows = [(piece.data,) for piece in pieces if piece.kind == table.name]

    def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            data_of_batch: list[Any] = batch.column("data").to_pylist()
            for data in data_of_batch:
                yield from unpack_rows(data).cast(schema).to_batches()

    return spark.createDataFrame(rows, "data binary").mapInArrow(unpack, spark_schema(table))


def _of_group(table: Table, rows: DataFrame, group: str) -> DataFrame:
    is_of_group = "consumer_group" in table.schema.names
    return rows.where(rows["consumer_group"] == group) if is_of_group else rows


def _collected(rows: DataFrame) -> pa.Table:
    """The rows in this process, on every version of Spark and in Spark Connect."""

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as stream:
                stream.write_batch(batch)
            yield pa.RecordBatch.from_pydict({"data": [sink.getvalue().to_pybytes()]})

    packed = rows.mapInArrow(pack, "data binary").collect()
    empty = _arrow_schema(rows).empty_table()
    return pa.concat_tables([unpack_rows(bytes(row[0])) for row in packed] or [empty])


# ---------------------------------------------------------------- schemas and contracts


def spark_schema(table: Table) -> StructType:
    """The schema of a table as Spark has it, comments included."""
    struct = from_arrow_schema(table.schema)
    for field, declared in zip(struct, table.schema, strict=True):
        field.metadata = {"comment": comment_of(declared)}
    return struct


def _arrow_schema(rows: DataFrame) -> pa.Schema:
    # Some versions of Spark take no time zone: theirs is UTC.
    takes_zone = "timezone" in signature(to_arrow_schema).parameters
    zone: dict[str, Any] = {"timezone": "UTC"} if takes_zone else {}
    return to_arrow_schema(rows.schema, **zone)


def check_contract(table: Table, rows: DataFrame) -> DataFrame:
    """The table's columns of a DataFrame, in order; those that are missing are null.

    Raises ContractError as ``contract.check_columns``.
    """
    check_columns(table, _arrow_schema(rows))
    columns = []
    for field in table.schema:
        type_ = type_name(field.type)
        if field.name not in rows.columns:
            columns.append(f"CAST(NULL AS {type_}) AS {field.name}")
        elif rows.schema[field.name].dataType.simpleString() == type_:
            # To cast an array is to copy it, and nullability alone is no reason to.
            columns.append(f"`{field.name}`")
        else:
            of_struct = _by_name(f"`{field.name}`", field.type)
            columns.append(f"CAST({of_struct} AS {type_}) AS {field.name}")
    return rows.selectExpr(*columns)


def _by_name(column: str, expected: pa.DataType) -> str:
    """The column with its structs' fields in order: a cast alone would match them by position."""
    if not pa.types.is_list(expected) or not pa.types.is_struct(expected.value_type):
        return column
    fields = ", ".join(f"'{field.name}', each.{field.name}" for field in expected.value_type)
    return f"transform({column}, each -> named_struct({fields}))"


# ---------------------------------------------------------------- published reports


def read_reports(
    spark: SparkSession,
    path: str,
    table: str,
    dates: str | date | Iterable[str | date] | None = None,
) -> DataFrame:
    """A report table of some dates (None: of all that are published), with the column ``date``.

    Of each date only what its pointer names is read, and it is checked first: a run that is being
    written, or that died, adds nothing. Columns that an older run has not are null. Where a date is
    audited again before the rows are read, Spark misses its files: read again.

    Raises InputError where there is no such table or a date has no report, DamagedError where files
    of one are gone or are others.

    >>> read_reports(spark, "out/reports", "orphaned_queues").groupBy("date").count().show()
    ... # doctest: +SKIP
    """
    declared = declared_table(table)
    reports = Reports(Location(path))
    paths = [
        each
        for published in published_runs(reports, dates)
        if table in published.tables
        for each in _paths(reports, published, table)
    ]
    schema = spark_schema(declared).add("dt", "date")
    columns = ["dt AS date", *(f"`{name}`" for name in declared.schema.names)]
    if not paths:
        return spark.createDataFrame([], schema).selectExpr(*columns)
    rows = spark.read.schema(schema).options(**AS_NAMED, basePath=(reports.root / table).uri)
    return rows.parquet(*paths).selectExpr(*columns)


def _paths(reports: Reports, published: Published, table: str) -> list[str]:
    reports.dataset(published, table)  # DamagedError where it is not what was published
    return [(reports.root / file.path).uri for file in published.files[table].files]

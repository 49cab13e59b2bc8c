"""Choice of the engine that runs a job, and its start: Spark, or processes of this machine."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ..config.choices import AUTO, LOCAL, SPARK
from ..console.progress import Progress
from ..engines.engine import Engine
from ..engines.environment import check_packages
from ..engines.files import list_local_files, no_dumps
from ..engines.local import LocalEngine
from ..errors import SettingsError
from ..pipeline.inputs import require_tables
from ..schemas import SNAPSHOT_TABLES
from ..storage import Location, Snapshots

#: The bytes of text, and the rows, that take some tens of seconds without Spark ...
_MOST_DUMP_BYTES = 1 << 30
_MOST_ROWS = 20_000_000
#: ... and so much is done sooner by one process than several have started.
_BYTES_ALONE = 64 << 20
_ROWS_ALONE = 2_000_000


@dataclass(frozen=True)
class Choice:
    """An engine, and why it was taken, in one line. ``workers``: processes of the local engine."""

    engine: str
    sentence: str
    workers: int = 1


def choose_engine(
    asked: str,
    dumps: Sequence[str] | None,
    snapshots: Location,
    *,
    master: str | None,
    workers: int | None = None,
) -> Choice:
    """The engine that was asked for; else by the size of the dumps, or of the snapshot tables.

    Spark where it was called by spark-submit or with a master, and where the input does not lie on
    this machine; also for dumps of more than 1 GiB of text (an archive counts 25 times its size),
    and for tables of more than 20 million rows, by the sizes and footers of the files. ``workers``:
    processes that were asked for; None: one for each core, or one alone for a small input (64 MiB,
    2 million rows). Raises SettingsError for the local engine together with Spark's options, and
    for Spark with workers.
    """
    for_spark = "spark-submit" if _is_submitted() else "--master" if master is not None else None
    if asked == LOCAL and for_spark:
        raise SettingsError(f"expected --engine spark with {for_spark}, came --engine local")
    if workers is not None and (for_spark or asked == SPARK):
        raise SettingsError("expected --workers with --engine local, for Spark has its own")
    if asked == SPARK:
        return Choice(SPARK, "engine spark, by --engine")
    if for_spark:
        return Choice(SPARK, f"engine spark, by {for_spark}")
    size, is_for_spark, is_for_several = _size_of(dumps, snapshots)
    if asked == AUTO and workers is None and is_for_spark:
        return Choice(SPARK, f"engine spark: {size}")
    if workers is None:
        # The cores that this process may use; of a system that does not say it, all.
        processors = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))
        workers = len(processors(0)) if is_for_several else 1
    processes = "" if workers == 1 else f", in {workers} processes"
    why = "by --engine" if asked == LOCAL else f"without Spark: {size}"
    return Choice(LOCAL, f"engine local{processes}, {why}", workers)


@contextmanager
def open_engine(
    choice: Choice,
    name: str,
    dumps: Sequence[str] | None,
    snapshots: Location,
    master: str | None,
    progress: Progress,
    verbose: bool = False,
) -> Iterator[Engine]:
    """The engine of one command. ``name``: of the command, as Spark shows it.

    Its input are the dumps, else (None) the snapshot tables. Raises InputError, before Java is
    started on this machine, where they are not there.
    """
    if choice.engine == LOCAL:
        with LocalEngine(choice.workers, progress.each) as local:
            yield local
        return
    if not _is_submitted() and (master or "local").startswith("local"):
        check_input(dumps, snapshots)
    check_packages()
    from ..spark.session import spark_session, suited, tasks_under_way  # noqa: PLC0415
    from ..spark.spark_engine import SparkEngine  # noqa: PLC0415 - Spark takes its time to import

    with spark_session(f"rebalance-audit {name}", master, verbose=verbose) as spark:
        progress.watch(lambda: tasks_under_way(spark))
        with suited(spark) as own, SparkEngine(own) as engine:
            yield engine


def check_input(dumps: Sequence[str] | None, snapshots: Location) -> None:
    """InputError for an input on this machine that is not there, before Java starts.

    For a session that is started here: on a cluster a path without a scheme may lie elsewhere.
    """
    if dumps is None:
        if snapshots.is_local:
            require_tables(Snapshots.open(snapshots))
    elif list_local_files(dumps) == []:
        raise no_dumps(dumps)


def _is_submitted() -> bool:
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _size_of(dumps: Sequence[str] | None, snapshots: Location) -> tuple[str, bool, bool]:
    """An input's size in words, whether it is one for Spark, and for several processes."""
    if dumps is None:
        if not snapshots.is_local:
            return "the snapshot tables do not lie on this machine", True, True
        tables = Snapshots.open(snapshots)
        there = (table.name for table in SNAPSHOT_TABLES if tables.has(table.name))
        size, most, alone = sum(map(tables.count, there)), _MOST_ROWS, _ROWS_ALONE
        text, most_in_words = f"{size:,} rows in the snapshot tables", f"{most:,}"
    else:
        files = list_local_files(dumps)
        if files is None:
            return "the dumps do not lie on this machine", True, True
        size, most = sum(file.unpacked_size for file in files), _MOST_DUMP_BYTES
        alone = _BYTES_ALONE
        text, most_in_words = f"about {size / 1e6:,.1f} MB of text", f"{most / 1e6:,.1f}"
    if size > most:
        return f"{text}, more than {most_in_words}", True, True
    return text, False, size > alone

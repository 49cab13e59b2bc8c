"""Which engine runs a job: Spark, or this very process for a small input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jobs.dumps.files import list_local_files
from jobs.errors import InputError, SettingsError
from jobs.schemas import HEARTBEATS, SNAPSHOT_TABLES, TOPIC_ROUTES
from jobs.storage import Location, Snapshots

AUTO, LOCAL, SPARK = "auto", "local", "spark"

#: So much text is read, parsed and audited within seconds by one process, where starting Spark
#: takes longer.
_MOST_BYTES = 64 << 20
#: So many rows are folded within seconds by one process, in some hundreds of megabytes.
_MOST_ROWS = 2_000_000


@dataclass(frozen=True)
class Choice:
    """An engine, and why it was taken, in one line."""

    engine: str
    sentence: str


def choose_engine(
    asked: str,
    dumps: Sequence[str] | None,
    snapshots: Location,
    *,
    master: str | None,
    is_submitted: bool,
) -> Choice:
    """The engine that was asked for; else by the size of the dumps, or of the snapshot tables.

    Spark where it was called by spark-submit or with a master, and where the input does not lie on
    this machine. Raises SettingsError for the local engine together with one of these.
    """
    for_spark = "spark-submit" if is_submitted else "--master" if master is not None else None
    if asked == LOCAL and for_spark:
        raise SettingsError(f"expected --engine spark with {for_spark}, came --engine local")
    if asked != AUTO:
        return Choice(asked, f"engine {asked}, by --engine")
    if for_spark:
        return Choice(SPARK, f"engine spark, by {for_spark}")
    too_large, size = _of_tables(snapshots) if dumps is None else _of_dumps(dumps)
    if too_large:
        return Choice(SPARK, f"engine spark: {size}")
    return Choice(LOCAL, f"engine local, without Spark: {size}")


def check_input(dumps: Sequence[str] | None, snapshots: Location) -> None:
    """InputError for an input on this machine that is not there, before Java starts.

    For a session that is started here: on a cluster a path without a scheme may lie elsewhere.
    """
    if dumps is None:
        if snapshots.is_local:
            require_tables(Snapshots.open(snapshots))
    elif list_local_files(dumps) == []:
        raise InputError(f"no dump file below {', '.join(dumps)}")


def require_tables(snapshots: Snapshots) -> None:
    """InputError where a table is missing without which there is nothing to audit."""
    for table in (HEARTBEATS, TOPIC_ROUTES):
        if not snapshots.has(table.name):
            raise InputError(f"no table {table.name} at {snapshots.table(table.name)}")


def _of_dumps(dumps: Sequence[str]) -> tuple[bool, str]:
    files = list_local_files(dumps)
    if files is None:
        return True, "the dumps do not lie on this machine"
    size = sum(file.unpacked_size for file in files)
    text = f"about {size / 1e6:,.1f} MB of text"
    if size > _MOST_BYTES:
        return True, f"{text}, more than {_MOST_BYTES / 1e6:,.1f}"
    return False, text


def _of_tables(snapshots: Location) -> tuple[bool, str]:
    if not snapshots.is_local:
        return True, "the snapshot tables do not lie on this machine"
    tables = Snapshots.open(snapshots)
    rows = sum(
        tables.parquet(table.name).count_rows()
        for table in SNAPSHOT_TABLES
        if tables.has(table.name)
    )
    text = f"{rows:,} rows in the snapshot tables"
    if rows > _MOST_ROWS:
        return True, f"{text}, more than {_MOST_ROWS:,}"
    return False, text

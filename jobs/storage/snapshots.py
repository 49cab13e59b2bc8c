"""The folder of the snapshot tables: those of one ingest, or those of a lake.

    <snapshots>/<table>/run=<run id>/*.parquet    what the last ingest wrote
    <snapshots>/_published/snapshots.<n>.json     names it, and every file; the last one counts

A lake has tables without a manifest: whatever lies there is read, and nothing can be checked.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs as pafs

from ..errors import DamagedError, InputError
from ..schemas import SNAPSHOT_TABLES
from . import disk
from .location import Location
from .manifest import TableFiles
from .publication import Publication, PublishedRun

if TYPE_CHECKING:  # it imports pandas, some 55 MiB
    import pyarrow.dataset as ds

#: A folder that an ingest wrote; a lake may have other folders that begin with run=.
_RUN = re.compile(r"run=\d{8}T\d{6}Z-[0-9a-f]{6}")
_SCHEMAS = {table.name: table.schema for table in SNAPSHOT_TABLES}


def new_run_id(now: datetime) -> str:
    """The name of a run: when it began, in UTC, and a random part. Names sort as their times.

    >>> new_run_id(datetime(2026, 11, 20, 2, 4, 7))[:17]
    '20261120T020407Z-'
    """
    return f"{now:%Y%m%dT%H%M%S}Z-{secrets.token_hex(3)}"


@dataclass(frozen=True)
class Snapshots:
    """Snapshot tables to be read: those of one ingest throughout, whatever is written meanwhile.

    ``published``: the ingest; None for a lake.
    """

    root: Location
    published: PublishedRun | None = None
    #: Tables that were listed, and opened, already: they are those of one moment.
    _listed: dict[str, list[pafs.FileInfo]] = field(default_factory=dict, compare=False, repr=False)
    _opened: dict[str, ds.Dataset] = field(default_factory=dict, compare=False, repr=False)

    @property
    def run_id(self) -> str | None:
        """The run that ingested; None for a lake."""
        return self.published.run_id if self.published else None

    @property
    def ingested(self) -> dict[str, Any] | None:
        """The summary of the ingest; None for a lake."""
        return self.published.summary if self.published else None

    @classmethod
    def open(cls, root: Location) -> Snapshots:
        """Opens the tables at a place as they are now.

        InputError where an ingest began there and none ended; DamagedError where a file of the
        last one is gone, or has another size.
        """
        published = Publication(root).find()
        if published is None:
            _refuse_unfinished(root)
            return cls(root)
        opened = cls(root, published)
        try:
            for name, files in published.files.items():
                what = f"table {name} at {root} is damaged"
                files.check(root)
        except (DamagedError, OSError) as error:
            if opened._is_replaced():
                return cls.open(root)
            if isinstance(error, OSError):
                raise
            raise DamagedError(f"{what}: {error}; ingest the dumps again") from error
        return opened

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """While the block reads them.

        What fails in it is an InputError where another ingest has replaced the tables meanwhile.
        """
        try:
            yield
        except Exception as error:
            if not isinstance(error, InputError) and self._is_replaced():
                raise InputError(
                    f"another ingest replaced the tables at {self.root} while they were read: "
                    "nothing was published; run the audit again"
                ) from error
            raise

    def _is_replaced(self) -> bool:
        if self.run_id is None:
            return False
        now = Publication(self.root).find()
        return now is None or now.run_id != self.run_id

    def table(self, name: str) -> Location:
        """The location of a table."""
        return self.root / name if self.run_id is None else self.root / name / f"run={self.run_id}"

    def files(self, name: str) -> list[pafs.FileInfo]:
        """The files of a table; none where there is no such table."""
        if self.published is None:
            if name not in self._listed:
                self._listed[name] = self.table(name).files()
            return self._listed[name]
        table_files = self.published.files.get(name)
        there = table_files.files if table_files else ()
        return [pafs.FileInfo(f"{self.root.base}/{file.path}", size=file.size) for file in there]

    def has(self, name: str) -> bool:
        """True if the table is there."""
        return bool(self.files(name))

    def schema(self, name: str) -> pa.Schema:
        """The columns of a table."""
        return self.unchecked(name).schema

    def count(self, name: str, where: Any = None) -> int:
        """The number of rows of a table, or of those for which a condition holds.

        The files' footers show most of it; of other files the columns of the condition are read.
        """
        return self.unchecked(name).count_rows(filter=where)

    def times(self, name: str) -> tuple[datetime, datetime] | None:
        """The first and the last snapshot of a table, by the footers; None where these do not have
        them, or none that is a time.
        """
        found: list[datetime] = []
        with suppress(ValueError, OverflowError):
            for fragment in self.unchecked(name).get_fragments():
                for row_group in fragment.row_groups:
                    time_statistics = (row_group.statistics or {}).get("snapshot_time")
                    if time_statistics is None:
                        return None
                    found += filter(None, (time_statistics["min"], time_statistics["max"]))
            return (min(found), max(found)) if found else None
        return None

    def unchecked(self, name: str) -> ds.Dataset:
        """A table as PyArrow reads it: whatever its rows hold (see ``fold.checked_rows``).

        The first file has the types. pandas writes a column without a value with the type null,
        which takes no value of the other files: where it may be null it has the declared type.
        """
        if name not in self._opened:
            ingested = self.published.files[name] if self.published else None
            found: Any = ingested.parquet(self.root) if ingested else self.table(name).parquet()
            types = {field.name: field.type for field in _SCHEMAS[name] if field.nullable}
            self._opened[name] = found.replace_schema(
                pa.schema(
                    column.with_type(types[column.name])
                    if pa.types.is_null(column.type) and column.name in types
                    else column
                    for column in found.schema
                )
            )
        return self._opened[name]


def _refuse_unfinished(root: Location) -> None:
    folders = [info.base_name for info in root.infos() if info.type == pafs.FileType.Directory]
    for name in folders:
        if any(_RUN.fullmatch(child) for child in (root / name).children()):
            raise InputError(
                f"no whole ingest at {root}: one began there and did not end (it left {name}); "
                "run ingest again"
            )


@dataclass(frozen=True)
class SnapshotWriter:
    """Snapshot tables to be written: nobody else writes there meanwhile."""

    root: Location
    run_id: str
    #: The number of the pointer that it will create.
    number: int

    @classmethod
    @contextmanager
    def open(
        cls, root: Location, run_id: str, wait_seconds: float, say: Callable[[str], None]
    ) -> Iterator[SnapshotWriter]:
        """Keeps other ingests out while the block runs; LeaseError where one does not end."""
        with Publication(root).writing(run_id, wait_seconds, say) as number:
            yield cls(root, run_id, number)

    def table(self, name: str) -> Location:
        """The location to which this run writes a table: it has the true ids of clients."""
        if self.root.is_local:
            disk.make_private(Path((self.root / name).base))
        return self.root / name / f"run={self.run_id}"

    def publish(self, rows: Mapping[str, int], summary: Mapping[str, Any]) -> Snapshots:
        """Makes these tables those that are read, and removes all others but the ones before.

        ``rows``: of each table the rows that were written; DamagedError where others are there.
        """
        files = {
            name: TableFiles.written(self.root, self.table(name), count)
            for name, count in rows.items()
        }
        published = PublishedRun("", self.run_id, dict(summary), files, self.number)
        Publication(self.root).publish(published, [self.root / name for name in rows])
        return Snapshots(self.root, published)

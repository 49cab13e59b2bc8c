"""The folder of the published reports: by date the run that counts, and its tables.

    <reports>/<table>/dt=<date>/run=<run id>/*.parquet     a report table
    <reports>/summary/dt=<date>/run=<run id>/summary.json
    <reports>/_published/dt=<date>.<number>.json           names a run; the last one counts
    <reports>/_replaced/dt=<date>/<run id>/<table>/...     a run that another one has replaced

Of a date the run that counts has report tables here, and those of the one before it lie aside until
the next run. A reader that takes the tables by a pattern also sees a run that is being written.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:  # it imports pandas, some 55 MiB
    import pyarrow.dataset as ds

from ..declared.instants import is_date
from ..errors import DamagedError, InputError
from .location import Location, check_bucket
from .publication import Publication, PublishedRun

_Read = TypeVar("_Read")


def check_date(date: str) -> str:
    """The date as it came, if it is one: it becomes part of a path."""
    if not is_date(date):
        raise InputError(f"expected a date as YYYY-MM-DD, came {date!r}")
    return date


class ReportHistory(ABC):
    """The runs that count for their dates, wherever they are kept: a run compares itself with them.

    A folder (``Reports``), or a schema with tables of Spark (``spark.dataframes``).
    """

    @abstractmethod
    def dates(self) -> list[str]:
        """The dates that have a published run, ascending."""

    @abstractmethod
    def find(self, date: str) -> PublishedRun | None:
        """The run that counts for a date, if any."""

    @abstractmethod
    def rows(
        self,
        run: PublishedRun,
        name: str,
        where: Mapping[str, Any],
        columns: Sequence[str] | None = None,
    ) -> list[dict[str, Any]]:
        """The rows of a table of a run that have these values in columns; times as Instants.

        ``columns``: None: all. None of a table that the run has not. DamagedError or OSError where
        it cannot be read.
        """

    def before(self, date: str) -> PublishedRun | None:
        """The run that counts for the last date before one: whenever either was published."""
        return self._last_of(other for other in self.dates() if other < check_date(date))

    def last(self, date: str | None) -> PublishedRun | None:
        """The run to go on from: that of the date, else of the last one before it.

        Without a date that of the last date.
        """
        if date is not None:
            return self.find(date) or self.before(date)
        return self._last_of(self.dates())

    def _last_of(self, dates: Iterable[str]) -> PublishedRun | None:
        return next(filter(None, map(self.find, sorted(dates, reverse=True))), None)


class Reports(ReportHistory):
    """The folder of the published reports."""

    def __init__(self, root: Location, newest_date: str | None = None) -> None:
        self.root = root
        #: Later dates lie in the future: they are read where they are asked for, alone.
        self._newest_date = newest_date

    def table(self, name: str, date: str, run_id: str) -> Location:
        """The location of one table of one run."""
        return self.root / name / f"dt={check_date(date)}" / f"run={run_id}"

    def dataset(self, published: PublishedRun, name: str) -> ds.Dataset:
        """One table of a published run, as PyArrow reads it.

        DamagedError where a file is gone, or is not what was published.
        """
        try:
            return published.files[name].dataset(self.root)
        except DamagedError as error:
            # Another run has replaced it since.
            aside = self.publication(published.date).aside(published)
            with suppress(DamagedError):
                return aside.files[name].dataset(self.root)
            raise DamagedError(
                f"table {name} of {published.date} is damaged: {error}; audit {published.date} "
                "again, or restore the file"
            ) from error

    def read(self, date: str | None, use: Callable[[PublishedRun], _Read]) -> _Read:
        """Returns what ``use`` makes of the run that counts for a date (None: the last one).

        A run that is replaced while it is read is read again, for its tables may be gone.
        InputError where there is no run, DamagedError where its tables are not what they were.
        """
        published = self.resolve(date)
        while True:
            try:
                return use(published)
            except (DamagedError, OSError):
                now = self.resolve(date)
                if now.run_id == published.run_id:
                    raise
                published = now

    def rows(
        self,
        run: PublishedRun,
        name: str,
        where: Mapping[str, Any],
        columns: Sequence[str] | None = None,
    ) -> list[dict[str, Any]]:
        """See ``ReportHistory``."""
        if name not in run.tables:
            return []
        written = self.dataset(run, name)
        counted: Any = pc.scalar(True)
        for column, value in where.items():
            counted &= pc.field(column) == value
        shown: dict[str, Any] = {
            column: pc.field(column).cast(pa.int64())
            if pa.types.is_timestamp(written.schema.field(column).type)
            else pc.field(column)
            for column in columns or written.schema.names
        }
        found: list[dict[str, Any]] = written.to_table(columns=shown, filter=counted).to_pylist()
        return found

    def publication(self, date: str) -> Publication:
        """The publication of a date."""
        return Publication(self.root, f"dt={check_date(date)}")

    def publish(self, published: PublishedRun) -> None:
        """Makes a run the one that counts, then clears what other runs of the date left."""
        date = published.date
        (self.table("summary", date, published.run_id) / "summary.json").replace_text(
            json.dumps(published.summary, indent=2, ensure_ascii=False) + "\n"
        )
        tables = [name for name in self.root.children() if not name.startswith("_")]
        folders = [self.root / name / f"dt={date}" for name in tables]
        self.publication(date).publish(published, folders, "run=")

    def dates(self) -> list[str]:
        """The dates that have a published run, ascending."""
        names = (self.root / "_published").children()
        found = (re.fullmatch(r"dt=(\d{4}-\d{2}-\d{2})\.\d{6,18}\.json", name) for name in names)
        return sorted({match.group(1) for match in found if match})

    def find(self, date: str) -> PublishedRun | None:
        """The run that counts for a date, if any."""
        return self.publication(date).find()

    def published(self) -> list[PublishedRun]:
        """The run that counts for each date, also for one in the future; InputError: no date."""
        found = list(filter(None, map(self.find, self.dates())))
        if not found:
            self.resolve(None)
        return found

    def resolve(self, date: str | None) -> PublishedRun:
        """The run that counts for a date, or for the last one; InputError where there is none."""
        dates = self.dates()
        if not dates:
            check_bucket(self.root)
            raise InputError(
                f"no published reports under {self.root}: expected the folder that a run names in "
                "its last line, as out/reports for --output out"
            )
        newest = self._newest_date or dates[-1]
        not_future = [other for other in dates if other <= newest]
        if not date and not not_future:
            raise InputError(
                f"the published reports under {self.root} lie in the future: {', '.join(dates)}; "
                "name one of these dates, or raise bounds.future_days"
            )
        published = self.find(check_date(date)) if date else self._last_of(not_future)
        if published is None:
            those = f"are {', '.join(dates[-10:])}" if len(dates) > 1 else f"is only {dates[0]}"
            raise InputError(
                f"no published report of {date or 'any date'} under {self.root}; there {those}"
            )
        return published

"""What a lake is for the export: tables that can be opened, and changed in one commit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Protocol

import pyarrow as pa

from jobs.errors import AuditError
from jobs.failures import sentence_of
from jobs.masking import Masking
from jobs.reports.read import DATE
from jobs.schemas import Table

#: Where a commit keeps the run that its rows are of.
RUN_ID = "rebalance-audit.run-id"
#: delta-rs puts a coloured arrow between a failure and its cause; escapes are visible here.
_ARROW = re.compile(r" *(?:\\x1b\[31m)?↳(?:\\x1b\[0m)?")


class ConflictError(Exception):
    """Somebody else changed the table since it was opened; nothing of this change was written."""


class Version(Protocol):
    """A table of a lake as it was when it was opened."""

    def replace(self, date: str, rows: pa.Table, run_id: str) -> None:
        """Puts these rows in place of all rows of a date, in one commit.

        Columns that the table does not have are added. ConflictError where the rows of the date,
        or the columns, are no longer those that the table had when it was opened.
        """


class Lake(Protocol):
    """A place with tables of one format."""

    def open(self, table: Table) -> Version:
        """The table as it is now; it is made where there is none."""


def check_library(package: str, extra: str) -> None:
    """AuditError where the library of a format is not installed."""
    try:
        import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise AuditError(
            f"the Python package {package} is not installed: "
            f"pip install 'rocketmq-rebalance-audit[{extra}]'"
        ) from error


@contextmanager
def in_words(place: str, conflicts: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Makes one sentence of whatever a format's library raises; ``place`` names the table.

    ConflictError for what the library raises where somebody else changed the table.
    """
    try:
        yield
    except AuditError:
        raise
    except Exception as error:
        what = _ARROW.sub(":", Masking().mask(sentence_of(error)))
        if isinstance(error, conflicts):
            raise ConflictError(what) from error
        raise AuditError(f"{place}: {what}") from error


def check_has_date(names: list[str], place: str) -> None:
    """AuditError for a table that somebody else made: without a column ``date``."""
    if DATE.name not in names:
        raise AuditError(
            f"{place} is another table: expected a column {DATE.name}, it has {', '.join(names)}; "
            "export to another place"
        )

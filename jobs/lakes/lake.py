"""What a lake is for the export: tables that can be opened, and changed in one commit."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import pyarrow as pa

from ..errors import AuditError
from ..failures import sentence_of
from ..masking import Masking
from ..reports.read import DATE, dated_schema
from ..schemas import Table
from ..text import visible

#: Where a commit keeps the run that its rows are of.
RUN_ID = "rebalance-audit.run-id"
#: delta-rs puts a coloured arrow between a failure and its cause; escapes are visible here.
_ARROW = re.compile(r" *(?:\\x1b\[31m)?↳(?:\\x1b\[0m)?")


class ConflictError(Exception):
    """Somebody else changed the table since it was opened; nothing of this change was written."""


#: Of a date and a run: puts these rows in place of all rows of the date, in one commit. Columns
#: that the table does not have are added. ConflictError where the rows of the date, or the columns,
#: are no longer those that the table had when it was opened.
Replace = Callable[[str, str, pa.Table], None]


class Lake(Protocol):
    """A place with tables of one format."""

    def open(self, table: Table) -> Replace:
        """What changes the table as it is now; it is made where there is none."""


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


def check_fits(found: pa.Schema, table: Table, place: str) -> None:
    """AuditError for a table that somebody else made.

    It has no column ``date``, or columns of other types: the library would write a number as a
    text, or fail in words of its own.
    """
    if DATE.name not in found.names:
        raise AuditError(
            f"{place} is another table: expected a column {DATE.name}, it has "
            f"{', '.join(map(visible, found.names))}; export to another place"
        )
    for column in dated_schema(table):
        if column.name not in found.names or pa.types.is_nested(column.type):
            continue
        expected, came = _type_name(column.type), _type_name(found.field(column.name).type)
        if expected != came:
            raise AuditError(
                f"{place} is another table: expected the column {column.name} as {expected}, it is "
                f"{came}; export to another place"
            )


def _type_name(type_: pa.DataType) -> str:
    """The name of a type; how PyArrow lays texts out in memory is no difference.

    >>> _type_name(pa.large_string()), _type_name(pa.string_view()), _type_name(pa.int32())
    ('string', 'string', 'int32')
    """
    return str(type_).removeprefix("large_").removesuffix("_view")

"""The report tables of a date into a lake: the run that counts, and each date once.

An export is a copy, made by the commits of the lake. The library's optimistic lock is all that
keeps two exports apart: the table is opened, then the pointer is read, then the rows of the date
are replaced. What another one commits in between is a conflict, and the pointer is read anew. At
the end all tables must be of the run that counts then.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ..errors import AuditError
from ..reports.read import rows_of
from ..schemas import REPORT_TABLES, Table
from ..storage import Reports
from .lake import ConflictError, Lake

#: So often a table is tried that others change at the same time.
_ATTEMPTS = 10
_UNHARMED = (
    "every table has all rows from before or all new ones; run the export again when this is "
    "mended: it counts nothing twice"
)


class Exported(NamedTuple):
    """What was exported of a date: the run, and how many rows its tables have."""

    run_id: str
    rows: int


def export(
    reports: Reports, date: str, lake: Lake, tables: Sequence[Table] = REPORT_TABLES
) -> Exported:
    """Puts report tables of a date into a lake, each in one commit, in place of its older rows.

    A table that the run does not have loses its rows of the date. InputError where the date has no
    report, DamagedError where its files are not what was published.
    """
    while True:
        try:
            done = [_replace(reports, date, table, lake) for table in tables]
        except BaseException as error:
            error.add_note(_UNHARMED)
            raise
        counts = reports.resolve(date).run_id
        # The date may be audited again meanwhile: all tables are to be of the run that counts.
        if all(each.run_id == counts for each in done):
            return Exported(counts, sum(each.rows for each in done))


def _replace(reports: Reports, date: str, table: Table, lake: Lake) -> Exported:
    for _ in range(_ATTEMPTS):
        # In this order: an export of a later run that commits from here on is a conflict. So no
        # older run takes its place.
        replace = lake.open(table)
        published, rows = reports.read(date, lambda run: (run, rows_of(reports, run, table)))
        try:
            replace(date, published.run_id, rows)
        except ConflictError as error:
            conflict = error
            continue
        return Exported(published.run_id, rows.num_rows)
    raise AuditError(
        f"{table.name} of {date} was not exported: others changed the table {_ATTEMPTS} times "
        f"meanwhile ({conflict}); run the export again when no other one runs"
    ) from conflict

"""The days of a window, in tables that have a column of the day: so Spark reads their partitions
alone.
"""

from datetime import date, datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ..config.window import Window
from ..fold.slices import window_of
from ..schemas import Table

#: The names of a column that has the day of a row.
_NAMES = ("dt", "date")
_TIME = "snapshot_time"
#: A text that is a day, as 2026-11-20 or 20261120.
_IS_DAY = "^[0-9]{4}-?[0-9]{2}-?[0-9]{2}$"
_ONE = timedelta(days=1)


def of_days(table: Table, rows: DataFrame, window: Window, route_max_age_seconds: int) -> DataFrame:
    """The rows whose column ``dt`` or ``date`` is a day of the window, or the one before or after
    it, for it may be one of local time.

    Rows without a day stay, and those of the future, which are counted. Tables without a column of
    the day, and those of which older rows are in force, come as they are.
    """
    day_column = _day_column(rows)
    if day_column is None or window == Window() or not _is_of_rounds(table):
        return rows
    bounds = window_of(table, window, route_max_age_seconds)
    is_in = _between(day_column, bounds.since, bounds.ends)
    if window.future is not None:
        is_in |= _between(day_column, window.future, None)
    return rows.where(is_in | day_column.isNull() | ~day_column.rlike(_IS_DAY))


def _is_of_rounds(table: Table) -> bool:
    """True if each row is one of a round: contents, and lines of logs, are none."""
    return _TIME in table.schema.names and not table.schema.field(_TIME).nullable


def _day_column(rows: DataFrame) -> Column | None:
    for wanted in _NAMES:
        for field in rows.schema:
            if field.name.lower() == wanted and isinstance(
                field.dataType, T.DateType | T.StringType | T.IntegralType
            ):
                return F.col(field.name).cast("string")
    return None


def _between(day_column: Column, since: datetime | None, end: datetime | None) -> Column:
    """The condition that a day is within a day of the two; None: no bound."""
    is_in = F.lit(False)
    for form in ("%Y-%m-%d", "%Y%m%d"):
        of_form = day_column.contains("-") if "-" in form else ~day_column.contains("-")
        if since is not None and since.date() > date.min:
            of_form &= day_column >= (since - _ONE).strftime(form)
        if end is not None and end.date() < date.max:
            # It ends before its end.
            of_form &= day_column <= (end + _ONE - timedelta.resolution).strftime(form)
        is_in |= of_form
    return is_in

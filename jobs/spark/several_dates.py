"""Dates that nobody audited yet, one after the other, into a schema."""

import warnings
from collections import defaultdict
from datetime import timedelta
from typing import Any

from pyspark.sql import DataFrame

from ..errors import AuditError, NothingToAuditError, SettingsError
from ..schemas import RUNS
from ..shell.asked import Day, day_of
from ..texts.failures import sentence_of
from .auditing import audit
from .saved_tables import read_tables


def backfill(*tables: Any, first: Day, last: Day, schema: str, **asked: Any) -> DataFrame:
    """Audits each date (UTC) from ``first`` to ``last`` and saves it to ``schema``, in their order.

    ``tables`` and ``asked`` are those of ``audit``. Each date is compared with those before it in
    the schema, so that it is as if each night had been audited in its turn. Dates that are there
    are replaced. Gives the rows of ``runs`` of the dates that were saved.

    A date without rows is left out, with a warning. A date that fails stops no other one: in the
    end an AuditError names it. Raises NothingToAuditError where no date has rows, SettingsError for
    arguments that are wrong.

    >>> backfill(heartbeats, topic_routes, first="2026-11-14", last="2026-11-20",
    ...     schema="main.rocketmq_audit").select("date", "state", "sentence").show()
    ... # doctest: +SKIP
    """
    start, end = day_of("first", first), day_of("last", last)
    if start > end:
        raise SettingsError(f"expected first before last, came {start} and {end}")
    saved, failed = [], defaultdict(list)
    for number in range((end - start).days + 1):
        day = start + timedelta(days=number)
        try:
            result = audit(*tables, date=day, history=schema, **asked)
            result.save_as_tables(schema)
        except SettingsError:
            raise
        except NothingToAuditError as error:
            warnings.warn(f"{day} is left out: {error}", stacklevel=2)
        except Exception as error:  # whatever it is, the other dates are audited
            # What is in words already may have options of the command behind it.
            said = str(error) if isinstance(error, AuditError) else sentence_of(error)
            failed[said].append(str(day))
        else:
            saved.append(day)
    if failed:
        several = "; ".join(f"{', '.join(dates)}: {said}" for said, dates in failed.items())
        raise AuditError(f"{len(saved)} dates were saved to {schema}, others failed: {several}")
    if not saved:
        raise NothingToAuditError(f"no date from {start} to {end} has a list of members")
    return read_tables(result.runs.sparkSession, schema, RUNS.name, saved).orderBy("date")

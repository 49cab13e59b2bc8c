"""A request for an audit from Python, checked before anything runs -> the task of a run."""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date as Date
from datetime import datetime
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa

from rebalance_core.errors import near_names

from ..config.choices import LAST_RUN
from ..config.known_issues import KnownIssues, load_known_issues
from ..config.settings import Settings, load_settings
from ..config.toml_files import checked
from ..config.window import asked_window, future_after, now, time_of
from ..console.progress import Progress
from ..declared.instants import is_date
from ..errors import InputError, SettingsError
from ..publish.run import Run, Task
from ..schemas import HEARTBEATS, SNAPSHOT_TABLES, TOPIC_ROUTES
from ..storage import Location, ReportHistory, Reports, new_run_id

GivenSettings = Settings | Mapping[str, Any] | str | Path | None
GivenIssues = KnownIssues | Mapping[str, Any] | str | Path | None
#: A date, or its text as YYYY-MM-DD, in UTC.
Day = Date | str
#: A time, or its text as ISO 8601; UTC where it has no zone.
Time = datetime | str
#: The folder of the reports of earlier runs; on Spark also a schema that has them as tables.
GivenHistory = str | PathLike[str]

QUIET = Progress(quiet=True)

_Given = TypeVar("_Given", Settings, KnownIssues)
_SETTINGS = "expected a file of settings or a mapping of their names"
_ISSUES = (
    "known_issues: expected a file, or what it has, as {'known_issues': [{'groups': 'G', "
    "'reason': '...', 'expires': '2026-12-31'}]}"
)

#: A folder, for its tables and its reports, and the reports that it is compared with (None: with
#: none) -> the task of a run.
MakeTask: TypeAlias = Callable[[Location, ReportHistory | None], Task]


def asked_task(
    settings: GivenSettings,
    known_issues: GivenIssues,
    date: Day | None,
    since: Time | None,
    until: Time | None,
) -> MakeTask:
    """Checks what is asked for, before anything runs; SettingsError where it does not fit."""
    begins = now()
    made = _given_as(Settings, settings, load_settings, "of audit()", _SETTINGS)
    issues = KnownIssues()  # none are known, whatever the default file has
    if known_issues is not None:
        where = "known_issues of audit()"
        issues = _given_as(KnownIssues, known_issues, load_known_issues, where, _ISSUES)
    is_last = since == LAST_RUN
    window = asked_window(
        None if date is None else day_of("date", date),
        None if is_last else time_in_utc("since", since, f", or {LAST_RUN}"),
        time_in_utc("until", until),
        future_after(begins, made.bounds.future_days),
    )
    run = Run(new_run_id(begins), begins)
    return lambda folder, history: Task(
        *(run, folder / "snapshots", folder / "reports", window, made, issues, is_last),
        are_staged=True,
        compared_with=history,
    )


def _given_as(
    model: type[_Given], given: object, load: Callable[[Any], _Given], where: str, expected: str
) -> _Given:
    """A checked value in whichever form it is given; SettingsError for any other than these."""
    if isinstance(given, model):
        return given
    if given is None or isinstance(given, str | Path):
        return load(given)
    if isinstance(given, Mapping):
        return checked(model, where, dict(given))
    raise SettingsError(f"{expected}, came {given!r}")


def day_of(name: str, given: Day) -> Date:
    """The date of an argument; SettingsError for what is none."""
    if isinstance(given, datetime) or not is_date(str(given)):
        raise SettingsError(f"{name}: expected a date as YYYY-MM-DD, came {given!r}")
    return Date.fromisoformat(str(given))


def time_in_utc(name: str, given: Time | None, otherwise: str = "") -> datetime | None:
    """The time of an argument; SettingsError for what is none."""
    return time_of(name, None if given is None else str(given), otherwise)


def history_of(given: GivenHistory | None) -> Reports | None:
    """The reports in a folder, which may be yet to come."""
    return None if given is None else Reports(Location(fspath(given)))


@contextmanager
def temporary_folder() -> Iterator[Location]:
    """A new folder, which stays, unless the block fails."""
    folder = Location(tempfile.mkdtemp(prefix="rebalance-audit-"))
    try:
        yield folder
    except BaseException:
        folder.delete()
        raise


def check_named(tables: Iterable[str]) -> None:
    """InputError for a name that no snapshot table has, and where one is missing."""
    names = [table.name for table in SNAPSHOT_TABLES]
    for name in tables:
        if name not in names:
            raise InputError(f"no snapshot table {name!r}: {near_names(name, names)}")
    for table in (HEARTBEATS, TOPIC_ROUTES):
        if table.name not in tables:
            raise InputError(
                f"no table {table.name}: expected heartbeats, the lists of the brokers, and "
                "topic_routes, which have the queues"
            )


def as_arrow(name: str, rows: Any) -> pa.Table:
    """The rows of a snapshot table, of pandas, Polars or Arrow; else InputError."""
    if hasattr(rows, "convert_dtypes"):
        # pandas: numbers beside a null are not floats.
        try:
            return pa.Table.from_pandas(rows.convert_dtypes(), preserve_index=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise InputError(
                f"{name}: expected values of one type in each column, came {'; '.join(error.args)}"
            ) from error
    if isinstance(rows, pa.Table) or hasattr(rows, "__arrow_c_stream__"):
        return pa.table(rows)
    raise InputError(
        f"{name}: expected a DataFrame, the name of a table or view in a session of Spark, or a "
        f"table of pandas, Polars or Arrow, came {type(rows).__name__}"
    )

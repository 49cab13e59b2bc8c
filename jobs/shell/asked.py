"""A request for an audit from Python, checked before anything runs -> the task of a run."""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date as Date
from datetime import datetime
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeAlias

from ..config.choices import LAST_RUN
from ..config.known_issues import KnownIssues, load_known_issues
from ..config.settings import Settings, load_settings
from ..config.toml_files import checked
from ..config.window import asked_window, future_after, now, time_of
from ..console.progress import Progress
from ..declared.instants import is_date
from ..errors import SettingsError
from ..publish.run import Run, Task
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
    began = now()
    made, issues = settings_of(settings), issues_of(known_issues)
    is_last = since == LAST_RUN
    window = asked_window(
        None if date is None else day_of("date", date),
        None if is_last else time_in_utc("since", since, f", or {LAST_RUN}"),
        time_in_utc("until", until),
        future_after(began, made.bounds.future_days),
    )
    run = Run(new_run_id(began), began)

    def task(folder: Location, history: ReportHistory | None) -> Task:
        return Task(
            run,
            folder / "snapshots",
            folder / "reports",
            window,
            made,
            issues,
            is_last,
            are_staged=True,
            compared_with=history,
        )

    return task


def settings_of(given: GivenSettings) -> Settings:
    """The settings, in whichever form they are given."""
    if isinstance(given, Settings):
        return given
    if given is None or isinstance(given, str | Path):
        return load_settings(given)
    if isinstance(given, Mapping):
        return checked(Settings, "of audit()", dict(given))
    raise SettingsError(f"expected a file of settings or a mapping of their names, came {given!r}")


def issues_of(given: GivenIssues) -> KnownIssues:
    """The known issues, in whichever form they are given; None: there are none."""
    if isinstance(given, KnownIssues):
        return given
    if given is None:
        return KnownIssues()
    if isinstance(given, str | Path):
        return load_known_issues(given)
    if isinstance(given, Mapping):
        return checked(KnownIssues, "known_issues of audit()", dict(given))
    raise SettingsError(
        "known_issues: expected a file, or what it has, as {'known_issues': [{'groups': 'G', "
        f"'reason': '...', 'expires': '2026-12-31'}}]}}, came {given!r}"
    )


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

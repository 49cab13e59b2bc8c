"""Plan of a run, from paths, sizes and footers alone: nothing is written."""

from collections.abc import Iterator, Sequence
from functools import partial

from rebalance_core.english import count

from ..config.choices import SPARK
from ..config.settings import Settings, flat
from ..config.window import Window
from ..console.progress import Progress
from ..engines.files import list_local_files, no_dumps
from ..errors import InputError
from ..pipeline.inputs import Inputs, require_tables, window_of_last
from ..publish.run import Task
from ..schemas import HEARTBEATS, SNAPSHOT_TABLES
from ..storage import Location, Reports, Snapshots
from ..texts.shown import in_utc, iso, json_text, visible
from .engine_choice import Choice, open_engine

_to_second = partial(iso, timespec="seconds")

#: The most dumps that are named; the sizes of all are summed.
_NAMED_FILES = 10


def plan_ingest(dumps: Sequence[str], snapshots: Location, master: str | None) -> Iterator[str]:
    """The lines about what ``ingest`` would read and write.

    Spark is started only where it alone can list the dumps: on file systems other than the local
    one. Raises InputError where ``ingest`` would, for dumps that are missing.
    """
    files = list_local_files(dumps)
    if files is None:
        choice, quiet = Choice(SPARK, ""), Progress(quiet=True)
        with open_engine(choice, "dry run", dumps, snapshots, master, quiet) as engine:
            files = engine.list_files(dumps)
    if not files:
        raise no_dumps(dumps)
    yield "ingest"
    sizes = f"{sum(file.size for file in files):,} bytes"
    text = f"about {sum(file.unpacked_size for file in files):,} bytes of text"
    yield f"  reads    {count(len(files), 'file')}, {sizes}, {text}"
    for file in sorted(files, key=lambda file: -file.size)[:_NAMED_FILES]:
        yield f"           {file.size:>15,}  {visible(file.path)}"
    if len(files) > _NAMED_FILES:
        yield f"           and {len(files) - _NAMED_FILES:,} smaller ones"
    tables = ", ".join(table.name for table in SNAPSHOT_TABLES)
    yield f"  replaces {tables} below {snapshots}"


def plan_audit(task: Task, *, ingested_before: bool) -> Iterator[str]:
    """The lines about what ``audit`` would read and write.

    Without ``ingested_before`` the snapshots are those that ``ingest`` is yet to make, and nothing
    about them is shown. Raises InputError where ``audit`` would, for tables that are missing.
    """
    folder = Reports(task.reports)
    last = folder.last(task.window.newest_date) if task.since_last else None
    window = window_of_last(last, task.window)
    date = window.last_date
    yield "audit"
    if ingested_before:
        there = Snapshots.open(task.snapshots)
        require_tables(there)
        in_window = Inputs(there, task.settings).count(window)
        yield f"  reads    {task.snapshots}"
        for name in (table.name for table in SNAPSHOT_TABLES):
            yield f"           {name:<15}{_table_line(there, name, in_window.get(name))}"
        if date is None and (times := there.times(HEARTBEATS.name)):
            date = in_utc(times[1]).date().isoformat()
    else:
        yield f"  reads    {task.snapshots}, as ingest makes it"
    yield f"  window   {window.words}"
    at = f"dt={date}" if date else "dt=<date of the last snapshot>"
    yield f"  writes   {task.reports}/<table>/{at}/run=<run id>"
    if date is not None:
        in_force, before = folder.find(date), folder.before(date)
        yield f"  replaces {f'run {in_force.run_id}' if in_force else 'no run: the date has none'}"
        yield f"  compared with {f'run {before.run_id} of {before.date}' if before else 'no run'}"


def plan_settings(settings: Settings) -> Iterator[str]:
    """The settings in force, one a line, under their hash."""
    yield f"settings {settings.fingerprint()}"
    for key, value in flat(settings.model_dump(mode="json", exclude_none=True)):
        yield f"  {key}={json_text(value)}"


def _table_line(snapshots: Snapshots, name: str, in_window: int | None) -> str:
    files = snapshots.files(name)
    if not files:
        return "not there, and not needed"
    size = sum(file.size for file in files)
    line = f"{count(len(files), 'file')}, {size:,} bytes, {snapshots.count(name):,} rows"
    if in_window is not None:
        line += f", {in_window:,} of them in the window"
    times = snapshots.times(name)
    return line if times is None else f"{line}, {_to_second(times[0])} to {_to_second(times[1])}"


def with_times_there(error: InputError, snapshots: Location, window: Window) -> InputError:
    """The error with the times of the snapshots, where their files say them.

    It is another one where no snapshot is in the window: then that is all that is wrong.
    """
    tables = Snapshots.open(snapshots)
    times = tables.times(HEARTBEATS.name) if tables.has(HEARTBEATS.name) else None
    if times is None:
        return error
    first, last = map(in_utc, times)
    there = f"the snapshots go from {_to_second(first)} to {_to_second(last)}"
    is_before = window.until is not None and window.until <= first
    if is_before or (window.since is not None and window.since > last):
        text = f"no snapshot from {window.words}: {there} at {snapshots}"
        return InputError(text, ", so name another --date, --since or --until")
    error.add_note(there)
    return error

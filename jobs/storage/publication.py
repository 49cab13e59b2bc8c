"""A run becomes the one that counts: manifest, pointer, and what is cleared away afterwards.

    <root>/<tables>/.../run=<run id>/            the tables of a run; nobody reads them yet
    <root>/_manifests/<name>/<run id>.json       what the run wrote; then
    <root>/_published/<name>.<number>.json       the pointer: the same text. It publishes
    <root>/_claims/<name>/                       who is writing
    <root>/_replaced/dt=<date>/<run id>/         the tables of a replaced run of a date

The pointer with the highest number counts. A writer takes the number after it when it begins, and
creates its pointer last, once: a writer that finds its number taken has lost to another one, and
nothing of its run counts. So neither a lapsed lease nor a late listing lets two runs into one
place. A run that dies leaves the run before as it was, and the next one clears what it left. A
pointer that cannot be read is as good as the last whole manifest.

Once a pointer is there, the tables of the run that it replaced are moved aside, below a name that
Spark, Hive, Trino and DuckDB skip: whoever reads the folder of a table finds each date once, and
whoever is at the run before finds it there. Snapshot tables stay, for an audit reads them for long.
"""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from ..errors import DamagedError, LeaseError
from ..texts.failures import sentence_of
from .lease import claimed_runs, lease
from .location import Location
from .manifest import TableFiles, sealed, unsealed

_LOGGER = logging.getLogger(__name__)
#: The snapshot tables are published under this one name, the reports under their dates: ``dt=...``.
SNAPSHOTS = "snapshots"
_RUN = "run="
#: The age below which something may be at work, or be read.
AT_WORK = timedelta(days=1)
#: Both become a part of paths.
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_TABLE = re.compile(r"[a-z][a-z0-9_]*")


def _is_time(value: Any) -> bool:
    try:
        return datetime.fromisoformat(value) is not None
    except (TypeError, ValueError):
        return False


#: The summary of a run, as readers take it, for anybody may write a pointer. Shapes by key: a type,
#: a list of one shape, a shape of all values (under ``...``), or more keys.
_SHAPE: Any = {
    "started_at": _is_time,
    "duration_seconds": (int, float),
    "window": {"since": lambda value: value is None or _is_time(value), "last_snapshot": _is_time},
    "rows": {...: int},
    "inputs": {"snapshots": str, "ingested": (dict, type(None))},
    "incomplete": [list],
    "brokers": {...: {...: str}},
    "groups": {"clusters": {...: {...: {"level": str}}}, "left_out": int},
    "assumptions": {"groups": int, "asked": int},
    "rounds": {"groups_too_wide": int},
    "known_issues": [{"reason": str, "expires": str, "expired": bool, "marked": dict}],
}


@dataclass(frozen=True)
class PublishedRun:
    """A run as its pointer has it.

    ``date``: empty for the snapshot tables; ``files``: by table what was published; ``number``: of
    the pointer, which ``Publication.writing`` has given.
    """

    date: str
    run_id: str
    summary: dict[str, Any]
    files: Mapping[str, TableFiles]
    number: int = 0

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of its tables."""
        return tuple(self.files)


class Publication:
    """The publications under one name below a root: a date's reports, or the snapshot tables."""

    def __init__(self, root: Location, name: str = SNAPSHOTS) -> None:
        self.root = root
        self._published = root / "_published"
        self._name = name
        self._date = name.partition("dt=")[2]
        self._manifests = root / "_manifests" / name
        self._aside = root / "_replaced" / name
        self._claims = root / "_claims" / name
        #: The runs of pointers that were read: none is ever replaced.
        self._runs: dict[int, str] = {}

    def find(self) -> PublishedRun | None:
        """The run that counts; None where none was published.

        Where the pointer cannot be read, the last run that is whole, with a warning.
        """
        number = self._last()
        return self._at(number) if number else None

    def aside(self, run: PublishedRun) -> PublishedRun:
        """The same run, where its tables are when another one has replaced it."""
        folder = f"{self._aside.base.removeprefix(self.root.base).strip('/')}/{run.run_id}"
        return replace(run, files={name: files.below(folder) for name, files in run.files.items()})

    def _at(self, number: int) -> PublishedRun | None:
        pointer = self._pointer(number)
        try:
            published = self._checked(pointer.read_bytes())
            if published.number != number:
                raise ValueError(f"it is pointer {published.number}")
            return published
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            # A disk or a server that does not answer does not show whether there is a pointer.
            if isinstance(error, OSError) and not pointer.is_folder():
                raise
            last = self._last_whole()
            _warn(
                f"{pointer} cannot be read ({error}): "
                + (f"run {last.run_id} counts" if last else "nothing counts as published there")
                + "; the next run mends it"
            )
            return last

    def _pointer(self, number: int) -> Location:
        return self._published / f"{self._name}.{number:06}.json"

    def _last(self) -> int:
        """The number of the last pointer; 0 where there is none."""
        number = max(self._times(), default=0)
        # A listing may be late; a file that is asked for by its name is not.
        while self._pointer(number + 1).exists():
            number += 1
        return number

    def _times(self) -> dict[int, Any]:
        """The time at which each listed pointer was created, by its number."""
        times = {self.number_of(info.base_name): info.mtime for info in self._published.infos()}
        return {number: time for number, time in times.items() if number}

    def number_of(self, path: str) -> int:
        """The number of a pointer by its path; 0 where it is none of this name."""
        match = re.search(rf"(?:\A|/){re.escape(self._name)}\.(\d{{6,18}})\.json\Z", path)
        return int(match[1]) if match else 0

    def read_runs(self, now: datetime | None = None) -> list[str]:
        """The run that counts, and the one that it replaced less than a day ago: it may be read.

        ``now``: None where it was replaced at this moment. Empty where no run counts.
        """
        last = self._last()
        counting = self._at(last) if last else None
        if counting is None:
            return []
        begins = self._times().get(last) if now else None
        is_old = now and begins and now - begins > AT_WORK
        before = None if is_old else self._run_of(last - 1)
        return [counting.run_id, *filter(None, [before])]

    @contextmanager
    def writing(
        self, run_id: str, wait_seconds: float, say: Callable[[str], None]
    ) -> Iterator[int]:
        """Waits for other writers of the name; LeaseError where one does not end in time.

        What it gives is the number of the pointer that the writer may create.
        """
        with lease(self._claims, run_id, wait_seconds, say) as claim:
            number = self._last() + 1
            # Whoever removes the claim from here on takes the same number, or a later one: then
            # this run's pointer is there already. Before, it may have published the one before
            # this number, and still be clearing away what it takes for a dead run's.
            if not claim.exists():
                raise LeaseError(
                    f"this run slept for minutes before it wrote to {self.root}, and "
                    "another one took its turn: this one changed nothing; run it again"
                )
            try:
                yield number
            except (OSError, DamagedError) as error:
                # The one that published has cleared away what this one wrote.
                if self._run_of(number) not in (None, run_id):
                    raise self._lost() from error
                raise

    def publish(self, run: PublishedRun, folders: Iterable[Location], prefix: str = "") -> None:
        """Makes a run the one that counts, whose tables are written already; clears others away.

        ``folders``: of the tables, in which all is a run's whose name begins with the ``prefix``.
        LeaseError where another writer published meanwhile.
        """
        values = {
            **({"date": run.date} if run.date else {}),
            "run_id": run.run_id,
            "summary": run.summary,
            "tables": run.tables,
            "files": {name: list(map(vars, files.files)) for name, files in run.files.items()},
            "name": self._name,
            "number": run.number,
        }
        text = sealed(values)
        copy = self._manifests / f"{run.run_id}.json"
        copy.write_new_text(text)
        pointer = self._pointer(run.number)
        try:
            pointer.create_text(text)
        except OSError as error:
            # It may have failed after it had created the file; a server is then asked again.
            is_made = False
            with suppress(FileNotFoundError):
                is_made = not pointer.is_folder() and pointer.read_bytes() == text.encode()
            if not is_made:
                if not isinstance(error, FileExistsError):
                    raise
                copy.delete_file()
                raise self._lost() from None
        # From here on the run counts, whatever fails: the next one mends it.
        try:
            self._clear(folders, prefix)
        except Exception as error:
            _warn(
                f"run {run.run_id} is published, but what earlier runs left at {self.root} was not "
                f"removed ({sentence_of(error)}); the next run tries again"
            )

    def _lost(self) -> LeaseError:
        winner = self.find()
        who = f"run {winner.run_id} counts there now, and " if winner else ""
        return LeaseError(
            f"another run published {self._name} below {self.root} while this one was at work: "
            f"{who}nothing of this one was published; run it again"
        )

    def _run_of(self, number: int) -> str | None:
        """The run that a pointer names, whether its tables are there or not."""
        if number not in self._runs:
            with suppress(OSError, ValueError):
                text = self._pointer(number).read_bytes()
                self._runs[number] = str(unsealed(text).get("run_id"))
        return self._runs.get(number)

    def _clear(self, folders: Iterable[Location], prefix: str) -> None:
        """Removes what other runs left in the folders of tables, their manifests with it.

        Kept are the run that counts and, aside, the one before it, for those that read it, and runs
        that may be at work.
        """
        there = [
            folder / name
            for places, begin in ((folders, prefix), ((self._manifests, self._aside), ""))
            for folder in places
            for name in folder.children()
            if name.startswith(begin)
        ]
        # After the listings, and in this order: a run that was listed has a claim until it has
        # published, and from then on counts.
        claimed = claimed_runs(self._claims)
        kept = self.read_runs()
        # Elsewhere a late listing of the claims may hide that a run is at work.
        earliest = None if self.root.is_local or not kept else run_begins(kept[0]) - AT_WORK
        times = self._times()
        last = max(times, default=0)
        earlier = sorted((number for number in times if number < last), reverse=True)
        for place in there if kept else ():
            run_id = place.name.removeprefix(_RUN).removesuffix(".json")
            if run_id in kept:
                if self._date and run_id != kept[0] and place.name.startswith(_RUN):
                    path = place.base.removeprefix(self.root.base).strip("/")
                    place.move(self._aside / run_id / path)
            elif (
                # Whoever has a pointer is at work no more. The last ones are asked first.
                any(self._run_of(number) == run_id for number in earlier)
                or (run_id not in claimed and (not earliest or run_begins(run_id) < earliest))
            ):
                place.delete()
        for number, time in times.items():
            # A late listing may show only the first of several in a row.
            if number < last - 1 and time and times[last] and times[last] - time > AT_WORK:
                self._pointer(number).delete()
        for name in self._published.children():
            # A writer left it that died while it wrote the pointer.
            if name.startswith((f".{self._name}.", f"_{self._name}.")) and name.endswith(".tmp"):
                (self._published / name).delete()

    def _last_whole(self) -> PublishedRun | None:
        """The run whose manifest has the highest number, of those of which all files are there."""
        whole = []
        for name in self._manifests.children():
            with suppress(OSError, ValueError, DamagedError):
                run = self._checked((self._manifests / name).read_bytes())
                for files in run.files.values():
                    files.check_sizes(self.root)
                whole.append(run)
        return max(whole, key=lambda run: (run.number, run.run_id), default=None)

    def _checked(self, data: bytes) -> PublishedRun:
        """The run of a manifest; ValueError where it is none."""
        values = unsealed(data)
        kinds = {"run_id": str, "summary": dict, "files": dict, "number": int}
        if not all(isinstance(values.get(key), kind) for key, kind in kinds.items()):
            raise ValueError(f"expected {', '.join(kinds)}")
        if values.get("name") != self._name:
            raise ValueError(f"it is of {values.get('name')}")
        if not _RUN_ID.fullmatch(values["run_id"]):
            raise ValueError("its run_id is no name of a run")
        if self._date:
            check_summary(values["summary"])
        if not all(_TABLE.fullmatch(name) for name in values["files"]):
            raise ValueError("its tables are no names of tables")
        try:
            files = {name: TableFiles.from_json(each) for name, each in values["files"].items()}
        except TypeError as error:
            raise ValueError(f"its list of files is none: {error}") from error
        run = PublishedRun(self._date, values["run_id"], values["summary"], files, values["number"])
        for found in (run, self.aside(run)):
            paths = [file.path for table in found.files.values() for file in table.files]
            if not paths or any((self.root / path).exists() for path in (paths[0], paths[-1])):
                return found
        raise ValueError("its tables are not here: it is of another folder")


def run_begins(run_id: str) -> datetime:
    """The beginning of a run, by its id; the end of time where no run wrote the id."""
    try:
        return datetime.strptime(run_id[:16], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        return datetime.max.replace(tzinfo=UTC)


@cache
def _warn(text: str) -> None:
    """Once for each text: a command looks at a pointer several times."""
    _LOGGER.warning(text)


def check_summary(summary: Any) -> None:
    """ValueError where it is none of a run."""
    for name in _differing(summary, _SHAPE, "summary"):
        raise ValueError(f"its summary is none of a run: {name}")


def _differing(value: Any, shape: Any, name: str) -> Iterator[str]:
    """The names of the values that are not as the shape has them."""
    if not isinstance(shape, dict | list):
        is_so = isinstance(value, shape) if isinstance(shape, type | tuple) else shape(value)
        yield from () if is_so else [name]
    elif not isinstance(value, type(shape)):
        yield name
    else:
        values = value if isinstance(value, dict) else dict(enumerate(value))
        shape_of_all = shape[0] if isinstance(shape, list) else shape.get(...)
        shapes: Any = dict.fromkeys(values, shape_of_all) if shape_of_all else shape
        for key, shape_there in shapes.items():
            yield from _differing(values.get(key), shape_there, f"{name}.{key}")

"""The one place that touches files other than through Spark: any file system that PyArrow reaches.

A run is published in one step. Its tables are written under
``<reports>/<table>/dt=<date>/run=<run id>/``, its state tables likewise under
``<reports>/_states/``, then its summary and its manifest, then one small object,
``<reports>/_published/dt=<date>.json``, is replaced: it names the run that counts. Until then a
reader sees the run before; a run that dies leaves it so.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from glob import glob
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.fs as pafs

from jobs.errors import InputError

_SCHEME = re.compile(r"^([a-zA-Z][a-zA-Z0-9+.-]*)://")
#: The names that Spark has for a file system and PyArrow has not.
_ALIASES = {"s3a": "s3", "s3n": "s3"}
#: The folder of the state tables; no report table has such a name.
_STATES = "_states"


class Location:
    """A folder on some file system, by the same path or URI that Spark is given."""

    def __init__(self, path: str | Path) -> None:
        text = str(path)
        match = _SCHEME.match(text)
        if match is None and not text.startswith("file:"):
            text = str(Path(text).absolute())
        #: For Spark: absolute, so that an executor's working directory does not matter.
        self.uri = text
        scheme = match.group(1) if match else "file"
        if scheme == "file":
            local = re.sub(r"^file:(//)?", "", text)
            self._fs: pafs.FileSystem = pafs.LocalFileSystem()
            self._base = local.rstrip("/") or "/"
        else:
            arrow_uri = text.replace(scheme, _ALIASES.get(scheme, scheme), 1)
            self._fs, base = pafs.FileSystem.from_uri(arrow_uri)
            self._base = base.rstrip("/")

    def __truediv__(self, name: str) -> Location:
        below = Location.__new__(Location)
        below.uri = f"{self.uri.rstrip('/')}/{name}"
        below._fs = self._fs
        below._base = f"{self._base.rstrip('/')}/{name}"
        return below

    def __str__(self) -> str:
        return self.uri

    @property
    def file_system(self) -> pafs.FileSystem:
        """PyArrow's file system, for readers of its own."""
        return self._fs

    @property
    def base(self) -> str:
        """The path on that file system."""
        return self._base

    def exists(self) -> bool:
        """Whether there is a file or a folder."""
        return bool(self._fs.get_file_info(self._base).type != pafs.FileType.NotFound)

    def is_folder(self) -> bool:
        """Whether there is a folder."""
        return bool(self._fs.get_file_info(self._base).type == pafs.FileType.Directory)

    @property
    def is_local(self) -> bool:
        """Whether it lies on this machine's own file system."""
        return isinstance(self._fs, pafs.LocalFileSystem)

    def read_text(self) -> str:
        """The text of the file; FileNotFoundError where there is none."""
        with self._fs.open_input_stream(self._base) as stream:
            return bytes(stream.read()).decode("utf-8")

    def read_json(self) -> Any:
        """The value of the JSON file; FileNotFoundError where there is none."""
        return json.loads(self.read_text())

    def replace_text(self, text: str) -> None:
        """Writes the file so that a reader sees the old text or the new, never a part.

        On a local disk by writing beside it and renaming; an object store replaces whole objects.
        """
        parent = self._base.rsplit("/", 1)[0]
        self._fs.create_dir(parent, recursive=True)
        if self.is_local:
            beside = Path(f"{self._base}.new")
            beside.write_text(text, encoding="utf-8")
            beside.replace(self._base)
            return
        with self._fs.open_output_stream(self._base) as stream:
            stream.write(text.encode("utf-8"))

    def children(self) -> list[str]:
        """The names of the files and folders right below, sorted; none where there is no folder."""
        selector = pafs.FileSelector(self._base, allow_not_found=True)
        return sorted(info.base_name for info in self._fs.get_file_info(selector))

    def files(self) -> list[tuple[str, int]]:
        """Path and size of every file of a table: right here, or in folders named ``key=value``.

        Hidden and marker files are left out, and other folders, as Spark leaves them out: a job
        that is still writing, say.
        """
        selector = pafs.FileSelector(self._base, allow_not_found=True, recursive=True)
        return sorted(
            (info.path, int(info.size))
            for info in self._fs.get_file_info(selector)
            if info.type == pafs.FileType.File and self._is_of_table(info.path)
        )

    def _is_of_table(self, path: str) -> bool:
        *folders, name = path.removeprefix(self._base).strip("/").split("/")
        is_hidden = any(part.startswith(("_", ".")) for part in (*folders, name))
        return not is_hidden and all("=" in folder for folder in folders)

    def parquet(self) -> ds.Dataset:
        """The table that Spark wrote here, as PyArrow reads it."""
        return ds.dataset([path for path, _ in self.files()], format="parquet", filesystem=self._fs)

    def delete(self) -> None:
        """Removes the folder with all below it, if it is there."""
        if self.exists():
            self._fs.delete_dir(self._base)


def check_date(date: str) -> str:
    """The date as it came, if it is one: it becomes part of a path."""
    try:
        is_date = datetime.date.fromisoformat(date).isoformat() == date
    except ValueError:
        is_date = False
    if not is_date:
        raise InputError(f"expected a date as YYYY-MM-DD, came {date!r}")
    return date


@dataclass(frozen=True)
class Published:
    """What the pointer object of a date says: the run that counts, and its tables."""

    date: str
    run_id: str
    tables: tuple[str, ...]
    summary: dict[str, Any]


class Reports:
    """The folder of the published reports."""

    def __init__(self, root: Location) -> None:
        self.root = root

    def table(self, name: str, date: str, run_id: str) -> Location:
        """Where one table of one run lies."""
        return self.root / name / f"dt={check_date(date)}" / f"run={run_id}"

    def dataset(self, published: Published, name: str) -> ds.Dataset:
        """One table of a published run, as PyArrow reads it.

        InputError where its files are gone: an empty table has a file too.
        """
        location = self.table(name, published.date, published.run_id)
        if not location.files():
            raise InputError(f"table {name} of run {published.run_id} has no files at {location}")
        return location.parquet()

    def state_table(self, name: str, date: str, run_id: str) -> Location:
        """Where one state table of one run lies: beside the reports, for the run that goes on."""
        return self.root / _STATES / name / f"dt={check_date(date)}" / f"run={run_id}"

    def told(self, date: str) -> Location:
        """Where it stands what was told of the runs of a date: a JSON object."""
        return self.root / "_alerts" / f"dt={check_date(date)}.json"

    def _pointer(self, date: str) -> Location:
        return self.root / "_published" / f"dt={check_date(date)}.json"

    def publish(self, published: Published) -> None:
        """Makes a run the one that counts, then clears what other runs of the date left.

        The run that counted before is kept until the next publication, for whoever reads it now.
        """
        date, run_id = published.date, published.run_id
        before = self.find(date)
        (self.table("summary", date, run_id) / "summary.json").replace_text(
            json.dumps(published.summary, indent=2, ensure_ascii=False) + "\n"
        )
        self._pointer(date).replace_text(json.dumps(asdict(published), ensure_ascii=False))
        keep = {f"run={run_id}"} | ({f"run={before.run_id}"} if before else set())
        states = self.root / _STATES
        for table in (
            *[self.root / name for name in (*published.tables, "summary")],
            *[states / name for name in states.children()],
        ):
            of_date = table / f"dt={date}"
            for child in of_date.children():
                if child.startswith("run=") and child not in keep:
                    (of_date / child).delete()

    def dates(self) -> list[str]:
        """The dates that have a published run, ascending."""
        names = (self.root / "_published").children()
        found = (re.fullmatch(r"dt=(\d{4}-\d{2}-\d{2})\.json", name) for name in names)
        return [match.group(1) for match in found if match]

    def find(self, date: str) -> Published | None:
        """The run that counts for a date, if any."""
        pointer = self._pointer(date)
        if not pointer.exists():
            return None
        values = json.loads(pointer.read_text())
        return Published(**{**values, "tables": tuple(values["tables"])})

    def before(self, date: str) -> Published | None:
        """The run that counts for the last date before one: whenever either was published."""
        earlier = [each for each in self.dates() if each < check_date(date)]
        return self.find(earlier[-1]) if earlier else None

    def last(self, date: str | None) -> Published | None:
        """The run to go on from: that of the date, else of the last one before it.

        Without a date that of the last date.
        """
        if date is not None:
            return self.find(date) or self.before(date)
        dates = self.dates()
        return self.find(dates[-1]) if dates else None

    def resolve(self, date: str | None) -> Published:
        """The run that counts for a date, or for the last one; InputError where there is none."""
        dates = self.dates()
        if not dates:
            raise InputError(f"no published reports under {self.root}")
        published = self.find(check_date(date) if date else dates[-1])
        if published is None:
            raise InputError(
                f"no published report of {date} under {self.root}; "
                f"there are {', '.join(dates[-10:])}"
            )
        return published


def local_bytes(paths: Sequence[str]) -> int | None:
    """The size of all that local paths, folders and globs name; None where one is not local.

    >>> local_bytes(["s3a://bucket/dumps"]) is None
    True
    """
    if any(_SCHEME.match(path) and not path.startswith("file:") for path in paths):
        return None
    patterns = [re.sub(r"^file:(//)?", "", path) for path in paths]
    # Path.glob takes no absolute pattern.
    named = {Path(each) for pattern in patterns for each in glob(pattern)}  # noqa: PTH207
    files = {file for each in named for file in (each, *each.rglob("*")) if file.is_file()}
    return sum(file.stat().st_size for file in files)


def absolute_paths(paths: Sequence[str]) -> list[str]:
    """The paths as Spark is to get them: local ones absolute, URIs as they are, each once."""
    return list(
        dict.fromkeys(
            path if _SCHEME.match(path) or path.startswith("file:") else str(Path(path).absolute())
            for path in paths
        )
    )

"""A run becomes the one that counts: manifest, pointer, and what is cleared away afterwards.

    <root>/<tables>/.../run=<run id>/      the tables of a run; nobody reads them yet
    <root>/_manifests/<name>/<run id>.json what the run wrote; then
    <root>/_published/<name>.json          the pointer: the same text. Replacing it publishes
    <root>/_claims/<name>/                 who is writing

Until the pointer is replaced a reader sees the run before. A run that dies leaves it so, and the
next one clears what it left. A pointer that cannot be read is as good as the last whole manifest.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import pyarrow.fs as pafs

from jobs.errors import DamagedError
from jobs.storage.lease import Lease, claimed_runs, lease
from jobs.storage.location import Location
from jobs.storage.manifest import TableFiles, sealed, unsealed

_LOGGER = logging.getLogger(__name__)
_RUN = "run="
#: Both become a part of paths.
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_TABLE = re.compile(r"[a-z][a-z0-9_]*")


class Publication:
    """What is published under one name below a root: a date's reports, or the snapshot tables."""

    def __init__(self, root: Location, name: str) -> None:
        self.root = root
        self._published = root / "_published"
        self._pointer = self._published / f"{name}.json"
        self._name = name
        self._manifests = root / "_manifests" / name
        self._claims = root / "_claims" / name

    def find(self) -> dict[str, Any] | None:
        """The manifest of the run that counts; None where none was published.

        Where the pointer cannot be read, that of the last run that is whole, with a warning.
        """
        try:
            return _checked(self._pointer.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            # A disk or a server that does not answer does not show whether there is a pointer.
            if isinstance(error, OSError) and not self._pointer.is_folder():
                raise
            last = self._last_whole()
            _warn(
                f"{self._pointer} cannot be read ({error}): "
                + (f"run {last['run_id']} counts" if last else "nothing counts as published there")
                + "; the next run mends it"
            )
            return last

    @contextmanager
    def writing(
        self, run_id: str, wait_seconds: float, say: Callable[[str], None]
    ) -> Iterator[Lease]:
        """Keeps other writers of the name out; LeaseError where one does not end in time."""
        with lease(self._claims, run_id, wait_seconds, say) as held:
            yield held

    def publish(self, manifest: Mapping[str, Any], held: Lease) -> None:
        """Makes the run of the manifest the one that counts; its tables are written already.

        LeaseError where another writer took over meanwhile.
        """
        text = sealed(manifest)
        (self._manifests / f"{manifest['run_id']}.json").write_new_text(text)
        self._set_aside(manifest["run_id"])
        held.check()
        try:
            self._pointer.replace_text(text)
        except FileNotFoundError:
            # Of two writers, one of which took over from the other, one cleared away what the
            # other was about to put in its place.
            held.check()
            self._pointer.replace_text(text)
        self._clear_half_files()

    def clear(self, tables: Iterable[Location], keep: Iterable[str], prefix: str = "") -> None:
        """Removes what other runs left in the folders of tables, their manifests with it.

        Runs that may still be alive are kept, and the one that counts: it need not be this one any
        more. With a ``prefix`` only names that begin so are removed; else all that is there is a
        run's.
        """
        there = [(table, info) for table in tables for info in table.infos()]
        manifests = self._manifests.children()
        # After the listing, and in this order: a run that was listed has a claim until it has
        # published, and from then on counts.
        kept = {*keep, *claimed_runs(self._claims), *self._counting()}
        for table, info in there:
            run_id = info.base_name.removeprefix(_RUN)
            if run_id in kept or not info.base_name.startswith(prefix):
                continue
            child = table / info.base_name
            if info.type == pafs.FileType.Directory:
                child.delete()
            else:
                child.delete_file()
        for name in manifests:
            if name.removesuffix(".json") not in kept:
                (self._manifests / name).delete_file()

    def _counting(self) -> list[str]:
        values = self.find()
        return [] if values is None else [values["run_id"]]

    def _clear_half_files(self) -> None:
        """Removes what a writer left that died while it wrote the pointer."""
        for name in self._published.children():
            if name.startswith((f".{self._name}.", f"_{self._name}.")) and name.endswith(".tmp"):
                (self._published / name).delete_file()

    def _set_aside(self, run_id: str) -> None:
        """Keeps a pointer that cannot be read, for whoever wants to know what happened to it."""
        aside = self._published / f"{self._name}.unreadable-{run_id}"
        if self._pointer.is_folder():
            self.root.file_system.move(self._pointer.base, aside.base)
            return
        try:
            data = self._pointer.read_bytes()
            _checked(data)
        except FileNotFoundError:
            return
        except ValueError:
            aside.replace_text(data.decode("utf-8", "backslashreplace"))

    def _last_whole(self) -> dict[str, Any] | None:
        """The last manifest, by the time in a run's id, of which all files are there."""
        for name in reversed(self._manifests.children()):
            try:
                manifest = _checked((self._manifests / name).read_bytes())
                for files in manifest["files"].values():
                    TableFiles.from_json(files).check_sizes(self.root)
            except (OSError, ValueError, DamagedError):
                continue
            return manifest
        return None


def _checked(data: bytes) -> dict[str, Any]:
    """The values of a manifest with the keys that each has; ValueError where it has not."""
    values = unsealed(data)
    kinds = {"run_id": str, "tables": list, "summary": dict, "files": dict}
    if not all(isinstance(values.get(key), kind) for key, kind in kinds.items()):
        raise ValueError(f"expected {', '.join(kinds)}")
    if not _RUN_ID.fullmatch(values["run_id"]):
        raise ValueError("its run_id is no name of a run")
    if not all(isinstance(each, str) and _TABLE.fullmatch(each) for each in values["tables"]):
        raise ValueError("its tables are no names of tables")
    if not values["files"].keys() >= set(values["tables"]):
        raise ValueError("it has tables without files")
    try:
        for each in values["files"].values():
            TableFiles.from_json(each)
    except TypeError as error:
        raise ValueError(f"its list of files is none: {error}") from error
    return values


@cache
def _warn(text: str) -> None:
    """Once for each text: a command looks at a pointer several times."""
    _LOGGER.warning(text)

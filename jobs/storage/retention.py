"""What is old is removed: published dates, tables of runs that died, leftovers.

Only files and folders with the names that runs give them are removed; all others stay. A date goes
under its lease and its pointer goes first, so that a reader finds the date whole or does not find
it. Whoever is killed in between leaves the rest to the next one.

Days are counted back from the last published date, not from today: no report disappears because
the audits stopped, or because a clock is wrong. The last published date is never removed.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from enum import Enum, auto
from pathlib import Path
from typing import NamedTuple

import pyarrow.fs as pafs

from jobs.errors import LeaseError
from jobs.failures import sentence_of
from jobs.storage import disk
from jobs.storage.location import Location
from jobs.storage.publication import AT_WORK, Publication, began
from jobs.storage.reports import Reports
from rebalance_core.english import count

_MOST_LISTINGS = 5
_NEVER = datetime.min.replace(tzinfo=UTC)

_DATE = r"(?P<name>dt=\d{4}-\d{2}-\d{2})"
_RUN = r"(?P<run>\d{8}T\d{6}Z-[0-9a-f]{6})"
_TABLE = r"[^_./][^/]*"
#: The snapshot tables are published under this one name, the reports under their dates.
_NAME = "snapshots"

#: What the items are counted as.
_OLD_DATE = "published dates"
_DEAD = "runs that were not published"
_TEMPORARY = "temporary files"


class _Kind(Enum):
    """What an item is, in the order in which the items of a date go."""

    POINTER = auto()
    MANIFEST = auto()
    TABLE = auto()
    PAGE_OR_NOTE = auto()
    CLAIM = auto()
    FOLDER = auto()
    UNDER_WAY = auto()


_REPORTS = {
    _Kind.POINTER: rf"_published/{_DATE}\.\d{{6,18}}\.json\Z",
    _Kind.MANIFEST: rf"_manifests/{_DATE}/{_RUN}\.json\Z",
    _Kind.TABLE: rf"{_TABLE}/{_DATE}/run={_RUN}(?=/|\Z)",
    _Kind.PAGE_OR_NOTE: rf"(?:report|_alerts)/{_DATE}\.(?:html|md|json)\Z",
    _Kind.CLAIM: rf"_claims/{_DATE}/[^/]+\.claim\Z",
    _Kind.FOLDER: rf"(?:_manifests|_claims|{_TABLE})/{_DATE}\Z",
}
_SNAPSHOTS = {
    _Kind.POINTER: rf"_published/{_NAME}\.\d{{6,18}}\.json\Z",
    _Kind.MANIFEST: rf"_manifests/{_NAME}/{_RUN}\.json\Z",
    _Kind.TABLE: rf"(?:{_TABLE}/run=|_staging/){_RUN}(?=/|\Z)",
    _Kind.CLAIM: rf"_claims/{_NAME}/[^/]+\.claim\Z",
}
#: What ``Location.replace_text`` writes before it gives it its name.
_UNDER_WAY = {_Kind.UNDER_WAY: r"(?:[^/]+/)*[._][^/]+\.[0-9a-f]{12}\.tmp\Z"}


@dataclass(frozen=True)
class Retention:
    """What is to be kept, and whether anything is removed at all.

    ``keep_days``: so many days are kept, the last published date among them; None: all dates.
    ``spared``: dates that are kept, whatever their age. ``run_id``: who asks, for the leases.
    """

    keep_days: int | None
    now: datetime
    run_id: str
    dry_run: bool = False
    spared: frozenset[str] = frozenset()

    def first_kept(self, last: str | None) -> str | None:
        """The first date that is kept, where this is the last one; None: all of them are.

        >>> Retention(2, datetime(2026, 11, 22, tzinfo=UTC), "").first_kept("2026-11-20")
        '2026-11-19'
        """
        if self.keep_days is None or last is None:
            return None
        try:
            return (date.fromisoformat(last) - timedelta(days=self.keep_days - 1)).isoformat()
        except OverflowError:  # more days than the calendar has
            return None

    def past(self, dates: Iterable[str]) -> list[str]:
        """The dates that do not lie in the future, ascending: in others some clock was wrong."""
        return sorted(each for each in dates if each <= self.now.date().isoformat())


@dataclass
class Pruned:
    """What was removed, or would be: the names, files and bytes by what it was.

    ``left``: what stays for the next time. ``failed``: what could not be removed, and why.
    """

    names: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    files: Counter[str] = field(default_factory=Counter)
    sizes: Counter[str] = field(default_factory=Counter)
    left: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def count(self, what: str, name: str, files: int, size: int) -> None:
        """Counts what goes under one name."""
        self.names[what].add(name)
        self.files[what] += files
        self.sizes[what] += size

    def lines(self, *, dry_run: bool) -> Iterator[str]:
        """A line for each thing of which some went, and for each that was left."""
        verb = "would remove" if dry_run else "removed"
        for what, names in self.names.items():
            first, last = min(names), max(names)
            which = first if first == last else f"{first} to {last}"
            files = count(self.files[what], "file")
            yield f"{verb} {what}: {len(names):,} ({which}), {files}, {self.sizes[what]:,} bytes"
        yield from self.left


@dataclass
class _Item:
    """A file, or a folder with all below it, that runs make; ``path`` is below the root."""

    kind: _Kind
    path: str
    name: str
    run_id: str | None
    files: int = 0
    size: int = 0
    changed: datetime = _NEVER


def prune_reports(reports: Reports, retention: Retention) -> Pruned:
    """Removes what is old or left over below a folder of published reports.

    Of the dates that are kept the tables of runs go that died more than a day ago. A date that a
    run is writing stays as it is.
    """
    items = _listed(reports.root, _REPORTS)
    past = retention.past(each.name[3:] for each in items if each.kind is _Kind.POINTER)
    last = next((each for each in reversed(past) if reports.find(each) is not None), None)
    first_kept = retention.first_kept(last)
    pruned = Pruned()
    for name, of_date in _by_name(items).items():
        day = name[3:]
        if first_kept is not None and day < first_kept and day not in retention.spared:
            going = [_Going(_OLD_DATE, day, each) for each in of_date]
        else:
            going = _dead(reports.root, name, of_date, retention)
        _remove(reports.root, name, of_date, going, retention, pruned)
    _remove_under_way(reports.root, items, retention, pruned)
    return pruned


def prune_snapshots(root: Location, retention: Retention) -> Pruned:
    """Removes what ingests that died left in the folder of the snapshot tables.

    The tables of the last ingest stay, however old they are, and so do all tables of a lake.
    """
    items = _listed(root, _SNAPSHOTS)
    pruned = Pruned()
    for name, of_name in _by_name(items).items():
        going = _dead(root, name, of_name, retention)
        _remove(root, name, of_name, going, retention, pruned)
    _remove_under_way(root, items, retention, pruned)
    return pruned


class _Going(NamedTuple):
    """An item that goes: as what it is counted, and under which name."""

    what: str
    counted_as: str
    item: _Item

    def counted(self, pruned: Pruned) -> None:
        """Counts it among what was removed."""
        pruned.count(self.what, self.counted_as, self.item.files, self.item.size)


def _listed(root: Location, patterns: dict[_Kind, str]) -> list[_Item]:
    """What lies below the root and has the name of something that runs make."""
    compiled = {kind: re.compile(pattern) for kind, pattern in (patterns | _UNDER_WAY).items()}
    items: dict[str, _Item] = {}
    for info in _infos(root):
        path = info.path.removeprefix(root.base).lstrip("/")
        matches = ((kind, pattern.match(path)) for kind, pattern in compiled.items())
        kind, match = next(((kind, match) for kind, match in matches if match), (None, None))
        if kind is None or match is None:
            continue
        groups = match.groupdict()
        if not _is_date(groups.get("name")):
            continue
        new = _Item(kind, match.group(), groups.get("name") or _NAME, groups.get("run"))
        item = items.setdefault(match.group(), new)
        if info.type == pafs.FileType.File:
            item.files += 1
            item.size += info.size
        if info.mtime is not None:
            item.changed = max(item.changed, info.mtime.astimezone(UTC))
    return [items[path] for path in sorted(items)]


def _infos(root: Location) -> list[pafs.FileInfo]:
    """All below the root; listed again where a run removes a folder while it is listed."""
    selector = pafs.FileSelector(root.base, allow_not_found=True, recursive=True)
    for _ in range(_MOST_LISTINGS - 1):
        with suppress(FileNotFoundError):
            return list(root.file_system.get_file_info(selector))
    return list(root.file_system.get_file_info(selector))


def _is_date(name: str | None) -> bool:
    """Whether a name ``dt=...`` is that of a date; others are."""
    if name is None or not name.startswith("dt="):
        return True
    with suppress(ValueError):
        return bool(date.fromisoformat(name.removeprefix("dt=")))
    return False


def _by_name(items: Iterable[_Item]) -> dict[str, list[_Item]]:
    """The items of each date, or of the snapshot tables, the earliest date first."""
    found: dict[str, list[_Item]] = defaultdict(list)
    for item in items:
        if item.kind is not _Kind.UNDER_WAY:
            found[item.name].append(item)
    return dict(sorted(found.items()))


def _dead(root: Location, name: str, items: list[_Item], retention: Retention) -> list[_Going]:
    """What runs left that died: no pointer names them, and they began more than a day ago.

    Where there is no pointer, a run with a manifest stays: somebody may have lost the pointer.
    """
    of_runs = [each for each in items if each.kind in (_Kind.MANIFEST, _Kind.TABLE)]
    has_pointer = any(each.kind is _Kind.POINTER for each in items)
    if has_pointer and len({each.run_id for each in of_runs}) <= 1:
        return []  # the run that the pointer names: no need to read it
    in_force = _run_in_force(root, name) if has_pointer else None
    if has_pointer and in_force is None:
        return []
    kept = {in_force}
    if not has_pointer:
        kept |= {each.run_id for each in items if each.kind is _Kind.MANIFEST}
    return [
        _Going(_DEAD, str(each.run_id), each)
        for each in of_runs
        if each.run_id not in kept and _is_past(each, retention)
    ]


def _is_past(item: _Item, retention: Retention) -> bool:
    """Whether the run of an item began so long ago that it is at work no more."""
    return retention.now - began(str(item.run_id)) > AT_WORK


def _run_in_force(root: Location, name: str) -> str | None:
    values = Publication(root, name).find()
    return None if values is None else str(values["run_id"])


def _remove(
    root: Location,
    name: str,
    items: list[_Item],
    going: list[_Going],
    retention: Retention,
    pruned: Pruned,
) -> None:
    """Removes what goes of one date, or of the snapshot tables, while nobody else writes there."""
    in_order = sorted(going, key=lambda each: (each.item.kind.value, each.item.path))
    contents = [each for each in in_order if each.item.kind not in (_Kind.CLAIM, _Kind.FOLDER)]
    if retention.dry_run:
        for each in contents:
            each.counted(pruned)
        return
    # Whoever takes the lease clears old claims away.
    has_old_claims = any(
        each.kind is _Kind.CLAIM and retention.now - each.changed > AT_WORK for each in items
    )
    try:
        if contents or has_old_claims:
            with Publication(root, name).writing(retention.run_id, 0, lambda _: None):
                in_force = _run_in_force(root, name)
                for each in contents:
                    if each.what != _DEAD or each.item.run_id != in_force:
                        _delete(root, each.item)
                        each.counted(pruned)
        for each in in_order:
            if each.item.kind is _Kind.FOLDER:
                _delete_if_empty(root / each.item.path)
    except LeaseError:
        pruned.left.append(f"{name} stays this time: another run is writing there")
    except OSError as error:
        pruned.failed.append(f"not all of {name} was removed: {sentence_of(error)}")


def _delete(root: Location, item: _Item) -> None:
    place = root / item.path
    if item.kind is _Kind.TABLE:
        place.delete()
        return
    place.delete_file()
    if item.kind is _Kind.POINTER and root.is_local:
        # When the power fails, the tables are not gone before their pointer is.
        disk.sync(Path(place.base).parent)


def _delete_if_empty(folder: Location) -> None:
    """Removes a folder that nothing is in; an object store has none but as marks of their names."""
    if folder.is_local:
        with suppress(OSError):
            Path(folder.base).rmdir()
    elif not folder.base.rpartition("/")[0].endswith("/_claims") and not folder.children():
        folder.delete()


def _remove_under_way(
    root: Location, items: list[_Item], retention: Retention, pruned: Pruned
) -> None:
    """Removes the temporary files of whoever was killed while it wrote a file."""
    for item in items:
        if item.kind is _Kind.UNDER_WAY and retention.now - item.changed > AT_WORK:
            try:
                if not retention.dry_run:
                    _delete(root, item)
                pruned.count(_TEMPORARY, item.path, item.files, item.size)
            except OSError as error:
                pruned.failed.append(f"{item.path} was not removed: {sentence_of(error)}")

"""Retention: removes old dates, tables of runs that died, leftovers.

Only files and folders with the names that runs give them are removed; all others stay. A date goes
under its lease and its pointer goes first, so that a reader finds the date whole or does not find
it. A run that is killed in between leaves the rest to the next one.

Days are counted back from the last published date, not from today: no report disappears because
the audits stopped, or because a clock is wrong. The last published date is never removed.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs

from rebalance_core.english import count
from rebalance_core.grouping import grouped

from ..declared.instants import is_date
from ..errors import LeaseError
from ..texts.failures import sentence_of
from . import disk
from .location import Location
from .publication import AT_WORK, SNAPSHOTS, Publication, run_begins
from .reports import Reports
from .snapshots import new_run_id

_MOST_LISTINGS = 5
_NEVER = datetime.min.replace(tzinfo=UTC)

_DATE = r"dt=\d{4}-\d{2}-\d{2}"
_NAME = rf"(?:{_DATE}|{SNAPSHOTS})"
_RUN = r"\d{8}T\d{6}Z-[0-9a-f]{6}"
_TABLE = r"[^_./][^/]*"

#: Kinds of items, in the order in which those of a date go.
_ITEMS = {
    "pointer": rf"_published/{_NAME}\.\d{{6,18}}\.json\Z",
    "manifest": rf"_manifests/{_NAME}/{_RUN}\.json\Z",
    "tables": rf"(?:{_TABLE}/(?:{_DATE}/)?run=|_replaced/{_DATE}/){_RUN}(?=/|\Z)",
    "page": rf"(?:report|_alerts)/{_DATE}\.(?:html|md|json)\Z",
    "folder": rf"(?:_manifests|_claims|_replaced|{_TABLE})/{_DATE}\Z",
    # What ``Location.replace_text`` writes before it gives it its name, and claims of the dead.
    "temporary": r"(?:[^/]+/)*[._][^/]+\.[0-9a-f]{12}\.tmp\Z|_claims/[^/]+/[^/]+\.claim\Z",
}
_OF_RUNS = ("manifest", "tables", "temporary")
_ITEM = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _ITEMS.items()))


@dataclass(frozen=True)
class Retention:
    """The rule for what is kept, and whether anything is removed at all.

    ``keep_days``: so many days are kept, the last published date among them; None: all dates.
    ``spared``: dates that are kept, whatever their age.
    """

    keep_days: int | None
    now: datetime
    dry_run: bool = False
    spared: frozenset[str] = frozenset()

    def first_kept(self, dates: Iterable[str], counts: Callable[[str], Any] = bool) -> str:
        """The first of these dates that is kept; empty where all of them are.

        The last one is the last that ``counts`` and does not lie in the future: in others some
        clock was wrong.

        >>> two_days = Retention(2, datetime(2026, 11, 22, tzinfo=UTC))
        >>> two_days.first_kept(["2026-11-18", "2026-11-19", "2026-11-20", "2099-01-01"])
        '2026-11-19'
        """
        past = sorted(day for day in dates if day <= self.now.date().isoformat())
        last = next(filter(counts, reversed(past)), None)
        if self.keep_days is None or last is None:
            return ""
        first = date.fromisoformat(last).toordinal() - self.keep_days + 1
        return date.fromordinal(max(1, first)).isoformat()


@dataclass
class PruneResult:
    """The things that were removed, or would be: by what it was the name, files and bytes of each.

    ``left``: what stays for the next time. ``failed``: what could not be removed, and why.
    """

    removed: dict[str, list[tuple[str, int, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    left: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def lines(self, *, dry_run: bool) -> Iterator[str]:
        """A line for each thing of which some went, and for each that was left."""
        verb = "would remove" if dry_run else "removed"
        for what, removed in self.removed.items():
            names, files, sizes = map(list, zip(*removed, strict=True))
            first, last = min(names), max(names)
            which = first if first == last else f"{first} to {last}"
            number = count(sum(files), "file")
            yield f"{verb} {what}: {len(set(names)):,} ({which}), {number}, {sum(sizes):,} bytes"
        yield from self.left


@dataclass
class _StoredItem:
    """A file, or a folder with all below it, that runs make; ``path`` is below the root."""

    kind: str
    path: str
    files: int = 0
    size: int = 0
    changed: datetime = _NEVER

    @property
    def name(self) -> str:
        """The date that it is of; else that of the snapshot tables."""
        found = re.search(rf"(?:\A|/){_DATE}", self.path)
        return found[0].lstrip("/") if found else SNAPSHOTS

    @property
    def run_id(self) -> str:
        """The run that it is of; empty where it is of none."""
        found = re.search(_RUN, self.path)
        return found[0] if found else ""

    def is_past(self, now: datetime) -> bool:
        """True if its writer is at work no more."""
        is_of_run = self.run_id and self.kind != "temporary"
        return now - (run_begins(self.run_id) if is_of_run else self.changed) > AT_WORK


def prune_reports(reports: Reports, retention: Retention) -> PruneResult:
    """Removes what is old or left over below a folder of published reports.

    Of the dates that are kept the tables of runs go that died more than a day ago, or that another
    run replaced so long ago. A date that a run is writing stays as it is.
    """
    items = _listed(reports.root)
    published = {item.name[3:] for item in items if item.kind == "pointer"}
    first_kept = retention.first_kept(published, reports.find)
    dates = {item.name for item in items} - {SNAPSHOTS}
    old = {name for name in dates if name[3:] < first_kept and name[3:] not in retention.spared}
    return _prune(reports.root, items, retention, old)


def prune_snapshots(root: Location, retention: Retention) -> PruneResult:
    """Removes what ingests that died left in the folder of the snapshot tables.

    The tables of the last ingest stay, however old they are, and so do all tables of a lake.
    """
    return _prune(root, _listed(root), retention, set())


def _prune(
    root: Location, items: list[_StoredItem], retention: Retention, old: set[str]
) -> PruneResult:
    pruned = PruneResult()
    named = ((item.path if item.kind == "temporary" else item.name, item) for item in items)
    for name, its_items in sorted(grouped(named).items()):
        try:
            _prune_name(Publication(root, name), its_items, retention, pruned, is_old=name in old)
        except LeaseError:
            pruned.left.append(f"{name} stays this time: another run is writing there")
        except OSError as error:
            pruned.failed.append(f"not all of {name} was removed: {sentence_of(error)}")
    return pruned


def _prune_name(
    publication: Publication,
    items: list[_StoredItem],
    retention: Retention,
    pruned: PruneResult,
    *,
    is_old: bool,
) -> None:
    """Removes what goes of one date, or of the snapshot tables, while nobody else writes there.

    A temporary file is nobody's.
    """
    going = items if is_old else _dead(publication, items, retention)
    contents = [item for item in going if item.kind != "folder"]
    with ExitStack() as stack:
        if contents and contents[0].kind != "temporary" and not retention.dry_run:
            run_id = new_run_id(retention.now)
            number = stack.enter_context(publication.writing(run_id, 0, lambda _: None))
            pointers = [item.path for item in items if item.kind == "pointer"]
            if pointers and number - 1 > max(map(publication.number_of, pointers)):
                raise LeaseError("it was published since it was listed")
        for item in contents:
            if not retention.dry_run:
                place = publication.root / item.path
                place.delete()
                if item.kind == "pointer" and place.is_local:
                    # When the power fails, the tables are not gone before their pointer is.
                    disk.sync(Path(place.base).parent)
            what, name = "runs that were not published", item.run_id
            if is_old:
                what, name = "published dates", item.name[3:]
            elif item.kind == "temporary":
                what, name = "temporary files", item.path
            pruned.removed[what].append((name, item.files, item.size))
    for item in going:
        if item.kind == "folder" and not retention.dry_run:
            _remove_if_empty(publication.root / item.path)


def _dead(
    publication: Publication, items: list[_StoredItem], retention: Retention
) -> list[_StoredItem]:
    """Items of runs, and temporary files, that are more than a day old and that nobody reads.

    Where there is no pointer, a run with a manifest stays: somebody may have lost the pointer.
    """
    run_items = [item for item in items if item.kind in _OF_RUNS]
    kept = runs = {item.run_id for item in run_items}
    if not any(item.kind == "pointer" for item in items):
        kept = {item.run_id for item in items if item.kind == "manifest"}
    elif len(runs) > 1:  # else the pointer names that run, and need not be read
        kept = set(publication.read_runs(retention.now)) or runs
    return [item for item in run_items if item.run_id not in kept and item.is_past(retention.now)]


def _listed(root: Location) -> list[_StoredItem]:
    """The items below the root with the name of something that runs make, in order of removal."""
    items: dict[str, _StoredItem] = {}
    for info in _infos(root):
        match = _ITEM.match(info.path.removeprefix(root.base).lstrip("/"))
        if match is None:
            continue
        name = _StoredItem("", match[0]).name
        if name != SNAPSHOTS and not is_date(name[3:]):
            continue
        item = items.setdefault(match[0], _StoredItem(str(match.lastgroup), match[0]))
        if info.type == pafs.FileType.File:
            item.files += 1
            item.size += info.size
        if info.mtime is not None:
            item.changed = max(item.changed, info.mtime.astimezone(UTC))
    kinds = list(_ITEMS)
    return sorted(items.values(), key=lambda item: (kinds.index(item.kind), item.path))


def _infos(root: Location) -> list[pafs.FileInfo]:
    """All below the root; listed again where a run removes a folder while it is listed."""
    for _ in range(_MOST_LISTINGS - 1):
        with suppress(FileNotFoundError):
            return root.infos(recursive=True)
    return root.infos(recursive=True)


def _remove_if_empty(folder: Location) -> None:
    """Removes a folder that nothing is in; an object store has none but as marks of their names."""
    if folder.is_local:
        with suppress(OSError):
            Path(folder.base).rmdir()
    elif "/_claims/" not in folder.base and not folder.children():
        folder.delete()

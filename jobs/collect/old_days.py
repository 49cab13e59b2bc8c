"""Old days of dumps are removed: whole folders, as the collector makes them, and nothing else."""

import re
from pathlib import Path

from rebalance_core.english import names

from ..console.failures import sentence_of
from ..declared.instants import is_date
from ..errors import InputError
from ..storage.retention import PruneResult, Retention

_WHAT = "days of dumps"
#: See ``DumpFolder.path``.
_ROUND = re.compile(r"\d{6}\.\d{3}(?:-[A-Za-z0-9._-]+)?\.jsonl\.gz", re.ASCII)
#: A day on its way out: no reader of dumps looks into a folder with such a name.
_GOING = ".removed-"


def prune_dumps(root: Path, retention: Retention) -> PruneResult:
    """Removes the days of a folder of dumps that are too old, counted back from the last one.

    A day goes in one step, so that nobody ingests a part of its rounds. It stays where there is
    anything in it but rounds. InputError where there is no such folder.
    """
    if not root.is_dir():
        raise InputError(f"expected a folder of dumps on this machine, there is none: {root}")
    pruned = PruneResult()
    if not retention.dry_run:
        for left in sorted(root.glob(f"{_GOING}*")):
            _delete(left, pruned)
    named = {path.name: path for path in sorted(root.iterdir()) if is_date(path.name)}
    days = {day: path for day, path in named.items() if path.is_dir() and not path.is_symlink()}
    first_kept = retention.first_kept(days)
    for day, path in days.items():
        if day >= first_kept:
            continue
        files = sorted(path.iterdir())
        others = [each.name for each in files if not _is_round(each)]
        if others:
            pruned.left.append(f"{path} stays: it has other files than rounds: {names(others, 3)}")
            continue
        size = sum(each.stat().st_size for each in files)
        try:
            if not retention.dry_run:
                _delete(path.rename(root / f"{_GOING}{day}"), pruned)
            pruned.removed[_WHAT].append((day, len(files), size))
        except OSError as error:
            pruned.failed.append(f"{path} was not removed: {sentence_of(error)}")
    return pruned


def _is_round(path: Path) -> bool:
    return bool(_ROUND.fullmatch(path.name)) and path.is_file() and not path.is_symlink()


def _delete(folder: Path, pruned: PruneResult) -> None:
    """Removes a day that has its hidden name; the next time goes on where this one is stopped."""
    try:
        for each in folder.iterdir():
            if _is_round(each):
                each.unlink()
        folder.rmdir()
    except OSError as error:
        pruned.failed.append(f"{folder} was not removed: {sentence_of(error)}")

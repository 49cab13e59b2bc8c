"""A courtesy among writers: one that finds another at work waits for it, instead of losing to it.

A writer puts a claim into the folder of claims, then lists the folder. It holds the lease where it
sees no other claim; else it takes its claim back and tries again later. Where listings are late two
may hold it: then the pointer decides (``publication.py``), for that is created once.

On a disk a writer locks its claim, and the lock ends with the process: a claim without a lock is
that of a dead run. A claim that nobody renews lapses. The times that the file system itself gave
the two claims show whether it did: no clock of this machine is compared with one of another.
"""

import logging
import os
import random
import re
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import timedelta
from pathlib import Path

import pyarrow.fs as pafs

from ..errors import LeaseError
from ..texts.failures import sentence_of
from ..texts.shown import visible
from . import disk
from .location import Location

_LOGGER = logging.getLogger(__name__)
#: Renewed so often, in seconds; a claim that was not renewed for as long as ``_LAPSE`` counts no
#: more. A process may stop for minutes: a laptop that sleeps, a full disk on NFS.
_RENEWAL = 20.0
_LAPSE = timedelta(minutes=5)
#: The run, the process and its machine, and a random part.
_CLAIM = re.compile(r"(?P<run>[^~]+)~(?:(?P<process>\d+)~(?P<host>[^~]+)~)?[^~]*\.claim\Z")


@contextmanager
def lease(
    claims: Location, run_id: str, wait_seconds: float, say: Callable[[str], None]
) -> Iterator[Location]:
    """Holds the lease of a folder of claims while the block runs.

    If another process holds it, it waits up to ``wait_seconds``, and ``say`` gets a line about
    that. Raises LeaseError if it did not get it. It gives the claim: another run that finds it
    lapsed removes it.
    """
    begins, has_reported = time.monotonic(), False
    while True:
        with _claim(claims, run_id) as mine:
            other = _other_claim(claims, mine)
            if other is None:
                yield mine
                return
        if time.monotonic() - begins >= wait_seconds:
            raise LeaseError(
                f"{other} is writing there ({claims}), also after {wait_seconds:g} s: this run "
                "gave up and changed nothing; run it again when the other one has ended"
            )
        if not has_reported:
            say(f"waits for {other}, which is writing to {claims}")
            has_reported = True
        # Two that began at a time both withdraw: the next time not at the same time.
        time.sleep(random.uniform(0.05, 0.5))  # noqa: S311 - no secret


def claimed_runs(claims: Location) -> frozenset[str]:
    """The runs that may be writing."""
    return frozenset(match["run"] for match in map(_CLAIM.match, claims.children()) if match)


@contextmanager
def _claim(claims: Location, run_id: str) -> Iterator[Location]:
    """A claim of this process, which is locked and renewed while the block runs."""
    host = re.sub(r"[^\w.-]", "_", socket.gethostname())
    mine = claims / f"{run_id}~{os.getpid()}~{host}~{secrets.token_hex(4)}.claim"
    mine.write_new_text("")
    ended = threading.Event()
    renewal = threading.Thread(target=_renew, args=(mine, ended), name="lease", daemon=True)
    renewal.start()
    try:
        with disk.locked(Path(mine.base)) if mine.is_local else nullcontext():
            yield mine
    finally:
        ended.set()
        renewal.join()
        try:
            mine.delete_file()
        except OSError as error:
            _LOGGER.warning(
                "the claim %s was not removed (%s): another run there waits for up to %d minutes",
                mine,
                sentence_of(error),
                _LAPSE.total_seconds() // 60,
            )


def _renew(mine: Location, ended: threading.Event) -> None:
    while not ended.wait(_RENEWAL):
        # A claim that cannot be renewed lapses.
        with suppress(OSError):
            os.utime(mine.base) if mine.is_local else mine.replace_text(mine.read_text())


def _other_claim(claims: Location, mine: Location) -> str | None:
    """The other run with a claim that counts; claims that count no more are broken."""
    infos = {info.base_name: info for info in claims.infos()}
    own = infos.pop(mine.name, None)
    if own is None:
        return "another run, which began at the same time,"
    for name, info in infos.items():
        if match := _CLAIM.match(name):
            age = own.mtime - info.mtime if own.mtime and info.mtime else timedelta()
            if age > _LAPSE or info.type != pafs.FileType.File or _is_left(claims / name):
                (claims / name).delete()
            else:
                where = f" (process {match['process']} on {match['host']})" * bool(match["host"])
                return visible(f"run {match['run']}{where}")
    return None


def _is_left(claim: Location) -> bool:
    """True if the process of a claim surely ended: on a disk its lock went with it."""
    if not claim.is_local:
        return False
    with disk.locked(Path(claim.base)) as was_free:
        return was_free

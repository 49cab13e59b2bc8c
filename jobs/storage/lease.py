"""A courtesy among writers: one that finds another at work waits for it, instead of losing to it.

A writer puts a claim into the folder of claims, then lists the folder. It holds the lease where it
sees no other claim; else it takes its claim back and tries again later. Where listings are late two
may hold it: then the pointer decides (``publication.py``), for that is created once.

A claim that nobody renews lapses. The times that the file system itself gave the two claims show
whether it did: no clock of this machine is compared with one of another.
"""

from __future__ import annotations

import json
import logging
import os
import random
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pyarrow.fs as pafs

from jobs.errors import LeaseError
from jobs.storage.location import Location

#: Renewed so often, in seconds; a claim that was not renewed for as long as ``_LAPSE`` counts no
#: more. A process may stop for minutes: a laptop that sleeps, a full disk on NFS.
_RENEWAL = 20.0
_LAPSE = timedelta(minutes=5)
_CLAIM = ".claim"
_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Owner:
    """The process behind a claim."""

    run_id: str
    host: str
    pid: int
    #: Together these name a process of this boot of this machine; empty where it has no /proc.
    started: str

    @classmethod
    def this(cls, run_id: str) -> Owner:
        """This process."""
        return cls(run_id, socket.gethostname(), os.getpid(), _started(os.getpid()))

    def is_dead(self) -> bool:
        """Whether the process surely ended: that can be seen of processes of this machine only."""
        here = Owner.this("")
        of_here = here.started.rpartition(" ")[0]
        if self.host != here.host or not of_here or self.started.rpartition(" ")[0] != of_here:
            # Another machine of this name, or another container, whose processes nobody sees here.
            return False
        return _started(self.pid) != self.started


def _started(pid: int) -> str:
    """Boot, namespace of processes, and the tick at which a process started; '' for none."""
    with suppress(OSError, IndexError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = Path("/proc/self/ns/pid").readlink()
        # The name of the command, in parentheses, may itself have blanks and parentheses.
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        state, *others = fields.rpartition(")")[2].split()
        if state != "Z":
            return f"{boot} {namespace} {others[18]}"
    return ""


@contextmanager
def lease(
    claims: Location,
    run_id: str,
    wait_seconds: float,
    say: Callable[[str], None],
) -> Iterator[None]:
    """Holds the lease of a folder of claims while the block runs.

    Where another process holds it, it waits up to ``wait_seconds``, which ``say`` gets a line of.
    Raises LeaseError where it did not get it.
    """
    claim = _acquire(claims, run_id, wait_seconds, say)
    ended = threading.Event()
    renewal = threading.Thread(target=_renew, args=(claim, ended), name="lease", daemon=True)
    renewal.start()
    try:
        yield
    finally:
        ended.set()
        renewal.join()
        claim.delete_file()


def _renew(claim: Location, ended: threading.Event) -> None:
    while not ended.wait(_RENEWAL):
        # What cannot be renewed lapses.
        with suppress(OSError):
            claim.replace_text(claim.read_text())


def claimed_runs(claims: Location) -> frozenset[str]:
    """The runs that may be writing."""
    names = [name for name in claims.children() if name.endswith(_CLAIM)]
    return frozenset(name.rpartition("~")[0] for name in names)


def _acquire(
    claims: Location, run_id: str, wait_seconds: float, say: Callable[[str], None]
) -> Location:
    began, has_reported = time.monotonic(), False
    while True:
        name = f"{run_id}~{secrets.token_hex(4)}"
        mine = claims / f"{name}{_CLAIM}"
        mine.write_new_text(json.dumps(vars(Owner.this(run_id))) + "\n")
        try:
            other = _other_claim(claims, name)
        except BaseException:
            mine.delete_file()
            raise
        if other is None:
            return mine
        mine.delete_file()
        if time.monotonic() - began >= wait_seconds:
            raise LeaseError(
                f"{other} is writing there ({claims}), also after {wait_seconds:g} s: this run "
                "gave up and changed nothing; run it again when the other one has ended"
            )
        if not has_reported:
            say(f"waits for {other}, which is writing to {claims}")
            has_reported = True
        # Of two that began at a time both withdraw: the next time not at the same time.
        time.sleep(random.uniform(0.05, 0.5))  # noqa: S311 - no secret


def _other_claim(claims: Location, name: str) -> str | None:
    """Who else has a claim that counts; claims that count no more are broken."""
    infos = {info.base_name: info for info in claims.infos() if info.base_name.endswith(_CLAIM)}
    mine = infos.pop(f"{name}{_CLAIM}", None)
    if mine is None:
        return "another run, which began at the same time,"
    for info in infos.values():
        claim = claims / info.base_name
        owner = _owner(claim, info)
        age = mine.mtime - info.mtime if mine.mtime and info.mtime else timedelta()
        if owner is None or owner.is_dead() or age > _LAPSE:
            claim.delete_file() if info.type == pafs.FileType.File else claim.delete()
        else:
            return f"run {owner.run_id} (process {owner.pid} on {owner.host})"
    return None


def _owner(claim: Location, info: pafs.FileInfo) -> Owner | None:
    """Whose claim it is; None where it was taken back, or nobody wrote it so."""
    try:
        if info.type != pafs.FileType.File:
            raise ValueError("it is no file")
        return Owner(**json.loads(claim.read_bytes()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, RecursionError) as error:
        # A writer lists the claims when its claim is whole: one that is being written now finds
        # this process's claim beside its own.
        if info.size != 0:
            _LOGGER.warning("%s is no claim of a run (%s), and counts no more", claim, error)
        return None

"""At most one writer at a time: a lease on a name, on any file system that lists what was written.

Whoever wants to write puts a claim into the folder of claims, then lists the folder. It
holds the lease where it sees no other claim; else it takes its claim back and tries again later. Of
two that write at a time at least one sees the other, so that two never hold the lease. That needs
no more of a file system than that a listing has what was written before it, which local disks, HDFS
and the object stores of today give.

A claim that nobody renews lapses. The times that the file system itself gave the two claims show
whether it did: no clock of this machine is compared with one of another.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs

from jobs.errors import LeaseError
from jobs.storage.location import Location

#: Renewed so often, in seconds; a claim that was not renewed for as long as ``_LAPSE`` counts no
#: more. A process may stop for minutes: a laptop that sleeps, a full disk on NFS.
_RENEWAL = 20.0
_LAPSE = timedelta(minutes=5)
#: A broken claim is remembered for so long: until then its writer must not publish, and what it
#: wrote is not cleared away under it.
_BROKEN_FOR = timedelta(days=1)
_CLAIM, _BROKEN = ".claim", ".broken"


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


class Lease:
    """A lease that this process holds, until it is given back."""

    def __init__(self, claims: Location, name: str) -> None:
        self._claims = claims
        self._name = name
        self._ended = threading.Event()
        self._renewal = threading.Thread(target=self._renew, name="lease", daemon=True)
        self._renewal.start()

    def check(self) -> None:
        """LeaseError where another writer broke the claim, because it was not renewed in time."""
        names = self._claims.children()
        # A broken claim is forgotten after a day; the claim itself is gone even then.
        if f"{self._name}{_BROKEN}" in names or f"{self._name}{_CLAIM}" not in names:
            raise LeaseError(
                f"another run took over {self._claims} from this one, which had not given a sign "
                f"of life for {_LAPSE.seconds // 60} minutes: nothing was published; run it again"
            )

    def give_back(self) -> None:
        """Lets others write."""
        self._ended.set()
        self._renewal.join()
        (self._claims / f"{self._name}{_CLAIM}").delete_file()

    def _renew(self) -> None:
        claim = self._claims / f"{self._name}{_CLAIM}"
        while not self._ended.wait(_RENEWAL):
            # What cannot be renewed lapses, and ``check`` finds out.
            with suppress(OSError):
                claim.replace_text(claim.read_text())


@contextmanager
def lease(
    claims: Location,
    run_id: str,
    wait_seconds: float,
    say: Callable[[str], None],
) -> Iterator[Lease]:
    """Holds the lease of a folder of claims while the block runs.

    Where another process holds it, it waits up to ``wait_seconds``, which ``say`` gets a line of.
    Raises LeaseError where it did not get it.
    """
    held = _acquire(claims, run_id, wait_seconds, say)
    try:
        yield held
    finally:
        held.give_back()


def broken_runs(claims: Location) -> frozenset[str]:
    """The runs whose claims were broken of late: they may still be alive, and write."""
    return _runs(claims, _BROKEN)


def claimed_runs(claims: Location) -> frozenset[str]:
    """The runs that may be writing: those with a claim, and those whose claim was broken."""
    return _runs(claims, _CLAIM, _BROKEN)


def _runs(claims: Location, *endings: str) -> frozenset[str]:
    names = [name for name in claims.children() if name.endswith(endings)]
    return frozenset(name.rpartition("~")[0] for name in names)


def _acquire(
    claims: Location, run_id: str, wait_seconds: float, say: Callable[[str], None]
) -> Lease:
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
            return Lease(claims, name)
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
    infos = {info.base_name: info for info in claims.infos()}
    mine = infos.get(f"{name}{_CLAIM}")
    if mine is None:
        return "another run, which began at the same time,"
    now = mine.mtime
    for each, info in infos.items():
        if each.endswith(_BROKEN) and _age(info, now) > _BROKEN_FOR:
            (claims / each).delete_file()
        if not each.endswith(_CLAIM) or each == f"{name}{_CLAIM}":
            continue
        owner = _owner(claims / each)
        if owner is None or owner.is_dead():
            (claims / each).delete_file()
        elif _age(info, now) > _LAPSE:
            (claims / f"{each.removesuffix(_CLAIM)}{_BROKEN}").replace_text("")
            (claims / each).delete_file()
        else:
            return f"run {owner.run_id} (process {owner.pid} on {owner.host})"
    return None


def _age(info: pafs.FileInfo, now: datetime | None) -> timedelta:
    if info.mtime is None or now is None:
        return timedelta()
    return now.astimezone(UTC) - info.mtime.astimezone(UTC)


def _owner(claim: Location) -> Owner | None:
    """Whose claim it is; None where it was taken back, or is the half of one that died."""
    try:
        values: Any = claim.read_json()
        return Owner(**values)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        # A writer lists the claims when its claim is whole: one that is being written now finds
        # this process's claim beside its own. On HDFS a claim that is renewed may be read by
        # half: there it counts until it lapses.
        return None if claim.is_local else _UNREADABLE


_UNREADABLE = Owner("?", "?", 0, "")

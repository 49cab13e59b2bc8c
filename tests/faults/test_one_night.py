"""A night's job that is killed, or meets an error, at each of its storage calls.

Whatever happens, readers see the night before or this one, whole, or one clear line; and the next
run publishes the very tables of an undisturbed one and leaves not a file more.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.calls import EVERY, Call
from tests.faults.nights import Ended, Night, Nights, is_one_line, read_or_refuse

pytestmark = pytest.mark.house

Fault = Callable[[Call], None]
KILLED = 137


def kill(_call: Call) -> None:
    os._exit(KILLED)


def kill_half_way(call: Call) -> None:
    if call.write_half is not None:
        call.write_half()
    os._exit(KILLED)


def fail(number: int) -> Fault:
    def raise_it(_call: Call) -> None:
        raise OSError(number, os.strerror(number))

    return raise_it


def fail_half_way(call: Call) -> None:
    assert call.write_half is not None
    call.write_half()
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def is_any(_call: Call) -> bool:
    return True


def changes(call: Call) -> bool:
    return call.changes


def writes(call: Call) -> bool:
    return call.write_half is not None


def needs_room(call: Call) -> bool:
    return call.operation in {"create", "create_dir", "write", "close", "rename"}


def at(number: int, fault: Fault) -> Fault:
    return lambda call: fault(call) if call.number == number else None


def from_on(number: int, fault: Fault, where: Callable[[Call], bool]) -> Fault:
    """A disk that is full stays full."""
    return lambda call: fault(call) if call.number >= number and where(call) else None


def calls_of(nights: Nights, place: Path) -> list[tuple[int, Call]]:
    """The calls of an undisturbed night."""
    log = place / "calls.txt"
    with log.open("a", encoding="utf-8") as file:

        def keep(call: Call) -> None:
            half = int(call.write_half is not None)
            file.write(f"{call.number}\t{call.operation}\t{call.path}\t{half}\n")
            file.flush()

        assert nights.begin(place / "counted").run(keep).code == 0
    found = []
    for line in log.read_text(encoding="utf-8").splitlines():
        number, operation, path, half = line.split("\t")
        found.append(Call(int(number), operation, path, (lambda: None) if half == "1" else None))
    return found


def chosen(where: Callable[[Call], bool], calls: list[Call]) -> list[Call]:
    """The calls that a fault is put into, the last one, after the pointer, among them."""
    return list(filter(where, calls))[::-EVERY][::-1]


def check_readers_and_mend(nights: Nights, night: Night, what: str) -> str:
    """Which of the two nights readers saw; the next run mends the rest."""
    seen = read_or_refuse(night.read)
    assert seen in (nights.old, nights.new), f"{what}: readers see {str(seen)[:300]}"
    mended = night.run()
    assert mended.code == 0, f"{what}: the next run: {mended.text}"
    assert night.read() == nights.new, f"{what}: the next run published other tables"
    assert night.files() == nights.files_after, (
        f"{what}: left over, or gone: {set(night.files()) ^ set(nights.files_after)}"
    )
    return "new" if seen == nights.new else "old"


@pytest.mark.parametrize(
    ("name", "where", "fault"),
    [
        ("killed before the call", changes, kill),
        ("killed in the midst of a write", writes, kill_half_way),
    ],
)
def test_a_night_that_is_killed_leaves_the_one_before_and_the_next_run_mends(
    nights, tmp_path, counts, name, where, fault
):
    seen = Counter[str]()
    for call in chosen(where, calls_of(nights, tmp_path)):
        night = nights.begin(tmp_path / str(call.number))
        ended = night.run(at(call.number, fault))
        assert ended.code == KILLED, ended.text
        seen[check_readers_and_mend(nights, night, f"{name} {call}")] += 1
        counts[f"kills: {name}"] += 1
    # The pointer is replaced once: before it the night before counts, from it on this one.
    assert seen["old"]
    assert seen["new"] or where is writes


@pytest.mark.parametrize(
    ("name", "where", "fault"),
    [
        ("EIO", is_any, fail(errno.EIO)),
        ("ENOSPC", needs_room, fail(errno.ENOSPC)),
        ("ENOSPC in the midst of a write", writes, fail_half_way),
        ("EACCES", changes, fail(errno.EACCES)),
    ],
)
def test_a_night_that_meets_an_error_says_so_in_one_line_and_the_next_run_mends(
    nights, tmp_path, counts, name, where, fault
):
    for call in chosen(where, calls_of(nights, tmp_path)):
        night = nights.begin(tmp_path / str(call.number))
        ended = night.run(at(call.number, fault))
        check_failure(ended, f"{name} {call}")
        seen = check_readers_and_mend(nights, night, f"{name} {call}")
        # Who runs a night again because it failed finds that nothing of it counts.
        assert seen == ("old" if ended.code else "new"), f"{name} {call}"
        counts[f"errors: {name} at one call"] += 1


def test_a_disk_that_is_full_and_stays_so_leaves_the_night_before(nights, tmp_path, counts):
    full = fail(errno.ENOSPC)
    for call in chosen(needs_room, calls_of(nights, tmp_path)):
        night = nights.begin(tmp_path / str(call.number))
        ended = night.run(from_on(call.number, full, needs_room))
        check_failure(ended, f"full disk {call}")
        seen = check_readers_and_mend(nights, night, f"full disk {call}")
        assert seen == ("old" if ended.code else "new"), f"full disk {call}"
        counts["errors: ENOSPC from a call on"] += 1


def check_failure(ended: Ended, what: str) -> None:
    """It failed in one line; or it need not have failed, and did its work."""
    if ended.code == 0:
        return
    assert ended.code == 4, f"{what}: {ended}"
    assert is_one_line(ended), f"{what}: {ended.text}"

"""Files of this machine's disks, written so that nobody reads a part of one.

A regular file alone is replaced: what else has the name keeps it.
"""

import errno
import fcntl
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

#: The names of this process's own streams.
_STREAM = re.compile(r"/dev/(?:fd/(?P<number>\d+)|(?P<out>stdout)|stderr)")
#: Kinds of what is not a file, for a person: it is never replaced.
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a disk",
    stat.S_IFCHR: "a device",
    stat.S_IFIFO: "a pipe",
}


def write_new(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Writes a file that is not there yet, and waits until it is on the disk.

    FileExistsError where there is one, a symbolic link among them: who can write into the folder
    cannot make this process write elsewhere.
    """
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    try:
        with open(number, "wb") as file:  # noqa: PTH123 - by its number
            file.write(data)
            file.flush()
            os.fsync(number)
    except BaseException:
        # Half a file under this name would be taken for a whole one that is damaged.
        path.unlink(missing_ok=True)
        raise


@contextmanager
def _beside(path: Path, data: bytes, mode: int = 0o666) -> Iterator[Path]:
    """A file beside another, of a name that no other writer has, while the block runs."""
    under_way = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        write_new(under_way, data, mode)
        yield under_way
    finally:
        under_way.unlink(missing_ok=True)


def create(path: Path, data: bytes) -> None:
    """Writes a file that is not there yet, in one step; FileExistsError where there is one.

    By a hard link, so that nobody reads a part of it; where the file system has none, in place.
    """
    with _beside(path, data) as under_way:
        try:
            os.link(under_way, path, follow_symlinks=False)
        except FileExistsError:
            raise
        except OSError:
            write_new(path, data)
        sync(path.parent)
        # Its folder may be new.
        sync(path.parent.parent)


def replace(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Writes a file in one step: a reader sees the old bytes or the new.

    A link to a file is replaced by the file: nothing is written where somebody else leads. A
    device, a pipe and a stream of this process (``/dev/stdout``, ``/dev/fd/3``) take the bytes and
    stay. FileExistsError where there is a folder, a socket or a disk.
    """
    try:
        if (stream := _stream_at(path)) is not None:
            with open(stream, "wb") as file:  # noqa: PTH123 - by its number
                file.write(data)
            return
    except OSError as error:
        # What has a number alone has no name.
        raise OSError(error.errno, error.strerror, str(path)) from error
    with _beside(path, data, mode) as under_way:
        rename(under_way, path)


def _stream_at(path: Path) -> int | None:
    """The number of what takes bytes under this name, opened; None: it is not a stream."""
    if named := _STREAM.fullmatch(str(path)):
        # Opened by its name a file to which it is redirected would be written from its beginning.
        return os.dup(int(named["number"] or (1 if named["out"] else 2)))
    if _kind(path) not in (stat.S_IFCHR, stat.S_IFIFO):
        return None
    try:
        number = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        # Else it would be waited for without end.
        raise OSError(errno.ENXIO, "nobody reads this pipe") from error
    os.set_blocking(number, True)
    return number


def _kind(path: Path) -> int:
    """The kind of what has a name, or of what a link leads to; 0: nothing has it."""
    try:
        return stat.S_IFMT(path.stat().st_mode)
    except FileNotFoundError:
        return 0


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Locks a file while the block runs and this process lives; whether it could.

    It cannot where another process has it, where there is no such file, or no lock can be had.
    """
    with ExitStack() as stack:
        is_locked = False
        with suppress(OSError):
            number = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
            stack.callback(os.close, number)
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_locked = True
        yield is_locked


def make_private(folder: Path) -> None:
    """Makes a folder that its owner alone may enter, and those above it, where there are none."""
    for path in reversed([folder, *folder.parents]):
        if not path.exists():
            path.mkdir(mode=0o700, exist_ok=True)
            sync(path.parent)


def state_folder(environment: Mapping[str, str]) -> Path:
    """The folder for what is remembered for the user; OSError where they have no home."""
    try:
        state = Path(environment.get("XDG_STATE_HOME") or "~/.local/state").expanduser()
    except RuntimeError as error:
        raise OSError(str(error)) from error
    return state / "rebalance-audit"


def rename(source: Path, target: Path) -> None:
    """Gives a file its name, also when the power fails right after.

    FileExistsError where another thing than a file has it.
    """
    if (kind := _KINDS.get(_kind(target))) is not None:
        raise FileExistsError(errno.EEXIST, f"expected a file, there is {kind}", str(target))
    source.replace(target)
    sync(target.parent)


def sync(path: Path) -> None:
    """Waits until a file, or the names in a folder, are on the disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)

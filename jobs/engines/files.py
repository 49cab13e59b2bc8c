r"""paths -> files -> slices: what the operator named, as the files that are read.

Both engines list what is on this machine by this, so that they read the same files under the same
names. A path that is there is taken as it is, whatever its name looks like: a shell may have made
it from a glob. Else it is a glob of Hadoop's: ``*``, ``?``, ``[a-c]``, ``[^a]``, ``{a,b}`` and
``\*``.
"""

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import filter as names_like
from itertools import chain, pairwise
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

from ..errors import InputError, SettingsError
from ..storage.location import Location, local_path
from ..texts.failures import sentence_of
from ..texts.shown import visible
from .engine import MOST_BYTES, InputFile, Slice

_URI = re.compile(r"file:|[a-zA-Z][a-zA-Z0-9+.-]*://")
#: The bytes of a large plain file that one task reads.
_BYTES_OF_A_RANGE = 128 << 20


def list_local_files(paths: Sequence[str]) -> list[InputFile] | None:
    """Every file that local paths name: files, folders (with all below them) and globs.

    None where some path is of another file system. A path that is there is taken as it is, else it
    is a glob; in a URI ``file:/PATH`` ``%20`` is not a space. Each file is there once, also where
    links lead to it again, sorted by their absolute paths. Files whose names begin with ``_`` or
    ``.`` are not dumps: below a folder they are left out, named outright they are an error. Raises
    InputError for a path that names nothing, and for what cannot be read as a file.
    """
    given = given_paths(paths)
    if not all(map(is_local, given)):
        return None
    found: dict[str, str] = {}
    for path in given:
        named = _named(path)
        if not named:
            raise no_dumps([path])
        for file in chain.from_iterable(map(_files_of, named)):
            target = os.path.realpath(file)
            # The name of the file goes before that of a link, which may lack the ending .gz.
            names = file, found.get(target, file)
            found[target] = min(names, key=lambda name: (os.path.islink(name), name))  # noqa: PTH114
    return sorted(InputFile(f"file:{name}", _size(name)) for name in found.values())


def _named(path: str) -> list[str]:
    """The places that a local path names: itself where it is there, else as a glob."""
    place = local_path(path)
    return [place] if _is_there(place) else _matches(place)


def check_apart(paths: Sequence[str], written: Iterable[Location]) -> None:
    """SettingsError where a folder that is written lies in one of this machine that is read.

    All below that is read: the next run would take the tables for dumps.
    """
    for path in filter(is_local, given_paths(paths)):
        for place in _named(path):
            for folder in written:
                if Location(place).holds(folder):
                    raise SettingsError(
                        f"{folder} would be written into {visible(place)}, where the dumps are "
                        "read, and the next run would take it for dumps: keep the dumps in a "
                        "folder of their own, or name another one for what is written"
                    )


def slices_of(files: Sequence[InputFile]) -> list[Slice]:
    """The files as slices, in their order; large plain ones in ranges."""
    found: list[Slice] = []
    for file in files:
        whole = Slice(0, "dump", file.path, file.size)
        if file.size <= MOST_BYTES or file.is_archive:
            found.append(whole)
        else:
            edges = [*range(0, file.size, _BYTES_OF_A_RANGE), file.size]
            found += [whole._replace(start=one, stop=next_) for one, next_ in pairwise(edges)]
    return [slice_._replace(number=number) for number, slice_ in enumerate(found)]


#: Characters that ``java.net.URI`` quotes: of ASCII these, control characters, and the spaces of
#: Unicode.
_NOT_IN_URI = re.compile(
    r"""[\x00-\x20"#%<>?\[\\\]^`{|}\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"""
)


def file_uri(path: str) -> str:
    """The path of a dump file as Spark names the file that a line is in.

    >>> file_uri("file:/dumps/night 1.jsonl")
    'file:/dumps/night%201.jsonl'
    """
    return _NOT_IN_URI.sub(lambda character: quote(character.group()), path)


def given_paths(paths: Sequence[str]) -> list[str]:
    """The paths as an operator may have named them, local ones absolute, each once."""
    if not all(paths):
        raise InputError("dumps: expected a file, a folder or a glob, came an empty text")
    absolute = (path if _URI.match(path) else str(Path(path).absolute()) for path in paths)
    return list(dict.fromkeys(absolute))


def no_dumps(paths: Sequence[str]) -> InputError:
    """The error where the paths name no file."""
    return InputError(
        f"no dump at {visible(', '.join(paths))}: expected files of JSON Lines, plain or .gz, such "
        "as rebalance-audit collect writes; check the path"
    )


def is_local(path: str) -> bool:
    """True if a path is on this machine."""
    return path.startswith(("/", "file:"))


def _is_hidden(name: str) -> bool:
    """True if Spark skips a file or folder of that name."""
    return name.startswith(("_", "."))


def check_visible(path: str, name: str) -> None:
    """InputError for a file that was named outright and that Spark would skip."""
    if _is_hidden(name):
        raise InputError(
            f"{visible(path)}: files whose names begin with _ or . are skipped by Spark; rename it"
        )


def _is_there(place: str) -> bool:
    """True if something has this path; InputError where a folder above it may not be entered."""
    try:
        os.lstat(place)
    except PermissionError as error:
        raise _unreachable(place, error) from error
    except (OSError, ValueError):
        return False
    return True


def _unreachable(place: str, error: PermissionError) -> InputError:
    """The error for a path below a folder that may not be entered: names the folder, if known."""
    above = reversed(Path(place).parents)
    closed = next((str(path) for path in above if not os.access(path, os.X_OK)), place)
    refused = PermissionError(error.errno, error.strerror, closed)
    return InputError(f"cannot reach a dump: {sentence_of(refused)}")


def _matches(pattern: str) -> list[str]:
    """The paths that a glob names; ``**`` is nothing but ``*``."""
    globs = map(_in_python, _alternatives(pattern))
    return sorted({path for glob in globs for path in _paths_like(glob)})


#: A folder that each disk of Linux has at its top for repairs, closed to all but root.
_OF_A_DISK = "lost+found"
#: A character that makes a pattern of a part of a path.
_MAGIC = re.compile(r"[*?[]")
#: The errors of a path at which nothing is, or no folder.
_NO_FOLDER = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP}


def _paths_like(pattern: str) -> Iterable[str]:
    """The paths that a glob of Python names.

    ``glob.glob`` passes over a folder that it cannot list; here that is an InputError.
    """
    parts = pattern.split("/")
    found = ["/"]
    for number, part in enumerate(parts, 1):
        if _MAGIC.search(part):
            is_last = number == len(parts)
            found = [path for folder in found for path in _children(folder, part, is_last)]
        else:
            found = [os.path.join(folder, part) for folder in found]  # noqa: PTH118
    return found if _MAGIC.search(parts[-1]) else filter(_is_there, found)


def _children(folder: str, pattern: str, is_last: bool) -> list[str]:
    """The children of a folder with such names: all of them, or those that are folders."""
    try:
        with os.scandir(folder) as listing:
            children = {child.name: child for child in listing}
        # A child of another name is not asked what it is: it does no harm.
        named = [children[name] for name in names_like(children, pattern) if name != _OF_A_DISK]
        return [child.path for child in named if is_last or _is_folder(child)]
    except ValueError:
        return []
    except OSError as error:
        if error.errno in _NO_FOLDER:
            return []
        _refuse(error)


def _is_folder(child: os.DirEntry[str]) -> bool:
    try:
        return child.is_dir()
    except OSError as error:
        # A link that leads round in a circle is no folder; one into a closed folder may be.
        if error.errno in _NO_FOLDER:
            return False
        raise


#: The innermost of the last braces.
_BRACES = re.compile(r"(.*)(?<!\\)\{((?:\\.|[^\\{}])*)\}(.*)", re.DOTALL)


def _alternatives(pattern: str) -> list[str]:
    """The globs without braces that a glob with braces means.

    >>> _alternatives("/a/{b,c{1,2}}.gz")
    ['/a/b.gz', '/a/c1.gz', '/a/b.gz', '/a/c2.gz']
    """
    match = _BRACES.fullmatch(pattern)
    if match is None:
        return [pattern]
    before, inner, after = match.groups()
    parts = re.split(r"(?<!\\),", inner)
    return [
        alternative for part in parts for alternative in _alternatives(f"{before}{part}{after}")
    ]


def _in_python(pattern: str) -> str:
    r"""The glob as Python writes it, which has ``[!a]`` for ``[^a]`` and ``[*]`` for ``\*``.

    >>> _in_python(r"/a\*/[^b]*")
    '/a[*]/[!b]*'
    """

    def rewritten(match: re.Match[str]) -> str:
        escaped = match.group(1)
        if escaped is None:
            return "[!"
        return f"[{escaped}]" if escaped in "*?[" else escaped

    return re.sub(r"\\(.)|\[\^", rewritten, pattern, flags=re.DOTALL)


def _files_of(path: str) -> Iterator[str]:
    if os.path.isdir(path):  # noqa: PTH112
        yield from _files_below(path)
    else:
        check_visible(f"file:{path}", os.path.basename(path))  # noqa: PTH119
        yield path


def _files_below(top: str) -> Iterator[str]:
    """The files below a folder. Each folder is listed once: links may lead in circles."""
    listed: set[str] = set()
    starts = [top]
    for start in starts:
        for folder, folders, names in os.walk(start, onerror=_refuse):
            target = os.path.realpath(folder)
            if target in listed:
                folders.clear()
                continue
            listed.add(target)
            folders[:] = sorted(
                name for name in folders if not _is_hidden(name) and name != _OF_A_DISK
            )
            below = (os.path.join(folder, name) for name in folders)  # noqa: PTH118
            starts += [path for path in below if os.path.islink(path)]  # noqa: PTH114
            for name in names:
                if not _is_hidden(name):
                    yield os.path.join(folder, name)  # noqa: PTH118


def _refuse(error: OSError) -> NoReturn:
    """InputError for a folder that cannot be listed: nobody knows which dumps it has."""
    raise InputError(f"cannot list a folder of dumps: {sentence_of(error)}") from error


def _size(path: str) -> int:
    """The size of a file; InputError for what is none, or has a name that nobody can pass on."""
    try:
        path.encode()
        status = os.stat(path)  # noqa: PTH116
    except UnicodeEncodeError as error:
        raise InputError(f"{visible(path)}: the name is no UTF-8; rename the file") from error
    except PermissionError as error:
        raise _unreachable(path, error) from error
    except OSError as error:
        raise InputError(
            f"{visible(path)}: {error.strerror}; a link that leads nowhere? remove it"
        ) from error
    if not stat.S_ISREG(status.st_mode):
        raise InputError(
            f"{visible(path)}: expected a file or a folder, came a pipe, a socket or a device; "
            "write what it gives into a file first"
        )
    return status.st_size

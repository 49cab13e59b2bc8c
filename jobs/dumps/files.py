r"""paths -> files -> slices: what the operator named, as the files that are read.

Both engines list what is on this machine by this, so that they read the same files under the same
names. A path that is there is taken as it is, whatever its name looks like: a shell may have made
it from a glob. Else it is a glob of Hadoop's: ``*``, ``?``, ``[a-c]``, ``[^a]``, ``{a,b}`` and
``\*``.
"""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from glob import glob
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote

from ..console.failures import sentence_of
from ..engines.engine import MOST_BYTES, InputFile, Slice
from ..errors import InputError
from ..storage.location import local_path
from ..texts.shown import visible

_URI = re.compile(r"file:|[a-zA-Z][a-zA-Z0-9+.-]*://")
#: The bytes of a large plain file that one task reads.
_BYTES_OF_A_RANGE = 128 << 20


def list_local_files(paths: Sequence[str]) -> list[InputFile] | None:
    """Every file that local paths name: files, folders (with all below them) and globs.

    None where some path is of another file system. A path that is there is taken as it is, else it
    is a glob. Files whose names begin with ``_`` or ``.`` are not dumps: below a folder they are
    left out, named outright they are an error. Raises InputError for a path that names nothing.
    """
    given = given_paths(paths)
    return _files_on_disk(given) if all(map(is_local, given)) else None


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


def _files_on_disk(paths: Sequence[str]) -> list[InputFile]:
    """The files that the paths name, sorted by their absolute paths.

    A path is absolute, or a URI ``file:/PATH``, in which ``%20`` is not a space. Each file is there
    once, also where links lead to it again. Files whose names begin with ``_`` or ``.`` are left
    out below a folder. Raises InputError for a path that names nothing, for a hidden file that is
    named outright, and for what cannot be read as a file.
    """
    found: dict[str, str] = {}
    for path in paths:
        place = local_path(path)
        named = [place] if _is_there(place) else _matches(place)
        if not named:
            raise no_dumps([path])
        for one in named:
            for file in _files_of(one):
                target = os.path.realpath(file)
                # The name of the file goes before that of a link, which may lack the ending .gz.
                found[target] = min(file, found.get(target, file), key=_link_last)
    return sorted(InputFile(f"file:{name}", _size(name)) for name in found.values())


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
        raise InputError(f"cannot reach a dump: {sentence_of(error)}") from error
    except (OSError, ValueError):
        return False
    return True


def _link_last(path: str) -> tuple[bool, str]:
    return os.path.islink(path), path  # noqa: PTH114


def _matches(pattern: str) -> list[str]:
    """The paths that a glob names; ``**`` is nothing but ``*``."""
    globs = [_in_python(alternative) for alternative in _alternatives(pattern)]
    return sorted({name for pattern in globs for name in glob(pattern, include_hidden=True)})  # noqa: PTH207


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

    def refuse(error: OSError) -> None:
        raise InputError(f"cannot list a folder of dumps: {sentence_of(error)}") from error

    listed: set[str] = set()
    starts = [top]
    for start in starts:
        for folder, folders, names in os.walk(start, onerror=refuse):
            target = os.path.realpath(folder)
            if target in listed:
                folders.clear()
                continue
            listed.add(target)
            folders[:] = sorted(name for name in folders if not _is_hidden(name))
            below = (os.path.join(folder, name) for name in folders)  # noqa: PTH118
            starts += [path for path in below if os.path.islink(path)]  # noqa: PTH114
            for name in names:
                if not _is_hidden(name):
                    yield os.path.join(folder, name)  # noqa: PTH118


def _size(path: str) -> int:
    """The size of a file; InputError for what is none, or has a name that nobody can pass on."""
    try:
        path.encode()
        status = os.stat(path)  # noqa: PTH116
    except UnicodeEncodeError as error:
        raise InputError(f"{visible(path)}: the name is no UTF-8; rename the file") from error
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

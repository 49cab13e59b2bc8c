"""paths -> files -> slices: what the operator named, as the files that are read."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote

from ..engines.engine import MOST_BYTES, Slice
from ..errors import InputError
from .on_disk import files_on_disk

_URI = re.compile(r"file:|[a-zA-Z][a-zA-Z0-9+.-]*://")
#: Bytes of text for a byte of an archive: lines that repeat themselves compress to a 27th.
_UNPACKED = 25
#: Of a large plain file so many bytes are read by one task.
_BYTES_OF_A_RANGE = 128 << 20


@dataclass(frozen=True)
class InputFile:
    """A dump file: its path or URI, and its size in bytes."""

    path: str
    size: int

    @property
    def is_archive(self) -> bool:
        """Whether it is compressed, by its name."""
        return self.path.endswith(".gz")

    @property
    def unpacked_size(self) -> int:
        """About how many bytes of text are in it, rather too many than too few."""
        return self.size * (_UNPACKED if self.is_archive else 1)


def list_local_files(paths: Sequence[str]) -> list[InputFile] | None:
    """Every file that local paths name: files, folders (with all below them) and globs.

    None where some path is of another file system. A path that is there is taken as it is, else it
    is a glob. Files whose names begin with ``_`` or ``.`` are no dumps: below a folder they are
    left out, named outright they are an error. Raises InputError for a path that names nothing.
    """
    given = given_paths(paths)
    return _list_on_disk(given) if all(map(is_local, given)) else None


def local_bytes(paths: Sequence[str]) -> int | None:
    """The size of all files that local paths name; None where one is elsewhere, or names none.

    >>> local_bytes(["s3a://bucket/dumps"]) is None
    True
    """
    with suppress(InputError):
        files = list_local_files(paths)
        return None if files is None else sum(file.size for file in files)
    return None


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


#: What ``java.net.URI`` quotes: of ASCII these, control characters, and the spaces of Unicode.
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


def is_local(path: str) -> bool:
    """Whether a path is on this machine."""
    return path.startswith(("/", "file:"))


def _list_on_disk(paths: Sequence[str]) -> list[InputFile]:
    return [InputFile(f"file:{path}", size) for path, size in files_on_disk(paths)]

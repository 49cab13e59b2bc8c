"""A fleet some times over, from the files of one: more groups than one would care to generate.

Each copy has the groups of the original under other numbers: G7-AVG is G1007-AVG in the first copy
of a thousand groups, its topics are T-G1007-AVG and %RETRY%G1007-AVG, and its clients have other
addresses in the same order. So the copies share no content with each other, as the groups of a
larger fleet would not, and each has the findings of the original under its own names.

Files are read and written one row group at a time, so memory is that of one. The original's own
files are linked.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

Rename = Callable[[str], str]
_GROUP = re.compile(r"(T-G|%RETRY%G|G)(\d+)(-.+)")
_CLIENT = re.compile(r"10\.(\d+)\.(\d+)(\..+)")
#: A client's address has its group's number so (``tests.support.fleet``).
_GROUPS_A_NET = 250


def shifted(value: str, groups: int) -> str:
    """A group, topic or client of the copy; what names none of them as it is.

    >>> shifted("%RETRY%G7-AVG", 1000), shifted("10.0.7.11@room1-11", 1000), shifted("JAVA", 1000)
    ('%RETRY%G1007-AVG', '10.4.7.11@room1-11', 'JAVA')
    """
    if match := _GROUP.fullmatch(value):
        kind, number, rest = match.groups()
        return f"{kind}{int(number) + groups}{rest}"
    if match := _CLIENT.fullmatch(value):
        net, number = divmod(int(match[1]) * _GROUPS_A_NET + int(match[2]) + groups, _GROUPS_A_NET)
        return f"10.{net}.{number}{match[3]}"
    return value


def write_copies(folder: Path, target: Path, copies: int, groups: int) -> int:
    """Writes the Parquet files of a folder so many times; how many rows there are then.

    ``groups``: how many there are in the original, by which the numbers of each copy are higher.
    """
    target.mkdir(parents=True)
    files = sorted(folder.rglob("*.parquet"))
    rows = 0
    for file in files:
        os.link(file.resolve(), target / f"copy-0-{file.name}")
        rows += copies * int(pq.read_metadata(file).num_rows)
    for copy in range(1, copies):
        for file in files:
            _write_copy(file, target / f"copy-{copy}-{file.name}", copy * groups)
    return rows


def _write_copy(file: Path, target: Path, shift: int) -> None:
    names: dict[str, str] = {}
    lists: dict[str, str] = {}

    def rename(value: str) -> str:
        return _once(names, value, lambda each: shifted(each, shift))

    def rename_list(value: str) -> str:
        # Its members have other names: it is another content, and has another id.
        return _once(
            lists,
            value,
            lambda each: hashlib.md5(f"{shift} {each}".encode(), usedforsecurity=False).hexdigest(),
        )

    source = pq.ParquetFile(file)
    with pq.ParquetWriter(target, source.schema_arrow) as writer:
        for number in range(source.num_row_groups):
            table = source.read_row_group(number)
            columns = [
                _renamed(column.combine_chunks(), rename_list if name == "list_id" else rename)
                for name, column in zip(table.column_names, table.columns, strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=table.schema))


def _once(known: dict[str, str], value: str, rename: Rename) -> str:
    if value not in known:
        known[value] = rename(value)
    return known[value]


def _renamed(array: pa.Array, rename: Rename) -> pa.Array:
    """The same array with all texts in it renamed, each distinct one once."""
    if pa.types.is_string(array.type):
        encoded = array.dictionary_encode()
        return pa.array(map(rename, encoded.dictionary.to_pylist()), pa.string()).take(
            encoded.indices
        )
    if pa.types.is_list(array.type):
        values = _renamed(array.values, rename)
        return pa.ListArray.from_arrays(array.offsets, values, array.type, mask=array.is_null())
    if pa.types.is_struct(array.type):
        fields = [_renamed(array.field(n), rename) for n in range(array.type.num_fields)]
        return pa.StructArray.from_arrays(fields, fields=list(array.type), mask=array.is_null())
    return array

"""Rows as whole numbers: how the fold reads tables, compares rows and groups them.

Values become numbers as they are read, equal ones the same in all batches; rows become hashes of
their numbers. NumPy and PyArrow do both for a hundred thousand rows at a time.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.dataset as ds
from numpy.typing import NDArray

from ..schemas import LONG, STRING, Table

#: Columns, batches and tables of Arrow. PyArrow's stubs do not have most of their methods.
Array: TypeAlias = Any
Batch: TypeAlias = Any
Rows: TypeAlias = Any
pc: Any = pyarrow.compute

#: A snapshot table, cut to the window: in memory or as files.
Source: TypeAlias = pa.Table | ds.Dataset
Numbers: TypeAlias = NDArray[np.int64]
Hashes: TypeAlias = NDArray[np.uint64]

_ROWS_AT_A_TIME = 1 << 17

# ---------------------------------------------------------------- reading


def open_files(
    table: Table,
    files: Sequence[str],
    filesystem: Any = None,
    row_groups: Iterable[int] | None = None,
) -> ds.Dataset:
    """Parquet files of a snapshot table, to be read with texts as numbers into a dictionary.

    A column that a file does not have is null. ``row_groups``: those alone, of each file.
    """
    file_format, schema = _as_read(table)
    rows = ds.dataset(list(files), schema=schema, format=file_format, filesystem=filesystem)
    if row_groups is None:
        return rows
    chosen = [
        fragment.subset(row_group_ids=list(row_groups), schema=schema)
        for fragment in rows.get_fragments()
    ]
    return ds.FileSystemDataset(chosen, schema, file_format, filesystem)


def open_content(table: Table, content: pa.Buffer) -> ds.Dataset:
    """The same of a file's bytes."""
    file_format, schema = _as_read(table)
    return ds.FileSystemDataset([file_format.make_fragment(content)], schema, file_format)


def _as_read(table: Table) -> tuple[Any, pa.Schema]:
    texts = [path for field in table.schema for path in _text_columns(field.name, field.type)]
    file_format = ds.ParquetFileFormat(
        read_options=ds.ParquetReadOptions(dictionary_columns=texts),
        default_fragment_scan_options=ds.ParquetFragmentScanOptions(
            page_checksum_verification=True
        ),
    )
    schema = pa.schema([(field.name, _with_dictionaries(field.type)) for field in table.schema])
    return file_format, schema


def _text_columns(path: str, type_: pa.DataType) -> Iterator[str]:
    if pa.types.is_string(type_):
        yield path
    elif pa.types.is_list(type_):
        yield from _text_columns(f"{path}.list.element", type_.value_type)
    elif pa.types.is_struct(type_):
        for field in type_:
            yield from _text_columns(f"{path}.{field.name}", field.type)


def _with_dictionaries(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_string(type_):
        return pa.dictionary(pa.int32(), STRING)
    if pa.types.is_list(type_):
        return pa.list_(pa.field("element", _with_dictionaries(type_.value_type)))
    if pa.types.is_struct(type_):
        return pa.struct([(field.name, _with_dictionaries(field.type)) for field in type_])
    return type_


def read(
    source: Source, columns: Sequence[str], rows_at_a_time: int = _ROWS_AT_A_TIME
) -> Iterator[Batch]:
    """The columns, some rows at a time."""
    dataset = ds.dataset(source) if isinstance(source, pa.Table) else source
    # Few rows at a time, and none ahead: what is read is dropped as soon as it is summed up.
    yield from dataset.scanner(
        columns=list(columns),
        batch_size=rows_at_a_time,
        batch_readahead=1,
        fragment_readahead=1,
        use_threads=False,
    ).to_batches()


def only(source: Source, **values: str) -> ds.Dataset:
    """The rows whose columns have the values: ``only(polls, cluster="c")``."""
    dataset = ds.dataset(source) if isinstance(source, pa.Table) else source
    for name, wanted in values.items():
        dataset = dataset.filter(ds.field(name).cast(STRING) == wanted)
    return dataset


def text(column: Array) -> Array:
    """Texts as such, where they are numbers into a dictionary."""
    return column.cast(STRING) if pa.types.is_dictionary(column.type) else column


class Column:
    """Numbers the values of a column in the order in which they come first, over all batches.

    Null is 0.
    """

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {None: 0}
        #: The dictionary that came last, and the numbers of its values: batches share one.
        self._last: tuple[Array, Numbers] | None = None

    def number(self, column: Array) -> Numbers:
        """The numbers of the values."""
        encoded = column if isinstance(column, pa.DictionaryArray) else pc.dictionary_encode(column)
        indices = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        numbers: Numbers = self._of_dictionary(encoded.dictionary)[indices]
        return numbers

    def _of_dictionary(self, dictionary: Array) -> Numbers:
        """The numbers of its values; what has no place in it, null, is the last one."""
        if self._last is None or not _is_same(self._last[0], dictionary):
            seen = self._numbers
            numbers = [seen.setdefault(v, len(seen)) for v in dictionary.to_pylist()]
            self._last = dictionary, np.array([*numbers, 0], dtype=np.int64)
        return self._last[1]

    def number_of(self, value: Any) -> int:
        """The number of one value."""
        return self._numbers.setdefault(value, len(self._numbers))

    def all_values(self) -> list[Any]:
        """The values by their numbers."""
        return list(self._numbers)

    def values(self, numbers: Numbers, type_: pa.DataType = STRING) -> Array:
        """The values with the numbers."""
        values: Array = pa.array(list(self._numbers), type_)
        return values.take(pa.array(numbers))


def _is_same(one: Array, other: Array) -> bool:
    """Whether both lie in one place of memory: enough to find what batches share, and cheap."""
    if len(one) != len(other) or one.offset != other.offset:
        return False
    addresses = [
        [buffer and buffer.address for buffer in array.buffers()] for array in (one, other)
    ]
    return addresses[0] == addresses[1]


def micros(column: Array) -> Array:
    """Times as ``Instant``."""
    return column.cast(pa.timestamp("us", "UTC")).cast(LONG)


def int64(column: Array) -> Numbers:
    """Whole numbers; null is 0."""
    return np.asarray(column.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)


# ---------------------------------------------------------------- hashes of rows

_SEEDS = 2
# Odd, so that no bit of a number is lost.
_FACTORS: Hashes = np.random.default_rng(20_260_105).integers(
    0, 1 << 64, (_SEEDS, 64), dtype=np.uint64
) | np.uint64(1)


def _mixed(sums: Hashes) -> Hashes:
    """Each number spread over all 64 bits (the finalizer of SplitMix64)."""
    hashes = sums ^ (sums >> np.uint64(30))
    hashes *= np.uint64(0xBF58476D1CE4E5B9)
    hashes ^= hashes >> np.uint64(27)
    hashes *= np.uint64(0x94D049BB133111EB)
    hashes ^= hashes >> np.uint64(31)
    return hashes


def hash_rows(columns: Sequence[Numbers | Sequence[Hashes]]) -> list[Hashes]:
    """Two hashes of 64 bits for each row, of its numbers, or of the hashes of its lists.

    A sum of the numbers, each with its column's random odd factor: other rows have another one but
    for a chance of some 2^-60 per hash. Mixed, so that the hashes of many rows may be summed:
    sums do not depend on the order of the rows, and two copies of a row differ from one.
    """
    hashes = []
    for seed in range(_SEEDS):
        total: Hashes | None = None
        for place, column in enumerate(columns):
            numbers = column.view(np.uint64) if isinstance(column, np.ndarray) else column[seed]
            term = numbers * _FACTORS[seed, place]
            total = term if total is None else np.add(total, term, out=total)
        assert total is not None  # noqa: S101
        hashes.append(_mixed(total))
    return hashes


def hash_lists(lists: Array, elements: Sequence[Numbers | Sequence[Hashes]]) -> list[Hashes]:
    """Two hashes for each list, of its elements in order; ``elements`` are the columns of all."""
    lengths = int64(pc.list_value_length(lists))
    ends = np.cumsum(lengths)
    starts = ends - lengths
    places = np.arange(ends[-1] if len(ends) else 0) - np.repeat(starts, lengths)
    is_null = np.asarray(lists.is_null().to_numpy(zero_copy_only=False), dtype=np.int64)
    hashes = []
    for of_element in hash_rows([places, *elements]):
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(of_element, dtype=np.uint64)])
        hashes.append(_mixed(sums[ends] - sums[starts] + (2 * lengths + is_null).view(np.uint64)))
    return hashes


class Values:
    """Numbers or hashes of the values of a fact, whatever its type."""

    def __init__(self, type_: pa.DataType) -> None:
        self._parts: list[Values] = []
        self._column = Column()
        if pa.types.is_list(type_):
            self._parts = [Values(type_.value_type)]
        elif pa.types.is_struct(type_):
            self._parts = [Values(field.type) for field in type_]

    def read(self, column: Array) -> Numbers | Sequence[Hashes]:
        """The numbers of plain values, the hashes of lists and of structs."""
        if pa.types.is_list(column.type):
            return hash_lists(column, [self._parts[0].read(column.flatten())])
        if pa.types.is_struct(column.type):
            is_null = np.asarray(column.is_null().to_numpy(zero_copy_only=False), dtype=np.int64)
            values = zip(self._parts, column.flatten(), strict=True)
            return hash_rows([is_null, *[part.read(field) for part, field in values]])
        return self._column.number(column)


# ---------------------------------------------------------------- statements to runs


def segments(keys: Sequence[Numbers]) -> Numbers:
    """Where another key begins, in rows with equal keys next to each other."""
    begins = np.zeros(len(keys[0]), dtype=bool)
    begins[:1] = True
    for key in keys:
        begins[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(begins)


def sum_segments(hashes: Hashes, starts: Numbers) -> Hashes:
    """The sum of each segment, modulo 2^64."""
    return np.add.reduceat(hashes, starts) if len(starts) else hashes[:0]


#: In place of a number that is null.
NO_NUMBER = np.iinfo(np.int64).min


def numbers_or_none(column: Array) -> Numbers:
    """Whole numbers; null is NO_NUMBER."""
    filled = column.fill_null(NO_NUMBER)
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=np.int64)


def key_numbers(column: Array) -> list[Numbers]:
    """Numbers of a column's values, whatever its type: equal values have equal ones."""
    found = Values(column.type).read(column)
    return [found] if isinstance(found, np.ndarray) else [hashes.view(np.int64) for hashes in found]


class Collected(NamedTuple):
    """Rows with equal keys next to each other, each once: ``order`` has the places of the rows,
    ``starts`` where in it another key begins."""

    order: Numbers
    starts: Numbers

    @property
    def first(self) -> Numbers:
        """Of each key the place of a row."""
        return self.order[self.starts]

    def numbers(self) -> Numbers:
        """Of each row the number of its key; for rows none of which was equal to another."""
        numbers = np.empty(len(self.order), np.int64)
        lengths = np.diff(np.append(self.starts, len(self.order)))
        numbers[self.order] = np.repeat(np.arange(len(self.starts)), lengths)
        return numbers

    def lists(self, values: Numbers) -> Array:
        """The values of each key as a list."""
        offsets = pa.array(np.append(self.starts, len(self.order)), pa.int32())
        in_order = values[self.order]
        numbers = pa.array(in_order, LONG, mask=in_order == NO_NUMBER)
        return pa.ListArray.from_arrays(offsets, numbers)


def collect(keys: Sequence[Numbers], values: Sequence[Numbers]) -> Collected:
    """Rows by their keys, and by their values where keys are equal; equal rows count once.

    This one function makes runs of statements, and one run of its parts, for all witnesses.
    """
    columns = [*keys, *values]
    order = np.lexsort(columns[::-1])
    order = order[segments([column[order] for column in columns])]
    return Collected(order, segments([key[order] for key in keys]))


class Gathered:
    """Arrays of numbers that come batch by batch."""

    def __init__(self, width: int) -> None:
        self._parts: list[list[Numbers]] = [[] for _ in range(width)]

    def add(self, *arrays: Numbers) -> None:
        """One batch of each."""
        for parts, array in zip(self._parts, arrays, strict=True):
            parts.append(array)

    def arrays(self) -> list[Numbers]:
        """All of each."""
        return [np.concatenate(parts) if parts else np.zeros(0, np.int64) for parts in self._parts]

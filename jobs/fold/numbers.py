"""Rows as whole numbers: how the fold reads tables, compares rows and groups them.

Values become numbers as they are read, equal ones the same in all batches; rows become hashes of
their numbers. NumPy and PyArrow do both for a hundred thousand rows at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from ..engines.pieces import in_parts
from ..schemas import LONG, STRING, Table

if TYPE_CHECKING:  # it imports pandas, which takes a worker longer than most shards
    import pyarrow.dataset as ds

#: Columns and tables of Arrow. PyArrow's stubs do not have most of their methods.
Array: TypeAlias = Any
Rows: TypeAlias = Any
#: Some rows of a table: its columns by name.
Batch: TypeAlias = dict[str, Array]
pc: Any = pyarrow.compute

#: A snapshot table, cut to the window: in memory, as files, or as the batches that come, once.
TableSource: TypeAlias = "pa.Table | ds.Dataset | pa.RecordBatchReader"
Numbers: TypeAlias = NDArray[np.int64]
Hashes: TypeAlias = NDArray[np.uint64]

_ROWS_AT_A_TIME = 1 << 17

# ---------------------------------------------------------------- reading


def open_files(
    table: Table,
    files: Iterable[str | pa.Buffer],
    filesystem: Any = None,
    row_groups: Iterable[int] | None = None,
    size: int | None = None,
) -> ds.Dataset:
    """Parquet files of a snapshot table, to be read with texts as numbers into a dictionary.

    ``files``: their paths on the file system, or their bytes. A column that a file does not have
    is null. Whole numbers come as wide as they may be written. ``row_groups``: those alone, of each
    file; ``size``: of each, if it is known.
    """
    import pyarrow.dataset as ds  # noqa: PLC0415 - see above

    texts = [path for field in table.schema for path in _text_columns(field.name, field.type)]
    file_format: Any = ds.ParquetFileFormat(
        read_options=ds.ParquetReadOptions(dictionary_columns=texts),
        default_fragment_scan_options=ds.ParquetFragmentScanOptions(
            page_checksum_verification=True
        ),
    )
    schema = pa.schema([(field.name, _as_read(field.type)) for field in table.schema])
    fragments = [
        file_format.make_fragment(file, filesystem, row_groups=row_groups, file_size=size)
        for file in files
    ]
    return ds.FileSystemDataset(fragments, schema, file_format, filesystem)


def _text_columns(path: str, type_: pa.DataType) -> Iterator[str]:
    if pa.types.is_string(type_):
        yield path
    elif pa.types.is_list(type_):
        yield from _text_columns(f"{path}.list.element", type_.value_type)
    elif pa.types.is_struct(type_):
        for field in type_:
            yield from _text_columns(f"{path}.{field.name}", field.type)


def _as_read(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_string(type_):
        return pa.dictionary(pa.int32(), STRING)
    if pa.types.is_list(type_):
        return pa.list_(pa.field("element", _as_read(type_.value_type)))
    if pa.types.is_struct(type_):
        return pa.struct([(field.name, _as_read(field.type)) for field in type_])
    return LONG if pa.types.is_integer(type_) else type_


def read(
    source: TableSource, columns: list[str], rows_at_a_time: int | None = None
) -> Iterator[Batch]:
    """The columns by name, some rows at a time."""
    for batch in _batches(source, columns, rows_at_a_time or _ROWS_AT_A_TIME):
        if batch.num_rows:
            yield dict(zip(batch.schema.names, batch.columns, strict=True))


def _batches(source: TableSource, columns: list[str], rows: int) -> Iterator[pa.RecordBatch]:
    if isinstance(source, pa.RecordBatchReader):
        for some in in_parts(source, rows, lambda batch: batch.num_rows):
            together = pa.Table.from_batches(some).select(columns).combine_chunks()
            yield from together.to_batches(rows)
        return
    # Few rows at a time, and none ahead: what is read is dropped as soon as it is summed up.
    scanner = _dataset(source).scanner(
        columns=columns,
        batch_size=rows,
        batch_readahead=1,
        fragment_readahead=1,
        use_threads=False,
    )
    yield from scanner.to_batches()


def rows_of_group(source: pa.Table | ds.Dataset, group: str) -> ds.Dataset:
    """The rows that are about a consumer group, in a table that is about groups."""
    dataset = _dataset(source)
    if "consumer_group" not in dataset.schema.names:
        return dataset
    return dataset.filter(pc.field("consumer_group").cast(STRING) == group)


def _dataset(source: pa.Table | ds.Dataset) -> ds.Dataset:
    import pyarrow.dataset as ds  # noqa: PLC0415 - see above

    return ds.dataset(source) if isinstance(source, pa.Table) else source


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
        if self._last is None or not _is_same(self._last[0], encoded.dictionary):
            known, values = self._numbers, encoded.dictionary.to_pylist()
            numbers = (known.setdefault(value, len(known)) for value in values)
            # Null, which has no place in a dictionary, is the last one.
            self._last = encoded.dictionary, np.array([*numbers, 0], dtype=np.int64)
        if len(encoded.dictionary) == 1 and not encoded.null_count:
            return np.full(len(encoded), self._last[1][0])
        return self._last[1].take(encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False))


def _is_same(one: Array, other: Array) -> bool:
    """True if both lie in one place of memory: enough to find what batches share, and cheap."""
    places = [
        (len(array), array.offset, [buffer and buffer.address for buffer in array.buffers()])
        for array in (one, other)
    ]
    return bool(places[0] == places[1])


def micros(column: Array) -> Array:
    """Times as ``Instant``."""
    return column.cast(pa.timestamp("us", "UTC")).cast(LONG)


#: The number in place of null.
NO_NUMBER = np.iinfo(np.int64).min


def int64(column: Array, null: int = 0) -> Numbers:
    """Whole numbers, times as ``Instant``, or truths as 0 and 1; ``null``: in place of null."""
    column = micros(column) if pa.types.is_timestamp(column.type) else column
    return cast(Numbers, column.cast(LONG).fill_null(null).to_numpy(zero_copy_only=False))


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


def hash_rows(columns: Iterable[Numbers | Sequence[Hashes]]) -> list[Hashes]:
    """Two hashes of 64 bits for each row, of its numbers, or of the hashes of its lists.

    A sum of the numbers, each with its column's random odd factor: other rows have another one but
    for a chance of some 2^-60 per hash. Mixed, so that the hashes of many rows may be summed:
    sums do not depend on the order of the rows, and two copies of a row differ from one.

    Columns are taken one after the other: to hold the terms of all costs more than to sum them.
    """
    sums: list[Any] = [np.uint64(0)] * _SEEDS
    for place, column in enumerate(columns):
        for seed, factor in enumerate(_FACTORS[:, place]):
            values = column.view(np.uint64) if isinstance(column, np.ndarray) else column[seed]
            term = values * factor
            term += sums[seed]
            sums[seed] = term
    return [_mixed(sum_) for sum_ in sums]


def hash_lists(lists: Array, elements: Numbers | Sequence[Hashes]) -> list[Hashes]:
    """Two hashes for each list, of its elements in order; ``elements``: those of all lists."""
    lengths = int64(pc.list_value_length(lists))
    ends = np.cumsum(lengths)
    starts = ends - lengths
    places = np.arange(ends[-1] if len(ends) else 0) - np.repeat(starts, lengths)
    is_null = int64(lists.is_null())
    hashes = []
    for element_hashes in hash_rows([places, elements]):
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(element_hashes, dtype=np.uint64)])
        hashes.append(_mixed(sums[ends] - sums[starts] + (2 * lengths + is_null).view(np.uint64)))
    return hashes


def reader(type_: pa.DataType) -> Callable[[Array], Numbers | Sequence[Hashes]]:
    """Makes a reader of a column of the type: numbers of plain values, hashes of lists and structs;
    only one for all batches.
    """
    if pa.types.is_list(type_):
        element_hashes = reader(type_.value_type)
        return lambda lists: hash_lists(lists, element_hashes(lists.flatten()))
    if pa.types.is_struct(type_):
        field_readers = [reader(field.type) for field in type_]

        def read_structs(structs: Array) -> Sequence[Hashes]:
            fields = zip(field_readers, structs.flatten(), strict=True)
            nulls = int64(structs.is_null())
            return hash_rows(chain([nulls], (read(field) for read, field in fields)))

        return read_structs
    return Column().number


# ---------------------------------------------------------------- statements to runs


def segments(keys: Iterable[NDArray[Any]], rows: int) -> Numbers:
    """The places where another key begins, in rows with equal keys next to each other."""
    begins = np.zeros(rows, dtype=bool)
    begins[:1] = True
    for key in keys:
        begins[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(begins)


def key_numbers(column: Array) -> list[Numbers]:
    """Numbers of a column's values, whatever its type: equal values have equal ones."""
    found = reader(column.type)(column)
    return [found] if isinstance(found, np.ndarray) else [hashes.view(np.int64) for hashes in found]


class GroupedRows(NamedTuple):
    """Rows with equal keys next to each other, each once: ``order`` has the places of the rows,
    ``starts`` where in it another key begins."""

    order: Numbers
    starts: Numbers

    @property
    def first(self) -> Numbers:
        """The place of one row of each key."""
        return self.order[self.starts]

    def lists(self, values: Numbers) -> Array:
        """The values of each key as a list."""
        offsets = pa.array(np.append(self.starts, len(self.order)), pa.int32())
        in_order = values[self.order]
        numbers = pa.array(in_order, LONG, mask=in_order == NO_NUMBER)
        return pa.ListArray.from_arrays(offsets, numbers)


def collect(keys: Sequence[Numbers], values: Sequence[Numbers]) -> GroupedRows:
    """Rows by their keys, and by their values where keys are equal; equal rows count once.

    This one function makes runs of statements, and one run of its parts, for all witnesses.
    """
    columns = [*keys, *values]
    order = np.lexsort(columns[::-1])
    order = order[segments((column[order] for column in columns), len(order))]
    return GroupedRows(order, segments((key[order] for key in keys), len(order)))


def distinct_rows(columns: Sequence[Numbers]) -> tuple[Numbers, Numbers]:
    """The place of one row for each that is distinct, and of each row the number of its own."""
    rows = collect(columns, [np.arange(len(columns[0]))])
    numbers = np.empty_like(rows.order)
    lengths = np.diff(rows.starts, append=len(rows.order))
    numbers[rows.order] = np.repeat(np.arange(len(rows.starts)), lengths)
    return rows.first, numbers

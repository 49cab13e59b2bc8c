"""Rows of statements -> packed rows of the snapshot tables: what a task of Spark does.

Needs no Spark. The rows come subject by subject, each subject's in order of time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TypeAlias

import pyarrow as pa

from jobs.dumps.rows import Decoder
from jobs.dumps.statement import TOPIC_ROUTE, Statement
from jobs.packed import pack
from jobs.snapshots.groups import SnapshotTerms, group_tables
from jobs.snapshots.tables import PIECE_ROWS
from jobs.snapshots.topics import topic_tables

#: What statements are about: a topic or a group, its cluster, its name.
Subject: TypeAlias = tuple[bool, str, str]


def subject_of(statement: Statement) -> Subject:
    """What a statement is about."""
    return statement.kind == TOPIC_ROUTE, statement.cluster, statement.subject


def subject_tables(
    subject: Subject, statements: Iterable[Statement], terms: SnapshotTerms
) -> Iterator[tuple[str, pa.Table]]:
    """The tables of one subject, in pieces; its statements in order of time."""
    is_topic, _, _ = subject
    return topic_tables(statements) if is_topic else group_tables(statements, terms)


def table_batches(
    batches: Iterable[pa.RecordBatch], terms: SnapshotTerms
) -> Iterator[pa.RecordBatch]:
    """``packed.PACKED`` of ``rows.ROWS``."""
    for piece in _merged(_pieces(batches, terms)):
        yield pack([piece])


def _pieces(
    batches: Iterable[pa.RecordBatch], terms: SnapshotTerms
) -> Iterator[tuple[str, pa.Table]]:
    decoder = Decoder()
    statements = (each for batch in batches for each in decoder.statements(batch))
    for subject, of_subject in groupby(statements, subject_of):
        yield from subject_tables(subject, of_subject, terms)


def _merged(pieces: Iterable[tuple[str, pa.Table]]) -> Iterator[tuple[str, pa.Table]]:
    """The same rows in few pieces, however small the groups are."""
    held: defaultdict[str, list[pa.Table]] = defaultdict(list)
    rows: Counter[str] = Counter()
    for name, piece in pieces:
        held[name].append(piece)
        rows[name] += piece.num_rows
        if rows[name] >= PIECE_ROWS:
            del rows[name]
            yield name, pa.concat_tables(held.pop(name)).combine_chunks()
    for name, tables in held.items():
        yield name, pa.concat_tables(tables).combine_chunks()

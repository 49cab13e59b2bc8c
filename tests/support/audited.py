"""Dumps audited in this process: by name the rows of every report table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jobs.config.settings import Settings
from jobs.engines.local import LocalEngine
from jobs.engines.pieces import all_rows, unpack_rows
from jobs.fold.kernel import Cutting
from jobs.pipeline.audit import fold_pieces
from jobs.pipeline.ingest import read_dumps
from jobs.pipeline.inputs import packed_clusters, terms_of
from jobs.schemas import SNAPSHOT_TABLES

Rows = list[dict[str, Any]]


def audit_dumps(paths: Sequence[Path], settings: Settings | None = None) -> dict[str, Rows]:
    """What an audit of these dumps publishes, and ``quarantine``."""
    settings = settings or Settings()
    rows: dict[str, Rows] = defaultdict(list)
    with LocalEngine() as engine:
        files = engine.list_files([str(path) for path in paths])
        read = read_dumps(engine, files, settings)
        written = list(read.tables(settings))
        tables = {each.name: all_rows(written, each.name, each.schema) for each in SNAPSHOT_TABLES}
        terms = terms_of(settings, ingested=packed_clusters(read.counts.clusters))
        cutting = Cutting(1, settings.heartbeat_expiry_seconds, list_ids=True, route_ids=True)
        pieces = engine.given(
            piece
            for each in cutting.tables()
            for piece in cutting.pieces(each, [tables[each.name]])
        )
        judged = fold_pieces(engine, pieces, cutting).judge(terms, {}, settings)
        for piece in engine.collect(judged):
            rows[piece.kind] += unpack_rows(piece.data).to_pylist()
    rows["quarantine"] = tables["quarantine"].to_pylist()
    return rows


def lasting(rows: Rows) -> Rows:
    """Those that are PERSISTENT."""
    return [row for row in rows if row["persistence"] == "PERSISTENT"]


def queues(rows: Rows, *, topic: str | None = None) -> set[tuple[str, str, int]]:
    """(topic, broker, queue id) of rows of a table of queues."""
    return {
        (row["topic"], row["broker_name"], row["queue_id"])
        for row in rows
        if topic in (None, row["topic"])
    }

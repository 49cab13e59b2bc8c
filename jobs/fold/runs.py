"""What both folds make: runs of what each witness reported, and each distinct content once.

``spark`` makes them natively from rows on any number of machines, ``local`` with NumPy in the
driver. Runs are also what a later audit goes on from: see ``continued``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from jobs.judge.dossier import POLL, ROUTE
from jobs.schemas import ANSWERED, STRING

#: Raise it whenever the same rounds give other tables: other ids, other columns, another verdict of
#: the core. What earlier versions saved is then not taken over.
STATES_VERSION = 6

#: One row per broker, group and answer: when (times) the broker gave it.
POLL_RUNS = pa.schema([pa.field("cluster", STRING), pa.field("consumer_group", STRING), *POLL])

#: One row per nameserver, topic and route: when (times) the nameserver gave it.
ROUTE_RUNS = pa.schema(
    [pa.field("cluster", STRING)]
    + [ROUTE.field(name) for name in ("topic", "namesrv_addr", "route_id", "times")]
)


def uses_ids(
    broker_polls: ds.Dataset | None,
    ingested: Mapping[str, Any] | None,
    heartbeat_expiry_seconds: int,
) -> bool:
    """Whether the content ids of the snapshot tables are those that an audit would compute.

    ``ingested`` is the manifest of the ingest job (None: the tables came from elsewhere). Members
    that were silent for too long make another list, so that ids count for one setting alone. And
    every list that came must have its id: an older ingest, or another writer, gave none.
    """
    if broker_polls is None or ingested is None or "list_id" not in broker_polls.schema.names:
        return False
    if ingested.get("heartbeat_expiry_seconds") != heartbeat_expiry_seconds:
        return False
    listed = (ds.field("outcome") == ANSWERED) & (ds.field("connections") > 0)
    return int(broker_polls.count_rows(filter=listed & ds.field("list_id").is_null())) == 0

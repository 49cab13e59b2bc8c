"""The addresses at which brokers were asked last: for the commands that the page names."""

from datetime import datetime, timedelta

from ..config.masking import Masking
from ..config.window import Window
from ..schemas import BROKER_POLLS
from ..storage import Snapshots

#: The last rounds are read alone: a day of a large fleet has too many rows for a few addresses.
_RECENT = timedelta(minutes=10)
#: The summary of a run is read often, and has to stay small.
_MOST_BROKERS = 1_000


def broker_addresses(
    inputs: Snapshots, last_snapshot: datetime, masking: Masking
) -> dict[str, dict[str, str]]:
    """The address of each broker that was asked last, by cluster and name: its master's, if asked.

    Source: ``broker_polls`` of the last ten minutes. Brokers whose address is in no row are left
    out, and of very many the last by name.
    """
    if not inputs.has(BROKER_POLLS.name):
        return {}
    columns = ["cluster", "broker_name", "broker_id", "broker_addr"]
    polls = inputs.parquet(BROKER_POLLS.name)
    if not set(columns) <= set(polls.schema.names):
        return {}
    recent = Window(last_snapshot - _RECENT, last_snapshot + timedelta.resolution)
    rows = polls.to_table(
        columns=[*columns, "snapshot_time"], filter=recent.filter_of(BROKER_POLLS, polls.schema)
    )
    latest = rows.group_by(columns).aggregate([("snapshot_time", "max")]).to_pylist()
    with_address = [row for row in latest if row["broker_addr"]]
    # The smallest id is the master; of an address that changed the later counts.
    with_address.sort(key=lambda row: (-(row["broker_id"] or 0), row["snapshot_time_max"]))
    found = {(row["cluster"], row["broker_name"]): row["broker_addr"] for row in with_address}
    addresses: dict[str, dict[str, str]] = {}
    for (cluster, broker_name), address in sorted(found.items())[:_MOST_BROKERS]:
        of_cluster = addresses.setdefault(masking.mask(cluster), {})
        of_cluster[masking.mask(broker_name)] = masking.mask(address)
    return addresses

"""The addresses at which brokers were asked last: for the commands that the page names."""

from datetime import datetime

from ..config.masking import Masking
from ..declared.instants import SECOND, Instant, to_instant
from ..fold.slice_facts import BrokerPolls

#: The time before the last round of which the addresses count.
_RECENT: Instant = 600 * SECOND
#: The summary of a run is read often, and has to stay small.
_MOST_BROKERS = 1_000


def broker_addresses(
    polls: BrokerPolls, last_snapshot: datetime, masking: Masking
) -> dict[str, dict[str, str]]:
    """The address of each broker that was asked last, by cluster and name: its master's, if asked.

    Brokers whose address is in no poll of the last ten minutes are left out, and of very many the
    last by name.
    """
    since = to_instant(last_snapshot) - _RECENT
    asked = polls.rows(["cluster", "broker_name", "broker_id", "broker_addr"])
    # The smallest id is the master; of an address that changed the later counts.
    asked_last = sorted(
        (-broker_id, time, cluster, broker_name, address)
        for (cluster, broker_name, broker_id, address), time in asked
        if address and time >= since
    )
    found = {(cluster, name): address for *_, cluster, name, address in asked_last}
    addresses: dict[str, dict[str, str]] = {}
    for (cluster, broker_name), address in sorted(found.items())[:_MOST_BROKERS]:
        of_cluster = addresses.setdefault(masking.mask(cluster), {})
        of_cluster[masking.mask(broker_name)] = masking.mask(address)
    return addresses

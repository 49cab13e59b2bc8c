"""Lines of ``subscription_group`` -> the groups that each broker has a configuration of, at last.

A group that was deleted is missing there, and its offsets may stay (``deleteSubGroup`` of 5.3.3
without ``removeOffset``). Nothing else of a dump shows that it was deleted.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from ..config.bounds import Bounds
from ..declared.instants import Instant, to_instant
from ..engines.engine import Slice
from .parsing import parse_body, parse_json
from .statement import SUBSCRIPTION_GROUP
from .unpacking import SliceLines

_KIND = f'"{SUBSCRIPTION_GROUP}"'.encode()


class GroupConfigs(NamedTuple):
    """The groups of one broker's last answer, and its snapshot; None: it answered with an error."""

    time: Instant
    groups: frozenset[str] | None


def last_group_configs(
    slices: Iterable[Slice], bounds: Bounds, cluster: str
) -> dict[str, GroupConfigs]:
    """The last answer of each broker of a cluster, by the broker's name."""
    found: dict[str, GroupConfigs] = {}
    for slice_ in slices:
        for line in SliceLines(slice_, bounds):
            if _KIND not in line.text:
                continue
            try:
                envelope = parse_json(line.text.decode())
                if envelope["kind"] == SUBSCRIPTION_GROUP and envelope["cluster"] == cluster:
                    time = to_instant(datetime.fromisoformat(envelope["snapshot_time"]))
                    name, configs = envelope["broker_name"], GroupConfigs(time, _groups(envelope))
                    found[name] = max(
                        configs,
                        found.get(name, configs),
                        key=lambda group_configs: group_configs.time,
                    )
            except (ValueError, KeyError, TypeError):
                continue  # the quarantine has it
    return found


def _groups(envelope: Mapping[str, Any]) -> frozenset[str] | None:
    if "body" not in envelope:
        return None
    body = envelope["body"]
    value = parse_body(body) if isinstance(body, str) else body
    return frozenset(value["subscriptionGroupTable"])

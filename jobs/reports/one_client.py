"""One client id in a published run: the groups that have it, and what it does in each of them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from rebalance_core.english import MOST_NAMES, names
from rebalance_core.errors import near_names
from rebalance_core.findings import AUDITED

from ..declared.kinds import STALLED, worst
from ..errors import SettingsError
from ..schemas import BOOLEAN, DOUBLE, INT, STRING
from .tables import Tables

#: The roles of a client in a group at the end of the run.
_TAKES, _IDLE, _CLAIMS_NOTHING = "takes queues", "gets no queue", "takes a slot and no queue"
_LEFT, _NOT_KNOWN = "was a member, and is none at the end", "not known at the end"

#: The columns that are shown.
_COLUMNS: dict[str, pa.DataType] = {
    **dict.fromkeys(("client_id", "cluster", "consumer_group", "role"), STRING),
    **{"topics": INT, "queues": DOUBLE, "processes": INT},
    **{"severity": STRING, "ongoing": BOOLEAN, "faults": pa.list_(STRING)},
}
_OF_LOAD = ("topics", "queues", "processes")


class _Membership(NamedTuple):
    """A client id in a group."""

    client_id: str
    cluster: str
    consumer_group: str


class _NamedIn(NamedTuple):
    """A fault that names a client, or a stall of its queues."""

    fault: str
    severity: str
    ongoing: bool


def groups_of_client(tables: Tables, wanted: str) -> tuple[pa.Table, str]:
    """The groups that have a client, a row for each client id and group; and what is in no table.

    ``wanted``: a client id, or an address, of all that it has. SettingsError where no group has it.
    """
    healths = tables.read("group_health", [*_Membership._fields[1:], "coverage", "members"])
    members: dict[tuple[str, str], int] = {}
    audited = set()
    for cluster, group, coverage, listed in _rows(healths):
        members[cluster, group] = max(listed, members.get((cluster, group), 0))
        audited |= {(cluster, group)} if coverage == AUDITED else set()
    hidden = sorted({group for cluster, group in members.keys() - audited if group})
    left_out = f"the members of {names(hidden, MOST_NAMES)}, not audited, are in no table"

    loads = {
        _Membership(*row[:3]): row[3:]
        for row in _rows(tables.read("group_load", [*_Membership._fields, "idle", *_OF_LOAD]))
    }
    # A row for each view of each state.
    every = tables.read("allocations", [*_Membership._fields, "subscribed"])
    subscribed: dict[_Membership, bool] = defaultdict(bool)
    for *of, subscribes in _rows(every.group_by(every.column_names).aggregate([])):
        subscribed[_Membership(*of)] |= subscribes
    faults = _faults(tables)
    there = subscribed.keys() | loads.keys() | faults.keys()
    found = sorted(membership for membership in there if is_client(membership.client_id, wanted))
    if not found:
        near = near_names(wanted, {membership.client_id for membership in there})
        more = f"; {left_out}" if hidden else ""
        raise SettingsError(f"no audited group of the run has a client {wanted!r}: {near}{more}")
    with_load = {load[1:] for load in loads}
    rows = []
    for membership in found:
        idle, *values = loads.get(membership, (False,))
        row = membership._asdict() | dict(zip(_OF_LOAD, values, strict=False))
        if membership in loads:
            claims = subscribed.get(membership, True)
            row["role"] = _IDLE if idle else _TAKES if claims else _CLAIMS_NOTHING
        else:
            is_over = membership[1:] in with_load or members.get(membership[1:]) == 0
            row["role"] = _LEFT if is_over else _NOT_KNOWN
        rows.append(row | _summed(faults.get(membership, ())))
    return pa.Table.from_pylist(rows, schema=pa.schema(_COLUMNS)), left_out if hidden else ""


def _rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def is_client(client_id: str, wanted: str) -> bool:
    """True if it is the client id that is asked for, or one at the address that is.

    >>> is_client("10.0.0.1@app", "10.0.0.1"), is_client("10.0.0.11@app", "10.0.0.1")
    (True, False)
    """
    return client_id == wanted or client_id.startswith(f"{wanted}@")


def _faults(tables: Tables) -> Mapping[_Membership, Sequence[_NamedIn]]:
    """All that names a client: faults, and stalls of queues that it owned."""
    found: dict[_Membership, list[_NamedIn]] = defaultdict(list)
    shared = ("cluster", "consumer_group", "topic", "severity", "ongoing")
    for table, columns in (
        ("group_faults", ("client_ids", "fault")),
        ("stalled_queues", ("owners",)),
    ):
        for cluster, group, topic, severity, ongoing, clients, *kind in _rows(
            tables.read(table, [*shared, *columns])
        ):
            fault = _NamedIn(f"{(*kind, STALLED)[0]} of {topic}", severity, ongoing)
            for client_id in clients or ():
                found[_Membership(client_id, cluster, group)].append(fault)
    return found


def _summed(faults: Sequence[_NamedIn]) -> dict[str, Any]:
    """The faults in columns: the severity is that of what is still there, else of what ended."""
    there = [fault for fault in faults if fault.ongoing]
    in_order = sorted(set(faults), key=lambda named_in: (not named_in.ongoing, named_in.fault))
    return {
        "severity": worst(named_in.severity for named_in in there or faults) if faults else None,
        "ongoing": bool(there) if faults else None,
        "faults": list(dict.fromkeys(named_in.fault for named_in in in_order)),
    }

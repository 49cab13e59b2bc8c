"""findings, against the known issues -> the same findings, those that match one marked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from jobs.judge.tables import Row
from jobs.judge.terms import KnownIssueTerms
from jobs.kinds import QUEUE_FINDINGS, STALLED
from jobs.masking import Masking

#: The column with the reason of the known issue that a finding matches; null: it matches none.
KNOWN_ISSUE = "known_issue"


class _Finding(NamedTuple):
    """What a known issue can match, besides the group; the names by the keys of the patterns."""

    kind: str
    names: Mapping[str, Sequence[str]]
    queue_id: int | None = None


def _queue_finding(kind: str, row: Row) -> _Finding:
    clients = (
        row["owners"]
        if kind == STALLED
        else [claimant["client_id"] for claimant in row["claimants"]]
    )
    names = {"topics": [row["topic"]], "brokers": [row["broker_name"]], "clients": clients}
    return _Finding(kind, names, row["queue_id"])


def _stacked_id(row: Row) -> _Finding:
    # It is on no broker in particular.
    names = {"topics": row["topics"], "brokers": (), "clients": [row["client_id"]]}
    return _Finding(row["verdict"], names)


def _fault(row: Row) -> _Finding:
    names = {
        "topics": [row["topic"]],
        "brokers": row["broker_names"],
        "clients": row["client_ids"],
    }
    return _Finding(row["fault"], names)


_FINDING: Mapping[str, Callable[[Row], _Finding]] = {
    **{table: partial(_queue_finding, kind) for table, kind in QUEUE_FINDINGS.items()},
    "stacked_client_ids": _stacked_id,
    "group_faults": _fault,
}

#: The tables whose findings can be known issues.
MARKED_TABLES = tuple(_FINDING)


def mark_known(
    tables: Mapping[str, Iterable[Row]],
    cluster: str,
    consumer_group: str,
    entries: Iterable[KnownIssueTerms],
    masking: Masking,
) -> None:
    """Sets ``known_issue`` of each finding of a group: the reason of the first entry it matches.

    All that an entry says has to fit. Where several names are concerned (the clients of a fault,
    the topics of a client id), a pattern has to match each; a finding that has no such name is not
    matched by a pattern for it. A client may be named by its true id, or as reports show it.
    """
    place = {"clusters": [cluster], "groups": [consumer_group]}
    # Few entries are about any one group: the others are not looked at again.
    of_group = [each for each in entries if _match(each, place)]
    for table, find in _FINDING.items():
        for row in tables.get(table, ()):
            row[KNOWN_ISSUE] = None
            for named in (row, masking.mask_all(row)) if of_group else ():
                row[KNOWN_ISSUE] = row[KNOWN_ISSUE] or _reason(find(named), of_group)


def _reason(finding: _Finding, entries: Iterable[KnownIssueTerms]) -> str | None:
    for entry in entries:
        if (
            _match(entry, finding.names)
            and (entry.queues is None or finding.queue_id in entry.queues)
            and (entry.kinds is None or finding.kind in entry.kinds)
        ):
            return entry.reason
    return None


def _match(entry: KnownIssueTerms, names: Mapping[str, Sequence[str]]) -> bool:
    """Whether there are names for each of the entry's patterns of these keys, and all fit."""
    return all(
        bool(names[key]) and all(pattern.fullmatch(name) for name in names[key])
        for key, pattern in entry.patterns
        if key in names
    )

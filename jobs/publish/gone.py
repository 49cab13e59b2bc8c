"""The run before, against this one -> clusters, groups, brokers and nameservers that are gone.

What is in no dump has no finding, so that it would leave a night as if it were well. A group that a
broker was asked about is not gone, whether or not it has members.

The run before alone is compared with: what was taken away on purpose is said for one night. A group
with open findings is said for as long as these are open as not audited (``earlier.NIGHTS``). Of
nameservers, whose names are addresses, one that has another address is not gone: there must be
fewer of them than before.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeAlias

from rebalance_core.english import count, names
from rebalance_core.grouping import grouped
from rebalance_core.texts import Text

from ..config.masking import Masking
from ..declared.kinds import NO_GROUP, NOT_AUDITED
from ..errors import DamagedError
from ..reports.tables import Tables
from ..schemas import FORMER_FINDINGS, GROUP_HEALTH
from ..storage import PublishedRun, ReportHistory
from ..verdict.gaps import BROKER_GONE, CLUSTER_GONE, GROUP_GONE, NAMESERVER_GONE, Gap

_LOGGER = logging.getLogger(__name__)

BROKERS, NAMESERVERS = "brokers", "nameservers"
#: The names of those that were asked, by kind and cluster.
Witnesses: TypeAlias = Mapping[str, Mapping[str, Collection[str]]]
#: The summary of a run is read often, and has to stay small.
_MOST_WITNESSES = 1_000
_MOST_NAMES = 20
_OF_GROUPS = ("cluster", "consumer_group", "coverage")


def witnesses_of(witnesses: Witnesses, masking: Masking) -> dict[str, dict[str, list[str]]]:
    """The witnesses as a summary has them: of very many the first by cluster and name."""
    found = {}
    for kind, clusters in witnesses.items():
        every = (
            (cluster, name) for cluster, names in sorted(clusters.items()) for name in sorted(names)
        )
        some = islice(every, _MOST_WITNESSES)
        found[kind] = grouped((masking.mask(cluster), masking.mask(name)) for cluster, name in some)
    return found


def gone(
    history: ReportHistory,
    previous: PublishedRun | None,
    written: Tables,
    witnesses: Witnesses,
    masking: Masking,
) -> Iterator[Gap]:
    """A gap for each cluster that is gone, and of the others for what is gone of each.

    ``written``: the tables of this run; ``witnesses``: all that were asked in it.
    """
    if previous is None:
        return
    seen = _groups(written.read(GROUP_HEALTH.name, _OF_GROUPS).to_pylist())
    asked = {
        kind: {
            masking.mask(cluster): set(map(masking.mask, names))
            for cluster, names in clusters.items()
        }
        for kind, clusters in witnesses.items()
    }
    before: Witnesses = previous.summary.get("witnesses", {})
    there = {cluster for cluster, _ in seen}.union(*asked.values())
    lost = grouped(sorted((_groups_before(history, previous) | _not_audited(written)) - seen))
    clusters = set(lost).union(*(before.get(kind, ()) for kind in asked))
    for cluster in sorted(clusters - there):
        yield Gap(CLUSTER_GONE, Text("cluster {cluster} is no longer in any dump", cluster=cluster))
    for cluster in sorted(clusters & there):
        old, new = (
            {kind: set(each.get(kind, {}).get(cluster, ())) for kind in asked}
            for each in (before, asked)
        )
        groups, brokers = lost.get(cluster, []), old[BROKERS] - new[BROKERS]
        nameservers = old[NAMESERVERS] - new[NAMESERVERS]
        if len(new[NAMESERVERS]) >= len(old[NAMESERVERS]):
            nameservers = set()
        for kind, what, absent in (
            (GROUP_GONE, count(len(groups), "group"), groups),
            (BROKER_GONE, count(len(brokers), "broker"), sorted(brokers)),
            (NAMESERVER_GONE, count(len(nameservers), "nameserver"), sorted(nameservers)),
        ):
            if absent:
                text = Text(
                    "cluster {cluster}: in the previous run, but no longer in any dump: {what} "
                    "({names})",
                    cluster=cluster,
                    what=what,
                    names=names(absent, _MOST_NAMES),
                )
                yield Gap(kind, text)


def _groups(rows: Iterable[Mapping[str, Any]]) -> set[tuple[str, str]]:
    """The groups that a run saw, by the rows of its group_health."""
    return {(row["cluster"], row["consumer_group"]) for row in rows if row["coverage"] != NO_GROUP}


def _groups_before(history: ReportHistory, previous: PublishedRun) -> set[tuple[str, str]]:
    try:
        return _groups(history.rows(previous, GROUP_HEALTH.name, {}, _OF_GROUPS))
    except (DamagedError, OSError) as error:
        _LOGGER.warning("%s: no group is compared with that run", error)
        return set()


def _not_audited(written: Tables) -> set[tuple[str, str]]:
    """The groups with findings that are open as not audited."""
    rows = written.read(FORMER_FINDINGS.name, ["cluster", "consumer_group", "status"]).to_pylist()
    return {(row["cluster"], row["consumer_group"]) for row in rows if row["status"] == NOT_AUDITED}

"""The runs before -> what was open and what was over in the last one, and what is gone since.

What is in no dump has no finding, so that it would leave a night as if it were well. A group that a
broker was asked about is not gone, whether or not it has members.

With the run before alone it is compared what is gone: what was taken away on purpose is said for
one night. A group with open findings is said for as long as these are open as not audited
(``NIGHTS``). Of nameservers, whose names are addresses, one that has another address is not gone:
there must be fewer of them than before.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeAlias

from rebalance_core.english import count, names
from rebalance_core.grouping import grouped
from rebalance_core.texts import Text

from ..config.masking import Masking
from ..declared.dossier import EarlierFinding
from ..declared.instants import Instant
from ..declared.kinds import GRADED_TABLES, NO_GROUP, NOT_AUDITED, QUEUE_FINDINGS
from ..errors import DamagedError
from ..reports.tables import PLACE, Tables, place_of
from ..schemas import FORMER_FINDINGS, GROUP_FAULTS, GROUP_HEALTH, PROBLEMS
from ..storage import PublishedRun, ReportHistory
from ..verdict.gaps import BROKER_GONE, CLUSTER_GONE, GROUP_GONE, NAMESERVER_GONE, Gap

_LOGGER = logging.getLogger(__name__)

#: After so many published dates in which nobody looked, what was open is forgotten: the group may
#: be gone for good.
NIGHTS = 7

#: Open findings by cluster and group.
OpenFindings: TypeAlias = dict[tuple[str, str], list[EarlierFinding]]
#: Findings by id and kind, with the group of each.
_EarlierRows: TypeAlias = dict[tuple[str, str], tuple[tuple[str, str], EarlierFinding]]

#: The last times that problems were seen which were over in the run before, by group, topic and
#: kind.
EndedProblems: TypeAlias = dict[tuple[str, str], dict[tuple[str, str], Instant]]
_COUNTED, _UNAUDITED = {"standing": "COUNTED"}, {"status": NOT_AUDITED}
_KEY = ("cluster", "consumer_group", "topic", "kind")
#: Values of the rows of findings that are open.
_OPEN = {"persistence": "PERSISTENT", "ongoing": True}

BROKERS, NAMESERVERS = "brokers", "nameservers"
#: The names of those that were asked, by kind and cluster.
Witnesses: TypeAlias = Mapping[str, Mapping[str, Collection[str]]]
#: The summary of a run is read often, and has to stay small.
_MOST_WITNESSES = 1_000
_MOST_NAMES = 20
_OF_GROUPS = ("cluster", "consumer_group", "coverage")


def open_findings(
    history: ReportHistory, previous: PublishedRun | None, nights: int = NIGHTS
) -> OpenFindings:
    """Findings and faults of each group that lasted and were not over in the run before.

    Topics that it did not audit are as the run before it left them, and so on for ``nights``
    published dates: a night in which nobody looked neither ends what was open nor makes it new. A
    fault goes on with the queues of its topic, or is itself among what was not audited.

    None of them where nothing can be compared: there is no such run, or its tables are gone.
    """
    if previous is None or not nights:
        return {}
    try:
        rows = _lasting(history, previous)
        columns = [*PLACE, "finding_id"]
        left = history.rows(previous, FORMER_FINDINGS.name, _UNAUDITED, columns)
    except (DamagedError, OSError) as error:
        _LOGGER.warning("%s: nothing is compared with that run", error)
        return {}
    if left:
        ids, topics = {row["finding_id"] for row in left}, {*map(place_of, left)}
        before = open_findings(history, history.before(previous.date), nights - 1)
        for group, group_findings in before.items():
            for earlier in group_findings:
                is_fault = earlier.kind not in QUEUE_FINDINGS.values()
                if earlier.finding_id in ids or (is_fault and (*group, earlier.topic) in topics):
                    rows.setdefault((earlier.finding_id, earlier.kind), (group, earlier))
    return grouped(rows.values())


def ended_problems(history: ReportHistory, previous: PublishedRun | None) -> EndedProblems:
    """The problems that counted in one of the ``NIGHTS`` published dates before the run before, and
    not in that: by group, topic and kind when each was last seen.
    """
    ended: EndedProblems = {}
    there: set[tuple[str, ...]] = set()
    run = previous
    for _ in range(NIGHTS + 1):
        if run is None:
            break
        try:
            rows = history.rows(run, PROBLEMS.name, _COUNTED, [*_KEY, "last_seen"])
        except (DamagedError, OSError) as error:
            _LOGGER.warning("%s: nothing is known to have returned since", error)
            break
        for row in rows:
            key = tuple(row[name] for name in _KEY)
            if run is previous:
                there.add(key)
            elif key not in there:
                cluster, group, topic, kind = key
                ended.setdefault((cluster, group), {}).setdefault((topic, kind), row["last_seen"])
        run = history.before(run.date)
    return ended


def _lasting(history: ReportHistory, previous: PublishedRun) -> _EarlierRows:
    """The lasting findings in the tables of a run, as the next run compares them."""
    rows: _EarlierRows = {}
    for name in GRADED_TABLES:
        for row in history.rows(previous, name, _OPEN):
            place = {"kind": row.get("fault"), "broker_name": "", "queue_id": -1}
            where = place if name == GROUP_FAULTS.name else {"kind": QUEUE_FINDINGS[name]}
            # A stall and a fault have no causes.
            values = {**row, "causes": tuple(row.get("causes") or ()), **where}
            finding = EarlierFinding(**{field: values[field] for field in EarlierFinding._fields})
            key = (finding.finding_id, finding.kind)
            if key not in rows or rows[key][1].last_seen < finding.last_seen:
                rows[key] = (row["cluster"], row["consumer_group"]), finding
    return rows


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
    former = written.read(FORMER_FINDINGS.name, [*PLACE, "status"]).to_pylist()
    # Groups with findings that are open as not audited.
    known = {
        (row["cluster"], row["consumer_group"]) for row in former if row["status"] == NOT_AUDITED
    }
    try:
        known |= _groups(history.rows(previous, GROUP_HEALTH.name, {}, _OF_GROUPS))
    except (DamagedError, OSError) as error:
        _LOGGER.warning("%s: no group is compared with that run", error)
    asked = {
        kind: {
            masking.mask(cluster): set(map(masking.mask, names))
            for cluster, names in clusters.items()
        }
        for kind, clusters in witnesses.items()
    }
    before: Witnesses = previous.summary.get("witnesses", {})
    there = {cluster for cluster, _ in seen}.union(*asked.values())
    lost = grouped(sorted(known - seen))
    clusters = set(lost).union(*(before.get(kind, ()) for kind in asked))
    for cluster in sorted(clusters - there):
        yield Gap(CLUSTER_GONE, Text("cluster {cluster} is no longer in any dump", cluster=cluster))
    for cluster in sorted(clusters & there):
        (old_brokers, old_nameservers), (new_brokers, new_nameservers) = (
            [set(run_witnesses.get(kind, {}).get(cluster, ())) for kind in (BROKERS, NAMESERVERS)]
            for run_witnesses in (before, asked)
        )
        groups, brokers = lost.get(cluster, []), sorted(old_brokers - new_brokers)
        nameservers = sorted(old_nameservers - new_nameservers)
        if len(new_nameservers) >= len(old_nameservers):
            nameservers = []
        for kind, what, absent in (
            (GROUP_GONE, count(len(groups), "group"), groups),
            (BROKER_GONE, count(len(brokers), "broker"), brokers),
            (NAMESERVER_GONE, count(len(nameservers), "nameserver"), nameservers),
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

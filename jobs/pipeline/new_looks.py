"""Findings of a published run, and the audit of newer snapshots -> what these show of each.

The audit has judged what is there. That something is not there is worth no more than who looked:
lists, routes, offsets and running infos of the group are taken from the snapshots themselves.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rebalance_core.descriptions import EXPRESSION_MISMATCH
from rebalance_core.english import MOST_NAMES, named_broker, names
from rebalance_core.findings import AUDITED, DUPLICATE, NOT_SUBSCRIBED, ORPHANED
from rebalance_core.grouping import grouped
from rebalance_core.texts import Text

from ..config.masking import Masking
from ..config.settings import Settings
from ..config.window import Window
from ..declared import kinds
from ..declared.coverage import is_complete
from ..declared.dossier import Dossier
from ..declared.instants import Instant, to_instant
from ..dumps.reading import last_group_configs
from ..engines.files import list_local_files, slices_of
from ..engines.local import LocalEngine
from ..judge.observe.routes import queues_of, readable
from ..judge.result.rows import BY_OFFSETS
from ..languages.translated_rows import TEXTS, with_texts
from ..publish.earlier import BROKERS, NAMESERVERS
from ..reports.run_findings import FindingRow, counted_rows, read_rows
from ..reports.tables import Place, Tables, by_place
from ..reports.words import in_words
from ..schemas import NOT_ONLINE, RUNNING_INFO
from ..storage import Location, PublishedRun, Snapshots
from ..verdict.check_answers import (
    Lack,
    NewLook,
    OffsetsSeen,
    OtherFault,
    kind_in_words,
)
from ..verdict.gaps import OF_ROUNDS, Gap
from .audit import fold_pieces
from .group_audit import read_dossiers_of
from .inputs import Inputs

#: Kinds that running infos alone show (docs/collect), as findings or as causes; those that they
#: show where no heartbeat came; and by offsets, besides what ``judge/result/rows.py`` has.
_BY_RUNNING_INFOS = frozenset(
    {
        kinds.QUEUE_NOT_HELD,
        kinds.ALLOCATES_OTHERWISE,
        kinds.CLIENT_NOT_ANSWERING,
        "STRATEGY_MISMATCH",
    }
)
_BY_SUBSCRIPTIONS = frozenset({EXPRESSION_MISMATCH, "SUBSCRIPTION_MISMATCH"})
_BY_OFFSETS = BY_OFFSETS | {kinds.STALLED, kinds.UNLISTED_CONSUMER}
_ROUTE_DIVERGENCE = "ROUTE_DIVERGENCE"
_HEALTH = (
    *("coverage", "reason", "queues", "subscription_source"),
    *("unaudited_coverage", "unaudited_until", TEXTS),
)


def is_deleted(
    dumps: Sequence[str],
    settings: Settings,
    dossier: Dossier | None,
    last: PublishedRun,
    findings: Sequence[FindingRow],
) -> bool:
    """True if no broker of the cluster has a configuration of the group any more, or lists anybody.

    ``last``: the run that has the findings: the brokers that it asked have to say so, too.
    """
    (cluster, group, _), seen = findings[0].place, max(finding.last_seen for finding in findings)
    if dossier is not None and dossier.last_listed is not None and not dossier.is_offline:
        return False
    files = list_local_files(dumps) or []
    configs = last_group_configs(slices_of(files), settings.bounds, cluster)
    brokers = witnesses_before(last, BROKERS, cluster)
    brokers.update(name for (name, _), *_ in (dossier.polls if dossier else ()))
    return (
        bool(configs)
        and brokers <= configs.keys()
        and all(
            group_configs.time > seen
            and group_configs.groups is not None
            and group not in group_configs.groups
            for group_configs in configs.values()
        )
    )


def witnesses_before(last: PublishedRun, kind: str, cluster: str) -> set[str]:
    """The brokers, or the nameservers, that a run asked in a cluster."""
    return {*last.summary.get("witnesses", {}).get(kind, {}).get(cluster, ())}


def read_dossiers(
    snapshots: Location, settings: Settings, window: Window, group: str
) -> dict[str, Dossier]:
    """All that the snapshots have of a group, by cluster."""
    inputs = Inputs(Snapshots.open(snapshots), settings, in_driver=True)
    with LocalEngine() as engine:
        pieces, cutting = inputs.cut(engine, window, group)
        folded = fold_pieces(engine, pieces, cutting)
        found, _ = read_dossiers_of(list(engine.collect(folded.pieces)))
    return {dossier.cluster: dossier for dossier in found if dossier.consumer_group == group}


@dataclass(frozen=True)
class JudgedPlaces:
    """The rows of one run at some places: its findings, and by place its row of health."""

    rows: Sequence[FindingRow]
    health: Mapping[Place, Mapping[str, Any]]

    @classmethod
    def of(cls, tables: Tables, places: Collection[Place]) -> "JudgedPlaces":
        """Reads them."""
        health = by_place(tables, "group_health", _HEALTH, places)
        health_by_place = {place: with_texts(rows[0]) for place, rows in health.items()}
        return cls(list(read_rows(tables, places)), health_by_place)

    @cached_property
    def lasting(self) -> frozenset[str]:
        """The ids of what lasts in it, known issues among them."""
        return frozenset(row.finding_id for row in self.rows if row.lasts)


def last_episodes(rows: Iterable[FindingRow]) -> list[FindingRow]:
    """The last episode of each finding."""
    every = grouped((row.finding_id, row) for row in rows)
    return [max(episodes, key=lambda row: row.last_seen) for episodes in every.values()]


@dataclass(frozen=True)
class Comparison:
    """The run that has the findings, ``published`` and its rows, and that of the newer snapshots.

    ``asked``: the ids of all findings that are asked about. ``dossier``: what the newer snapshots
    have of the group; None: nothing. ``lacks``: the reasons why not all of these were read.
    """

    published: PublishedRun
    before: JudgedPlaces
    after: JudgedPlaces
    asked: Collection[str]
    dossier: Dossier | None
    gaps: Sequence[Gap]
    masking: Masking
    lacks: Sequence[Lack] = ()

    def look_at(self, finding: FindingRow) -> NewLook:
        """All that the newer snapshots show of a finding."""
        dossier = self.dossier or Dossier(finding.place.cluster, finding.place.consumer_group)
        rows = [row for row in self.before.rows if row.finding_id == finding.finding_id]
        causes = frozenset({finding.kind}).union(*(row.causes for row in rows))
        source = self.before.health.get(finding.place, {}).get("subscription_source")
        by_infos = (
            any(row.is_held_alone for row in rows)
            or not causes.isdisjoint(_BY_RUNNING_INFOS)
            or (source == RUNNING_INFO and not causes.isdisjoint(_BY_SUBSCRIPTIONS))
        )
        offsets = list(_offsets(dossier, finding)) if finding.kind in _BY_OFFSETS else None
        left = self._left(finding, dossier)
        return NewLook(
            sightings=[row for row in self.after.rows if row.finding_id == finding.finding_id],
            witnesses=dict(_witnesses(dossier, offsets if not left else None)),
            members=self._members(dossier) if by_infos and not left else None,
            offsets=offsets,
            lacks=[*self.lacks, *self._find_lacks(finding, rows, dossier)],
            left=left,
            others=[*self._others(finding.place, causes)],
        )

    def _find_lacks(
        self, finding: FindingRow, rows: Sequence[FindingRow], dossier: Dossier
    ) -> Iterator[Lack]:
        for gap in self.gaps:
            is_of_cluster = gap.text.values.get("cluster") in (None, finding.place.cluster)
            is_of_group = gap.text.values.get("group") in (None, finding.place.consumer_group)
            if is_of_cluster and is_of_group and gap.kind not in OF_ROUNDS:
                until = gap.text.values.get("until")
                yield Lack(gap.text, until.values["at"] if isinstance(until, Text) else None)
        health = self.after.health.get(finding.place, {})
        if not dossier.polls:
            yield Lack(Text("no broker was asked about the group"))
        elif not health and (dossier.last_listed is None or dossier.is_offline):
            yield Lack(Text("the group has no member, and nothing else shows the topic"))
        elif health and not is_complete(health["coverage"]):
            coverage = in_words(health["coverage"])
            template = "not audited ({coverage}), {reason}"
            yield Lack(Text(template, coverage=coverage, reason=health["reason"]))
        elif health and health["unaudited_until"] is not None:
            coverage = in_words(health["unaudited_coverage"])
            reason = Text("not audited for some time ({coverage})", coverage=coverage)
            yield Lack(reason, to_instant(health["unaudited_until"]))
        nameservers = witnesses_before(self.published, NAMESERVERS, finding.place.cluster)
        is_of_route = _ROUTE_DIVERGENCE in {finding.kind}.union(*(row.causes for row in rows))
        if is_of_route and len(dossier.nameservers) < len(nameservers):
            lost = names(sorted(nameservers - dossier.nameservers), MOST_NAMES)
            yield Lack(Text("no route came from {nameservers}", nameservers=lost))
        if finding.kind == kinds.QUEUES_LEFT_ROUTE:
            # Snapshots that begin later do not show which queues were there.
            brokers = {name for row in rows for name in row.broker_names}
            routed = {name for name, _ in _routed(dossier, finding.place.topic)}
            queues = self.before.health.get(finding.place, {}).get("queues") or 0
            if brokers - routed or health.get("queues", 0) <= queues:
                yield Lack(Text("the routes do not show that the queues are back"))

    def _left(self, finding: FindingRow, dossier: Dossier) -> str | None:
        """The reason why there is nothing any more that the finding could be of."""
        health = self.after.health.get(finding.place, {})
        coverage = health.get("coverage")
        has_members = dossier.last_listed is not None and not dossier.is_offline
        before = self.before.health.get(finding.place, {}).get("coverage")
        if has_members and coverage in (None, NOT_SUBSCRIBED) and before != NOT_SUBSCRIBED:
            return Text("no member subscribes to the topic any more")
        routed = _routed(dossier, finding.place.topic)
        if finding.queue is not None and routed and finding.queue not in routed:
            return Text("the queue is not in the topic's route any more")
        is_divided = finding.kind in (ORPHANED, DUPLICATE)
        if is_divided and before == AUDITED != coverage and is_complete(coverage or ""):
            reason: str = health["reason"]
            return reason
        return None

    def _members(self, dossier: Dossier) -> dict[str, list[Instant]]:
        """The client ids that are listed at the end, with the snapshots of their running infos."""
        listed: set[str] = set()
        for runs in grouped((poll.broker, poll) for poll in dossier.polls).values():
            lists = [poll for poll in runs if _is_list(dossier, poll.answer)]
            last = max(lists, key=lambda poll: poll.times[-1], default=None)
            if last is not None and last.answer in dossier.list_members:
                listed.update(dossier.list_members[last.answer]().client_ids)
        answered = grouped(
            (run.client_id, snapshot or collected)
            for run in dossier.clients
            if run.source == RUNNING_INFO and run.error_code is None
            for snapshot, collected in run.times
        )
        mask = self.masking.mask
        return {mask(name): sorted(answered.get(name, ())) for name in sorted(listed)}

    def _others(self, place: Place, causes: frozenset[str]) -> Iterator[OtherFault]:
        """Faults that go on at the place and were not asked about, but for what was there before of
        other causes.
        """
        there = [
            row
            for row in self.after.rows
            if row.place == place and row.ongoing and row.finding_id not in self.asked
        ]
        counted = [
            counted_row
            for counted_row in counted_rows(there)
            if counted_row.finding_id not in self.before.lasting
            or not causes.isdisjoint({counted_row.kind, *counted_row.causes})
        ]
        begun = [
            row
            for row in there
            if not row.lasts
            and row.known_issue is None
            and not kinds.kind_of(row.kind).passes
            and row.finding_id not in self.before.lasting
        ]
        for rows, lasts in ((counted, True), (begun, False)):
            for kind, rows_of_kind in grouped((row.kind, row) for row in rows).items():
                first = min(row.first_seen for row in rows_of_kind)
                words = kind_in_words(kind, (row.queue for row in rows_of_kind))
                yield OtherFault(words, first, lasts)


def _is_list(dossier: Dossier, answer: str) -> bool:
    """True if an answer says who the members are."""
    return answer == NOT_ONLINE or answer in dossier.list_members


def _witnesses(
    dossier: Dossier, offsets: Sequence[OffsetsSeen] | None
) -> Iterator[tuple[str, Sequence[Instant]]]:
    """The snapshots of each broker's lists, and of the offsets where these decide."""
    runs = (poll for poll in dossier.polls if _is_list(dossier, poll.answer))
    for broker, broker_runs in grouped((run.broker, run) for run in runs).items():
        yield named_broker(*broker), sorted({time for poll in broker_runs for time in poll.times})
    if offsets:
        yield "offsets", sorted({time for offset in offsets for time in offset.times})


def _offsets(dossier: Dossier, finding: FindingRow) -> Iterator[OffsetsSeen]:
    """The offsets of the queue; of a fault those of all queues of its topic."""
    for offsets in dossier.offsets.get(finding.place.topic, ()):
        is_asked = finding.queue in (None, (offsets.broker_name, offsets.queue_id))
        if is_asked and offsets.times.size:
            columns = offsets.times, offsets.consumer_offsets, offsets.waiting
            yield OffsetsSeen(*(column.tolist() for column in columns))


def _routed(dossier: Dossier, topic: str) -> set[tuple[str, int]]:
    """The queues in the last route of any nameserver."""
    runs = grouped(
        (route_run.namesrv_addr, route_run) for route_run in dossier.routes.get(topic, ())
    )
    last = (max(runs_of_one, key=lambda run: run.times[-1]) for runs_of_one in runs.values())
    return {queue for run in last for queue in queues_of(readable(run.brokers))}

"""A shard of groups: pieces of runs -> dossiers -> situations -> report tables."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeAlias

import pyarrow as pa

from rebalance_core import StrategyRules
from rebalance_core.grouping import grouped

from ..config.terms import Terms
from ..declared.dossier import Dossier, EarlierFinding
from ..engines.pieces import (
    FOR_ALL,
    Piece,
    all_values,
    in_parts,
    pack_rows,
    pack_value,
    shard_of,
    unpack_value,
)
from ..fold.dossiers import make_dossiers
from ..fold.kernel import runs_of
from ..fold.runs import Records
from ..fold.slice_facts import LISTED
from ..judge.history import judge
from ..judge.observe.arrow_tables import Row, to_table
from ..judge.observe.core_verdict import Verdict, rows_of_shares, shares_of
from ..judge.observe.evaluation import (
    Failure,
    SeenState,
    SituationRow,
    Verdicts,
    at_once,
    evaluate,
    evaluate_one,
    from_row,
    rules_of,
    seen_states,
    to_row,
)
from ..judge.observe.event_times import times_of_group
from ..judge.observe.situations import Situations, find_situations
from ..judge.result.rows import rows_of_failed
from ..judge.rules.broker_identities import by_identity
from ..judge.rules.case import Case
from ..publish.earlier import EndedProblems
from ..schemas import ALLOCATIONS, REPORT_TABLES
from .gathered import FAILED, REASON, TIMES, TimesShown

#: The piece with the open findings of the run before, of a shard.
EARLIER = "earlier"

_TABLES = {table.name: table for table in REPORT_TABLES}
#: The number of rows of tables that are made before they leave a shard.
_ROWS_AT_ONCE = 20_000


@dataclass(frozen=True)
class Shard:
    """The groups of a shard with their situations, or the failure to find them; by id the lists
    that these name; and what the groups show of their times.
    """

    number: int
    groups: list[tuple[Dossier, Situations | Failure]]
    members: Mapping[str, Records]
    times: TimesShown = field(default_factory=Counter)

    def __reduce__(self) -> tuple[Any, ...]:
        # The lists are for the situations alone, which have theirs with them.
        return Shard, (self.number, self.groups, {}, self.times)


#: The rows of a group in every report table.
_GroupRows: TypeAlias = Mapping[str, Sequence[Row]]


def read_dossiers_of(pieces: Sequence[Piece]) -> tuple[list[Dossier], Mapping[str, Records]]:
    """The dossiers of a shard's pieces, and by id the lists that brokers gave."""
    runs = runs_of(pieces)
    return make_dossiers(runs), runs.lists.records


def earlier_pieces(
    earlier: Mapping[tuple[str, str], Sequence[EarlierFinding]],
    ended: EndedProblems,
    shards: int,
) -> Iterator[Piece]:
    """Pieces of what was open in the run before, and what was over, by group, for its shard."""
    groups_by_shard = grouped(
        (shard_of(group[1], shards), (group, earlier.get(group, ()), ended.get(group, {})))
        for group in earlier.keys() | ended.keys()
    )
    return (pack_value(shard, EARLIER, groups) for shard, groups in groups_by_shard.items())


@dataclass(frozen=True)
class GroupAudit:
    """The audit of a shard of groups: ``engines.engine.Work``."""

    terms: Terms
    rules: StrategyRules

    def find_groups(self, pieces: Sequence[Piece]) -> Shard:
        """The groups with their situations, those among them that the run before alone knows."""
        found, members = read_dossiers_of(pieces)
        dossiers = {
            (dossier.cluster, dossier.consumer_group): by_identity(dossier)
            for dossier in found
            if dossier.cluster not in self.terms.lost_clusters
        }
        for shard_groups in all_values(pieces, EARLIER):
            for group, earlier, ended in shard_groups:
                if earlier:
                    dossiers.setdefault(group, Dossier(*group)).earlier = list(earlier)
                if group in dossiers:
                    dossiers[group].ended = ended
        for same_name in grouped(
            (dossier.consumer_group, dossier) for dossier in dossiers.values()
        ).values():
            several = same_name if len(same_name) > 1 else []
            online = [dossier for dossier in several if not dossier.is_offline]
            for dossier in several:
                # Groups of one name at different nameservers have nothing to do with each other.
                dossier.elsewhere = {
                    other.cluster: last
                    for other in online
                    if other is not dossier
                    and not dossier.nameservers.isdisjoint(other.nameservers)
                    and (last := other.last_listed)
                }
        # Lists that come by ids are those of a collector.
        by_rows = any(piece.kind == LISTED for piece in pieces)
        shown: TimesShown = Counter()
        situations = [self._situations(dossier, by_rows, shown) for dossier in dossiers.values()]
        groups = list(zip(dossiers.values(), situations, strict=True))
        return Shard(pieces[0].shard, groups, members, shown)

    def _situations(
        self, dossier: Dossier, by_rows: bool, shown: TimesShown
    ) -> Situations | Failure:
        """The situations of a group; what it shows of its times is counted."""
        try:
            times = times_of_group(dossier) if by_rows else None
            if times is not None:
                shown[dossier.cluster, times] += 1
                if times.are_events:
                    return Failure(dossier.cluster, dossier.consumer_group, REASON, "")
            return find_situations(dossier, self.terms)
        except Exception as error:
            return Failure.of(dossier.cluster, dossier.consumer_group, error)

    def situations(self, groups: Shard) -> Iterator[SeenState]:
        """Each distinct situation of the groups."""
        distinct = (
            situations.distinct().values()
            for _, situations in groups.groups
            if isinstance(situations, Situations)
        )
        return seen_states(chain.from_iterable(distinct), groups.members)

    def evaluate(self, situations: Iterable[SeenState]) -> Iterator[Verdicts]:
        """The core's verdicts, in parts of about equal work."""
        return (evaluate(some, self.rules) for some in at_once(situations))

    def to_row(self, situation: SeenState) -> SituationRow:
        """The situation as a row."""
        try:
            return to_row(situation, self.rules)
        except Exception as error:
            return to_row(SeenState.failed(situation[:4], error), self.rules)

    def recompute(self, row: Sequence[Any]) -> tuple[list[Any], bytes]:
        """The shares of the situation of a row, and the verdict, packed: see ``evaluate_one``.

        Where the row has a strategy, all members use it.
        """
        situation = SituationRow._make(row)
        rules = self.rules
        try:
            seen, rules = from_row(situation), rules_of(situation, self.rules)
        except Exception as error:
            seen = SeenState.failed(situation[:4], error)
        verdict, allocations = evaluate_one(seen, rules)
        return shares_of(allocations), pack_value(0, "", verdict).data

    def verdicts(self, rows: pa.RecordBatch) -> Verdicts:
        """The verdicts of rows."""
        recomputed: Any = rows.column("recomputed")
        ids: Any = rows.column("state_id")
        shares, packed = recomputed.flatten()
        return Verdicts(
            ids.to_pylist(),
            list(map(unpack_value, packed.to_pylist())),
            rows_of_shares(rows, shares),
        )

    def judge(self, groups: Shard, verdicts: Iterable[Verdicts]) -> Iterator[Piece]:
        """The rows of all report tables but ``quarantine``, and the groups on which it failed."""
        evaluated: dict[str, Verdict] = {}
        failures: dict[tuple[str, str], Failure] = {}
        for some in verdicts:
            evaluated |= some.by_id()
            failures |= {failure[:2]: failure for failure in some.failed()}
            allocations = some.allocations.masked(self.terms.masking)
            yield from pack_rows(groups.number, ALLOCATIONS.name, allocations)

        def judged() -> Iterator[tuple[Dossier, _GroupRows]]:
            for dossier, situations in groups.groups:
                group = dossier.cluster, dossier.consumer_group
                try:
                    if isinstance(situations, Failure):
                        failures[group] = situations
                    elif group not in failures:
                        case = Case(dossier, situations, evaluated, self.terms)
                        yield dossier, judge(case)
                        continue
                except Exception as error:
                    failures[group] = Failure.of(*group, error)
                yield dossier, rows_of_failed(dossier, failures[group], self.terms)

        for part in in_parts(
            judged(), _ROWS_AT_ONCE, lambda group: sum(map(len, group[1].values()))
        ):
            for name, rows in self._tables(part, failures):
                yield from pack_rows(groups.number, name, rows)
            part.clear()
        for kind, value in ((FAILED, list(failures.values())), (TIMES, groups.times)):
            if value:
                yield pack_value(FOR_ALL, kind, value)

    def _tables(
        self,
        groups: Sequence[tuple[Dossier, _GroupRows]],
        failures: dict[tuple[str, str], Failure],
    ) -> list[tuple[str, pa.Table]]:
        """The rows of some groups as tables. What is no row of its table costs its group alone."""
        mask = self.terms.masking.mask_all
        rows = (
            # The last thing that is done: until here the order of the true ids counts.
            (name, mask(row))
            for _, tables in groups
            for name, table_rows in tables.items()
            for row in table_rows
        )
        try:
            return [
                (name, to_table(_TABLES[name], table_rows))
                for some in in_parts(rows, _ROWS_AT_ONCE)
                for name, table_rows in grouped(some).items()
            ]
        except Exception as error:
            (dossier, _), *others = groups
            if others:
                return [table for one in groups for table in self._tables([one], failures)]
            failure = Failure.of(dossier.cluster, dossier.consumer_group, error)
            if failures.setdefault(failure[:2], failure) is not failure:
                raise  # the rows that say so
            return self._tables([(dossier, rows_of_failed(dossier, failure, self.terms))], failures)

"""A shard of groups: pieces of runs -> dossiers -> situations -> report tables."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from rebalance_core import StrategyRules

from ..fold.dossiers import make_dossiers
from ..fold.kernel import runs_of
from ..fold.runs import Records
from ..judge.dossier import Dossier, EarlierFinding
from ..judge.evaluated import Evaluated
from ..judge.evaluation import Asked, Question, Verdicts, answer, questions
from ..judge.history import judge
from ..judge.situations import Situations, find_situations
from ..judge.tables import Row, to_table
from ..judge.terms import Terms
from ..pieces import Piece, all_values, pack_rows, pack_value, shard_of
from ..schemas import ALLOCATIONS, REPORT_TABLES

#: The piece with the open findings of the run before, of a shard.
EARLIER = "earlier"

_TABLES = {table.name: table for table in REPORT_TABLES}
#: So many rows of a table are made before they leave a shard.
_ROWS_AT_ONCE = 20_000


@dataclass
class OfGroup:
    """A group's dossier, and its situations."""

    dossier: Dossier
    situations: Situations


@dataclass(frozen=True)
class Shard:
    """The groups of a shard, and by id the lists that their situations name."""

    groups: list[OfGroup]
    members: Mapping[str, Records]


def read_shard(pieces: Sequence[Piece], terms: Terms) -> Shard:
    """The groups of a shard's pieces, those among them of which the run before alone knows."""
    dossiers, members = read_dossiers_of(pieces)
    groups = [OfGroup(dossier, find_situations(dossier, terms)) for dossier in dossiers]
    by_name = {(each.dossier.cluster, each.dossier.consumer_group): each for each in groups}
    for of_shard in all_values(pieces, EARLIER):
        for group, found in of_shard.items():
            if group not in by_name:
                by_name[group] = OfGroup(Dossier(*group), Situations({}))
            by_name[group].dossier.earlier = list(found)
    return Shard(list(by_name.values()), members)


def read_dossiers_of(pieces: Sequence[Piece]) -> tuple[list[Dossier], Mapping[str, Records]]:
    """The dossiers of a shard's pieces, and by id the lists that brokers gave."""
    runs = runs_of(pieces)
    return make_dossiers(runs), runs.lists.records


def earlier_pieces(
    earlier: Mapping[tuple[str, str], Sequence[EarlierFinding]], shards: int
) -> Iterator[Piece]:
    """The open findings of the run before, by group, each for its shard."""
    of_shards: dict[int, dict[tuple[str, str], Sequence[EarlierFinding]]] = defaultdict(dict)
    for group, found in earlier.items():
        of_shards[shard_of(*group, shards)][group] = found
    return (pack_value(shard, EARLIER, groups) for shard, groups in of_shards.items())


@dataclass(frozen=True)
class GroupAudit:
    """The audit of a shard of groups: ``engines.engine.Work``."""

    terms: Terms
    rules: StrategyRules
    shards: int

    def begin(self, pieces: Sequence[Piece]) -> Shard:
        """The groups with their situations."""
        return read_shard(pieces, self.terms)

    def questions(self, begun: Shard) -> Iterable[Question]:
        """The distinct situations of all groups."""
        asked = (
            Asked(group.dossier.cluster, group.dossier.consumer_group, situation)
            for group in begun.groups
            for situation in group.situations.distinct().values()
        )
        return questions(asked, begun.members)

    def answer(self, question: Question) -> Verdicts:
        """The core's verdicts."""
        return answer(question, self.rules)

    def end(self, begun: Shard, answers: Iterable[Verdicts]) -> Iterator[Piece]:
        """The rows of all report tables but ``quarantine``."""
        tables = _Rows()
        evaluated: dict[str, Evaluated] = {}
        for verdicts in answers:
            evaluated |= verdicts.by_id()
            tables.add_table(ALLOCATIONS.name, verdicts.allocations.masked(self.terms.masking))
            if tables.number >= _ROWS_AT_ONCE:
                yield from tables.take(self._shard_of(begun))
        for group in begun.groups:
            of_group = {each: evaluated[each] for each in group.situations.distinct()}
            judged = judge(group.dossier, group.situations, of_group, self.terms)
            for name, rows in judged.items():
                # The last thing that is done: until here the order of the true ids counts.
                tables.add(name, self.terms.masking.mask_all(rows))
            if tables.number >= _ROWS_AT_ONCE:
                yield from tables.take(self._shard_of(begun))
        if begun.groups:
            yield from tables.take(self._shard_of(begun))

    def _shard_of(self, begun: Shard) -> int:
        dossier = begun.groups[0].dossier
        return shard_of(dossier.cluster, dossier.consumer_group, self.shards)


class _Rows:
    """Rows of report tables that did not leave the shard yet."""

    def __init__(self) -> None:
        self._rows: dict[str, list[Row]] = defaultdict(list)
        self._tables: dict[str, list[pa.Table]] = defaultdict(list)
        self.number = 0

    def add(self, name: str, rows: Sequence[Row]) -> None:
        self._rows[name] += rows
        self.number += len(rows)

    def add_table(self, name: str, rows: pa.Table) -> None:
        self._tables[name].append(rows)
        self.number += rows.num_rows

    def take(self, shard: int) -> Iterator[Piece]:
        for name, rows in self._rows.items():
            self._tables[name].append(to_table(_TABLES[name], rows))
        for name, tables in self._tables.items():
            yield from pack_rows(shard, name, pa.concat_tables(tables))
        self._rows.clear()
        self._tables.clear()
        self.number = 0

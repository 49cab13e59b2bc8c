"""What goes to another process comes there as it was."""

from __future__ import annotations

import pickle
import re
from itertools import chain
from typing import Any

import pyarrow as pa
import pytest

from jobs.config.masking import Masking
from jobs.config.terms import KnownIssueTerms, Terms
from jobs.config.window import Window
from jobs.declared.dossier import EarlierFinding
from jobs.engines.batches import SITUATION
from jobs.engines.pieces import in_parts, pack_value, unpack_value
from jobs.fold.kernel import Cutting, runs_of
from jobs.fold.slices import TableStep
from jobs.judge.observe.core_verdict import SHARES
from jobs.judge.observe.evaluation import Failure, SeenState, Verdicts, evaluate, seen_states
from jobs.judge.observe.situations import find_situations
from jobs.languages.language import language
from jobs.pipeline.group_audit import GroupAudit, earlier_pieces
from rebalance_core import StrategyRule, StrategyRules
from rebalance_core.texts import Text
from tests.fold.fleets import EXPIRY_SECONDS, START, fleet
from tests.support.folding import FoldedShards, fold_slices, whole

ISSUE = KnownIssueTerms("OPS-1", (("groups", re.compile("G.*")),), None, frozenset({"ORPHANED"}))
TERMS = Terms(
    persistence_seconds=60,
    heartbeat_expiry_seconds=EXPIRY_SECONDS,
    route_max_age_seconds=90,
    warning_probability=0.1,
    critical_probability=0.5,
    masking=Masking(key=b"of this test"),
    topic_queues=100_000,
    known_issues=(ISSUE,),
)
RULES = StrategyRules([StrategyRule(groups="G1", name="AVG_BY_CIRCLE", params={})], "AVG")


def travelled(value: Any) -> Any:
    """As a piece, and as an argument of a task."""
    return unpack_value(pack_value(0, "value", pickle.loads(pickle.dumps(value))).data)  # noqa: S301


@pytest.fixture(scope="module")
def folded() -> FoldedShards:
    cutting = Cutting(1, EXPIRY_SECONDS)
    return fold_slices(whole(fleet(4, groups=4), cutting), cutting)


@pytest.fixture(scope="module")
def seen(folded: FoldedShards) -> list[SeenState]:
    """The situations of a fleet in which everything happens."""
    records = runs_of(folded.pieces[0]).lists.records
    situations = [
        situation
        for dossier in folded.all()
        for situation in find_situations(dossier, TERMS).distinct().values()
    ]
    return list(seen_states(situations, records))


def texts_of(verdicts: Verdicts) -> list[Text]:
    every = [each for each in verdicts.verdicts if not isinstance(each, Failure)]
    found = [each.verdict.reason for each in every]
    for each in every:
        for of_group in (*each.faults, *each.verdict.stacked):
            found += [of_group.evidence, of_group.remedy]
    return [text for text in found if isinstance(text, Text)]


def test_verdicts_keep_what_their_texts_are_made_of(seen: list[SeenState]) -> None:
    chinese = language("zh")
    number = 0
    for some in in_parts(seen, 7):
        here = evaluate(some, RULES)
        there = travelled(here)
        assert there.verdicts == here.verdicts
        texts, came = texts_of(here), texts_of(there)
        assert [each.parts() for each in came] == [each.parts() for each in texts]
        assert [chinese.of(each) for each in came] == [chinese.of(each) for each in texts]
        assert any(chinese.of(each) != each for each in came) or not came
        number += len(texts)
        wanted, by_id = here.by_id(), there.by_id()
        assert by_id.keys() == wanted.keys()
        for state_id, each in by_id.items():
            assert each.allocations() == wanted[state_id].allocations()
    assert number > 50


def by_rows(work: GroupAudit, states: list[SeenState]) -> Verdicts:
    """The verdicts by way of rows, as an engine that sends rows has them."""
    rows = [work.to_row(each) for each in states]
    recomputed = [work.recompute(each) for each in rows]
    columns = dict(zip(SITUATION.names, zip(*rows, strict=True), strict=True))
    struct = pa.struct({"shares": SHARES, "verdict": pa.binary()})
    schema = SITUATION.append(pa.field("recomputed", struct))
    columns["recomputed"] = [{"shares": s, "verdict": verdict} for s, verdict in recomputed]
    return work.verdicts(pa.RecordBatch.from_pydict(columns, schema))


def test_by_rows_the_verdicts_are_the_same(seen: list[SeenState]) -> None:
    for some in in_parts(seen, 7):
        here, there = evaluate(some, RULES), by_rows(GroupAudit(TERMS, RULES), some)
        assert there.state_ids == here.state_ids
        assert tuple(there.verdicts) == here.verdicts
        assert there.allocations.rows.equals(here.allocations.rows)
        assert there.allocations.ends == here.allocations.ends


def test_the_work_on_a_shard_does_the_same_wherever_it_is_done(folded: FoldedShards) -> None:
    work = GroupAudit(TERMS, RULES)
    before = EarlierFinding("1", "ORPHANED", "T", "b", 0, 1, 2, "CRITICAL", ("GHOST_MEMBER",), 1, 1)
    pieces = [*folded.pieces[0], *earlier_pieces({("c", "G_GONE"): [before]}, {}, 1)]
    made = []
    for each in (work, travelled(work)):
        groups = each.find_groups(pieces)
        parts = in_parts(each.situations(groups), 7)
        verdicts = [*chain.from_iterable(map(each.evaluate, parts))]
        # The groups may have travelled, and have the verdicts in any order.
        made.append(sorted(each.judge(travelled(groups), verdicts)))
        assert sorted(each.judge(groups, verdicts[::-1]))
    assert made[0] == made[1]
    assert {"group_health", "allocations", "group_faults"} <= {piece.kind for piece in made[0]}


def test_the_step_over_slices_is_the_same_wherever_it_is_taken() -> None:
    for step in (
        TableStep(Cutting(3, 130), Window(), 900),
        TableStep(Cutting(3, 130, True, True), Window(START, None, START), 900, group="G'\n"),
    ):
        assert travelled(step) == step

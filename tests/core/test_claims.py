"""Who claims which queue, and how likely a queue has no owner or several."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_core import AllocationError, StrategyRules
from rebalance_core.claims import Claims, compute_claims, count_owners
from rebalance_core.processes import Process
from rebalance_core.state import State
from rebalance_core.strategy_rules import KnownClient
from rebalance_core.views import View
from tests.support.snapshots import queue

RULES = StrategyRules()


def process(client_id: str, strategy: str = "AVG", **overrides) -> Process:
    values = {
        "client_id": client_id,
        "count": 1,
        "subscribed": True,
        "broadcasting": False,
        "strategy": RULES.resolve(KnownClient("G", client_id, strategy)),
    }
    return Process(**values | overrides)


def view(*client_ids: str, queues: int = 4, weight: float = 1.0) -> View:
    return View(tuple(queue(n) for n in range(queues)), client_ids, weight, ("broker-a",))


def claims_of(views: list[View], processes: list[Process]) -> Claims:
    """The claims where no route is another one and every broker has a master."""
    return compute_claims(views, processes, State("G", "T", (), ()))


def taken(claims, of_view: int = 0) -> list[list[int]]:
    """For each process the ids of the queues that it takes under a view."""
    return [
        [each.queue_id for each in claims.taken(of_view, row)]
        for row in range(len(claims.processes))
    ]


def shares(claims) -> list[list[float]]:
    """c, with all its zeros, for processes each of which claims something."""
    return claims.shares_of(np.arange(len(claims.queues)))[1].tolist()


B_APART = process("b", subscribed=False)


@pytest.mark.parametrize(
    ("views", "processes", "taken_by_view", "shared"),
    [
        (
            [view("a", "b")],
            [process("a"), process("b", "AVG_BY_CIRCLE")],
            [[[0, 1], [1, 3]]],
            [[1, 1, 0, 0], [0, 1, 0, 1]],
        ),
        # A member that does not subscribe takes a slot and claims nothing.
        ([view("a", "b")], [process("a"), B_APART], [[[0, 1], []]], None),
        # So does a process whose id is not in the list.
        (
            [view("a", "b", weight=0.5), view("b", weight=0.5)],
            [process("a"), process("b")],
            [[[0, 1], [2, 3]], [[], [0, 1, 2, 3]]],
            [[0.5, 0.5, 0, 0], [0.5, 0.5, 1, 1]],
        ),
        (
            [view("a", "b")],
            [process("a", broadcasting=True), process("b")],
            [[[0, 1, 2, 3], [2, 3]]],
            None,
        ),
        # Views of different queues are put together queue by queue.
        (
            [view("a", "b", queues=2, weight=0.25), view("a", "b", queues=4, weight=0.75)],
            [process("a"), process("b")],
            [[[0], [1]], [[0, 1], [2, 3]]],
            [[1, 0.75, 0, 0], [0, 0.25, 0.75, 0.75]],
        ),
    ],
)
def test_each_process_takes_what_its_strategy_gives_it(views, processes, taken_by_view, shared):
    claims = claims_of(views, processes)
    assert list(claims.queues) == [queue(n) for n in range(4)]
    assert [taken(claims, number) for number in range(len(views))] == taken_by_view
    if shared is not None:
        assert shares(claims) == shared


def test_a_queue_that_is_claimed_under_every_view_is_claimed_for_certain():
    tenths = [view("a", *"bcdefghijk"[:n], queues=1, weight=0.1) for n in range(10)]
    assert sum(each.weight for each in tenths) != 1.0
    assert shares(claims_of(tenths, [process("a")])) == [[1.0]]


def test_where_the_strategy_fails_nobody_is_said_to_claim_anything():
    with pytest.raises(AllocationError, match="mqAll is null or mqAll empty"):
        claims_of([view("a", queues=0)], [process("a")])


# ---------------------------------------------------------------- the number of owners


def draw_all(shares: np.ndarray, counts: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """None and several, by looking at every way in which the processes may draw."""
    single = np.repeat(shares, counts, axis=0)
    number = len(single)
    draws = (np.arange(2**number)[:, None] >> np.arange(number)) & 1
    owners = draws.sum(axis=1)
    by_queue = []
    for column in single.T:
        probability = np.where(draws == 1, column, 1 - column).prod(axis=1)
        by_queue.append((probability[owners == 0].sum(), probability[owners > 1].sum()))
    none, several = np.array(by_queue).reshape(-1, 2).T
    return none, several


_shares = st.one_of(
    st.sampled_from([Fraction(0), Fraction(1)]),
    st.fractions(min_value=0, max_value=1, max_denominator=12),
).map(float)


@st.composite
def _shares_and_counts(draw):
    rows = draw(st.integers(1, 5))
    queues = draw(st.integers(1, 4))
    shares = draw(
        st.lists(st.lists(_shares, min_size=queues, max_size=queues), min_size=rows, max_size=rows)
    )
    counts = draw(st.lists(st.integers(1, 3), min_size=rows, max_size=rows))
    return np.array(shares), counts


@given(_shares_and_counts())
def test_the_number_of_owners_is_what_all_draws_together_give(shares_and_counts):
    owners = count_owners(*shares_and_counts)
    none, several = draw_all(*shares_and_counts)
    np.testing.assert_allclose(owners.none, none, rtol=0, atol=1e-12)
    np.testing.assert_allclose(owners.several, several, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("shares", "counts", "several"),
    [
        # A certain owner leaves the others to chance; two alike that are certain are two owners.
        ([1.0, 0.25, 0.5], [1, 1, 1], 1 - 0.75 * 0.5),
        ([1.0], [2], 1.0),
    ],
)
def test_where_one_owner_is_certain_there_is_one_at_least(shares, counts, several):
    owners = count_owners(np.array(shares)[:, None], counts)
    assert (owners.none.tolist(), owners.several.tolist()) == ([0.0], [several])


def test_of_a_thousand_processes_what_is_unlikely_keeps_its_digits():
    owners = count_owners(np.full((1, 1), 0.25), [1000])
    assert owners.none[0] == pytest.approx(0.75**1000, rel=1e-9)
    assert owners.several[0] == pytest.approx(1.0, abs=1e-12)
    rare = count_owners(np.full((1000, 1), 1e-9), [1] * 1000)
    assert rare.several[0] == pytest.approx(1000 * 999 / 2 * 1e-18, rel=1e-5)


def test_no_probability_leaves_zero_to_one():
    assert count_owners(np.full((1, 1), 1 / 3), [100]).several[0] <= 1.0

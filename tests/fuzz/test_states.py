"""A state of any group: how likely each of its findings is."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tests.support.draws import check_a_random_state


@given(st.integers(0, 2**64))
def test_a_finding_is_as_likely_as_all_the_draws_that_have_it(seed: int) -> None:
    check_a_random_state(Random(seed))  # noqa: S311 - to be repeated

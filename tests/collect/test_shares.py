"""Names that many servers give: each has its share, and none costs the round its time."""

from __future__ import annotations

import time

from jobs.collect.turns import Shares


def test_a_thousand_servers_that_name_too_many_cost_seconds_and_no_honest_name() -> None:
    shares: Shares[tuple[int, int]] = Shares(2_000)
    began = time.process_time()
    for server in range(1_000):
        for number in range(1_000):
            shares.add((server, number), ("C", f"evil{server}:1"))
    assert shares.add((-1, 0), ("C", "honest:1"))
    assert time.process_time() - began < 5
    assert shares.left_out == 1_000_001 - 2_000

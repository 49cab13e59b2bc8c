"""A member that keeps what it had while the others divide the queues anew."""

from __future__ import annotations

import pytest

from tests.cases.small_dumps import MEMBERS, MINUTES, QUEUES, SHARES, asked, holds

FIFTH = "10.0.0.4@4"
#: Of eight queues by AVG: two each of four members; of five members the last two have one each.
OF_FIVE = SHARES | {MEMBERS[3]: QUEUES[6:7], FIFTH: QUEUES[7:]}


def a_fifth_comes(at):
    """From that minute on; the fourth member holds two queues all the time."""
    for minute in MINUTES:
        shares = OF_FIVE if minute >= at else SHARES
        yield from asked(minute, sorted(shares))
        for number, (client_id, share) in enumerate(shares.items()):
            held = SHARES[client_id] if client_id == MEMBERS[3] else share
            yield holds(60 * minute + 5 + number, client_id, held)


@pytest.mark.parametrize(
    ("comes", "evidence", "remedy"),
    [
        # It has what it last had by the computation: it does not divide at all.
        (4, "still have what they had before the last change", f"restart {MEMBERS[3]}: "),
        # It never had its share: it divides in another way.
        (0, "holds queues other than its share", f"make {MEMBERS[3]} divide the queues as"),
    ],
)
def test_who_keeps_what_it_had_is_not_asked_for_its_strategy(audit, comes, evidence, remedy):
    found = audit(a_fifth_comes(comes))
    (fault,) = (each for each in found["group_faults"] if each["persistence"] == "PERSISTENT")
    assert (fault["fault"], fault["client_ids"]) == ("ALLOCATES_OTHERWISE", [MEMBERS[3]])
    (twice,) = found["duplicate_queues"]
    assert (twice["broker_name"], twice["queue_id"]) == ("broker-b", 3)
    assert evidence in fault["evidence"]
    assert fault["remedy"].startswith(remedy)

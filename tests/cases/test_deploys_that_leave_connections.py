"""Members that are killed and deployed again leave their connections in the lists of brokers."""

from __future__ import annotations

import pytest

from tests.cases.small_dumps import BROKERS, members, route

IDS = [f"10.0.0.{number}@app" for number in range(5)]
#: A broker lists a silent connection for so long.
KEPT = 130


def polled(replaced):
    """``replaced``: by member the seconds at which it got a new connection to each broker."""
    for minute in range(50):
        now = 60 * minute
        yield route(now, *BROKERS)
        for place, name in enumerate(BROKERS, start=1):
            listed = [
                (client_id, f"{client_id.split('@')[0]}:4{place}{number:03}")
                for client_id, edges in zip(IDS, replaced, strict=True)
                for number, (begins, ends) in enumerate(
                    zip((-600, *edges), (*edges, 10_000), strict=True)
                )
                if begins <= now + place < ends + KEPT
            ]
            ids, addrs = zip(*listed, strict=True)
            yield members(now + place, name, ids, addrs=addrs)


def deployed(*begins):
    """One member every 30 s, in each deploy."""
    return [[first + 30 * turn for first in begins] for turn in range(len(IDS))]


@pytest.mark.parametrize("begins", [(400, 1100, 2100), (400, 900, 1400), (400, 1000, 1600, 2200)])
def test_deploys_of_all_members_are_no_reconnections(audit, begins):
    """While the old connections are listed nobody knows how many processes there are."""
    faults = {each["fault"] for each in audit(polled(deployed(*begins)))["group_faults"]}
    assert not faults & {"RECONNECTING", "FLAPPING"}


@pytest.mark.parametrize(
    "replaced",
    [
        # Two of five.
        [[400, 1100, 2100], [430, 1130, 2130], [], [], []],
        # All of them, again and again.
        deployed(*range(400, 2800, 400)),
    ],
)
def test_who_reconnects_beside_the_others_or_all_the_time_does(audit, replaced):
    faults = [each["fault"] for each in audit(polled(replaced))["group_faults"]]
    assert faults.count("RECONNECTING") == sum(map(bool, replaced))

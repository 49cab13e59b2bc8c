"""A canary divides in another way, and the topic grows: a queue is nobody's, and then another is.

By hand: of five queues AVG gives 0-1, 2-3 and 4, and AVG_BY_CIRCLE gives the third member 2: 4 is
nobody's. Of seven AVG gives 0-2, 3-4 and 5-6, and AVG_BY_CIRCLE gives it 2 and 5: 6 is nobody's.
"""

from jobs.cli import main
from tests.cases.conftest import written
from tests.cases.small_dumps import AVG, MEMBERS, holds, instant, members, offsets, route

CANARY_AT, GROWS_AT = 6, 15
CIRCLE = AVG.replace("Averagely", "AveragelyByCircle")
BEFORE, CANARY, GROWN = ((0, 1), (2, 3), (4,)), ((0, 1), (2, 3), (2,)), ((0, 1, 2), (3, 4), (2, 5))


def lines():
    for minute in range(30):
        has_grown, is_canary = minute >= GROWS_AT, minute >= CANARY_AT
        yield route(60 * minute, "broker-a", queues=7 if has_grown else 5)
        yield members(60 * minute + 1, "broker-a", MEMBERS[:3])
        read = dict.fromkeys(range(7 if has_grown else 5), (100 * minute + 9, 100 * minute))
        if has_grown:
            read[6] = 100 * (minute - GROWS_AT) + 50, 0
        elif is_canary:
            read[4] = 100 * minute + 9, 600
        yield offsets(60 * minute + 10, "broker-a", read)
        shares = GROWN if has_grown else CANARY if is_canary else BEFORE
        for number, share in enumerate(shares):
            strategy = CIRCLE if number == 2 and is_canary else AVG
            began = 340 if strategy == CIRCLE else -600
            started = str(round(instant(began).timestamp() * 1000))
            yield holds(
                *(60 * minute + 20 + number, MEMBERS[number]),
                [("broker-a", each) for each in share],
                strategy,
                PROP_CONSUMER_START_TIMESTAMP=started,
            )


def test_each_queue_is_nobodys_in_its_time_and_one_is_read_twice_all_the_time(audit):
    found = audit(lines())
    orphans = [(row["queue_id"], row["first_seen"]) for row in found["orphaned_queues"]]
    assert sorted(orphans) == [(4, instant(60 * 7)), (6, instant(60 * GROWS_AT))]
    (twice,) = found["duplicate_queues"]
    assert (twice["queue_id"], twice["ongoing"]) == (2, True)
    assert {row["causes"][0] for row in found["orphaned_queues"]} == {"STRATEGY_MISMATCH"}


def test_a_moment_is_over_since_its_queue_is_read_again_though_the_cause_goes_on(tmp_path, capsys):
    place = ["--group", "G", "--topic", "T", "--at", "2026-11-20T10:10:00"]
    assert main(["explain", "--dumps", str(written(tmp_path, lines())), *place]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Over since 10:14:00, CRITICAL from 2026-11-20 10:07:00 on" in said

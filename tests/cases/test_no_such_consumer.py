"""A process that runs, is listed, and has no consumer of the group any more."""

import pytest

from tests.cases.small_dumps import (
    MEMBERS,
    MINUTES,
    SHARES,
    asked,
    holds,
    in_turn,
    instant,
    of_broker,
)
from tests.support.audited import lasting, queues

NONE_HERE = {"error_code": 1, "error_message": "The Consumer Group <G> not exist in this consumer"}
TIMED_OUT = {"error_code": 207, "error_message": "consumer <G> <10.0.0.3@3> timeout"}


def polled(answer, *, with_offsets=True):
    """From 10:04 on the fourth member answers so, and its queues, b2 and b3, do not move."""

    def read(minute, name):
        now = dict.fromkeys(range(4), in_turn(minute))
        if name == "broker-b":
            now |= dict.fromkeys((2, 3), (100 * minute + 9, 100 * min(minute, 4)))
        return now

    for minute in MINUTES:
        yield from asked(minute, read=read if with_offsets else None)
        for number, (client_id, share) in enumerate(SHARES.items()):
            second = 60 * minute + 20 + number
            if number == 3 and minute >= 4:
                of = {"client_id": client_id}
                yield of_broker("consumer_running_info", second, "broker-a", answer, **of)
            else:
                yield holds(second, client_id, share)


@pytest.mark.parametrize("with_offsets", [True, False])
def test_a_process_without_a_consumer_of_the_group_runs_and_holds_nothing(audit, with_offsets):
    found = audit(polled(NONE_HERE, with_offsets=with_offsets))
    assert queues(lasting(found["orphaned_queues"])) == {("T", "broker-b", 2), ("T", "broker-b", 3)}
    assert found["stalled_queues"] == []
    (fault,) = found["group_faults"]
    assert (fault["fault"], fault["client_ids"]) == ("QUEUE_NOT_HELD", [MEMBERS[3]])
    assert fault["first_seen"] == instant(263)
    assert fault["evidence"].endswith(
        "10.0.0.3@3 (JAVA) runs, but says that it has no consumer of the group any more; "
        "heartbeats of other groups keep it listed"
    )
    assert fault["remedy"].startswith("find in the log why the application shut down its")


def test_a_process_that_does_not_answer_may_hang(audit):
    faults = {row["fault"] for row in audit(polled(TIMED_OUT))["group_faults"]}
    assert faults == {"CLIENT_NOT_ANSWERING", "FROZEN_PROCESS"}

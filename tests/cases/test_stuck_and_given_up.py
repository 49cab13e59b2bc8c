"""A group that consumes nothing of a topic, and then no longer subscribes to it."""

import pytest

from tests.cases.small_dumps import BROKERS, MEMBERS, instant, members, offsets, route


@pytest.mark.parametrize("offsets_end", [12, 16])
def test_a_group_that_was_stuck_before_it_gave_a_topic_up_has_one_fault(audit, offsets_end):
    """At 10:12 no member subscribes to U any more; 500 messages waited in each queue before."""

    def lines():
        for minute in range(30):
            second, written = 60 * minute, 1_000 + 100 * minute
            yield from (route(second, *BROKERS, topic=topic) for topic in "TU")
            for name in BROKERS:
                yield members(second + 1, name, MEMBERS, "TU" if minute < 12 else "T")
                of_queues = {("T", queue): (written, written - 3) for queue in range(4)}
                if minute < offsets_end:
                    of_queues |= {("U", queue): (written, 500) for queue in range(4)}
                yield offsets(second + 10, name, of_queues)

    (fault,) = audit(lines())["group_faults"]
    assert (fault["fault"], fault["topic"], fault["ongoing"]) == ("GROUP_NOT_CONSUMING", "U", True)
    assert fault["first_seen"] == instant(0)

"""A topic that gets fewer queues: what its event says of those that go."""

import pytest

from tests.cases.small_dumps import BROKERS, MINUTES, asked, in_turn, route


def lowered(waiting):
    """At 10:05 broker-b has two read queues in place of four; so many messages wait in the others.

    100 messages a minute come to all others, and are read.
    """

    def read(minute, name):
        left = (1_400, 1_400 - waiting) if name == "broker-b" and minute >= 5 else in_turn(minute)
        return dict.fromkeys((0, 1), in_turn(minute)) | dict.fromkeys((2, 3), left)

    for minute in MINUTES:
        _, *answers = asked(minute, read=read)
        yield route(60 * minute, *BROKERS, queues={"broker-b": 2} if minute >= 5 else 4)
        yield from answers


@pytest.mark.parametrize(
    ("waiting", "lost", "cost"),
    [
        (700, 2, "2 queues lost, 1,400 messages left unread"),
        (0, 0, "1 recovered by 10:06:00, no queue lost"),
    ],
)
def test_the_event_counts_the_queues_that_left_with_unread_messages(audit, waiting, lost, cost):
    found = audit(lowered(waiting))
    (event,) = found["events"]
    assert (event["kind"], event["queues_lost"]) == ("TOPIC_RESIZED", lost)
    assert event["messages_lost"] == 2 * waiting
    assert event["headline"].endswith(f"1 group touched, {cost}")
    left = [each for each in found["group_faults"] if each["fault"] == "QUEUES_LEFT_ROUTE"]
    assert [each["queues_affected"] for each in left] == [2][:lost]

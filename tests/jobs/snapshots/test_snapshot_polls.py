"""records -> broker_polls: which broker gave a list of which group, and why another did not."""

from __future__ import annotations

import json

import pytest
from chispa import assert_df_equality

from jobs.schemas import BROKER_POLLS
from jobs.snapshots.polls import latest_polls, make_broker_polls
from tests.support.snapshots import at, frame, poll_line, poll_row

pytestmark = pytest.mark.spark


def dashboard_error(message: str) -> str:
    return '{"status":-1,"data":null,"errMsg":"' + message + '"}'


def with_body(line: str, body: str) -> str:
    return json.dumps(json.loads(line) | {"body": body})


def test_a_poll_has_the_outcome_that_its_answer_tells_and_the_last_of_a_round_counts(
    spark, records
):
    offline = "CODE: 206  DESC: Not found the consumer group connection"
    failed = "CODE: 1  DESC: timeout"
    actual = make_broker_polls(
        latest_polls(
            records(
                poll_line("a", "b", "b", broker_name="list"),
                poll_line(broker_name="empty list"),
                poll_line(broker_name="offline", error_code=206, error_message="not there"),
                poll_line(broker_name="timeout", error_code=-1, error_message="wait timeout"),
                with_body(poll_line(broker_name="dashboard offline"), dashboard_error(offline)),
                with_body(poll_line(broker_name="dashboard failed"), dashboard_error(failed)),
                poll_line("a", broker_name="again", collected_at=at(3)),
                poll_line(broker_name="again", collected_at=at(1), error_code=1),
                poll_line("a", broker_name="slave", broker_id=1, broker_addr="10.0.0.9:10911"),
            )
        )
    )

    expected = [
        poll_row(broker_name="list", connections=3),
        poll_row(broker_name="empty list", connections=0),
        poll_row(
            broker_name="offline",
            outcome="NOT_ONLINE",
            error_code=206,
            error_message="not there",
            connections=0,
        ),
        poll_row(
            broker_name="timeout",
            outcome="NO_ANSWER",
            error_code=-1,
            error_message="wait timeout",
            connections=0,
        ),
        poll_row(
            broker_name="dashboard offline",
            outcome="NOT_ONLINE",
            error_code=-1,
            error_message=offline,
            connections=0,
        ),
        poll_row(
            broker_name="dashboard failed",
            outcome="NO_ANSWER",
            error_code=-1,
            error_message=failed,
            connections=0,
        ),
        poll_row(broker_name="again"),
        poll_row(broker_name="slave", broker_id=1, broker_addr="10.0.0.9:10911"),
    ]
    assert_df_equality(
        actual, frame(spark, BROKER_POLLS, expected), ignore_row_order=True, ignore_nullable=True
    )

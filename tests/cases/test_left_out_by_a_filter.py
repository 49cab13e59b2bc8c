"""Old native Go clients commit nothing over messages that the broker's tag filter leaves out.

Small dumps, the truth reckoned before the run. 100 messages a minute come to each queue; those of
broker-a's queues pass the filter and are read, those of broker-b's do not.
"""

from __future__ import annotations

import json

import pytest

from tests.cases.small_dumps import (
    BROKERS,
    MEMBERS,
    MINUTES,
    SHARES,
    holds,
    instant,
    members,
    offsets,
    route,
)
from tests.support.audited import queues

B_QUEUES = {("T", "broker-b", number) for number in range(4)}
GO = {"language": "GO", "PROP_CLIENT_VERSION": "v2.1.0"}


def filtering(line, tags, kind):
    """The list, or the running info, of members that filter T."""
    body = json.loads(line["body"])
    own = body.get("subscriptionSet") or [body["subscriptionTable"]["T"]]
    own[0].update(subString=tags, expressionType=kind)
    return line | {"body": json.dumps(body)}


def read_of(minute, name, passing=("broker-a",)):
    return 100 * minute + 9, 100 * (minute if name in passing else min(minute, 2))


def group(tags="pay", language="GO", infos=None, passing=("broker-a",), kind="TAG"):
    """``infos``: by queue what a running info has of it (seconds ago that it was pulled)."""
    for minute in MINUTES:
        for number, name in enumerate(BROKERS, start=1):
            listed = members(60 * minute + number, name, MEMBERS, language=language)
            yield filtering(listed, tags, kind)
            yield offsets(60 * minute + 10 + number, name, read_of(minute, name, passing))
        yield route(60 * minute, *BROKERS)
        for number, client_id in enumerate(MEMBERS if infos else ()):
            second = 60 * minute + 20 + number
            held = {queue: infos(second, queue) for queue in SHARES[client_id]}
            yield filtering(holds(second, client_id, held, **GO), tags, kind)


def millis(second):
    return round(instant(second).timestamp() * 1000)


def pulls(second, _queue):
    """It asks for messages, and none waits in its cache."""
    return {"lastPullTimestamp": millis(second - 5), "lastConsumeTimestamp": millis(0)}


def pulls_no_more(second, queue):
    """Those of broker-b were asked for last at the beginning."""
    is_b = queue[0] == "broker-b"
    return pulls(second, queue) | ({"lastPullTimestamp": millis(0)} if is_b else {})


def hangs(second, queue):
    """Messages of broker-b's queues wait for the listener."""
    cached = {"cachedMsgCount": 8, "cachedMsgMinOffset": 200, "lastConsumeTimestamp": millis(60)}
    return pulls(second, queue) | (cached if queue[0] == "broker-b" else {})


def severities(found):
    rows = [*found["stalled_queues"], *found["group_faults"]]
    return {row["severity"] for row in rows}


@pytest.mark.parametrize(
    ("tags", "kind"), [("pay", "TAG"), ("pay || refund", "TAG"), ("a > 5", "SQL92")]
)
def test_what_old_go_clients_leave_out_is_said_at_info(audit, tags, kind):
    found = audit(group(tags, infos=pulls, kind=kind))
    assert queues(found["stalled_queues"]) == B_QUEUES
    assert {row["severity"] for row in found["stalled_queues"]} == {"INFO"}
    assert found["group_faults"] == []
    (why,) = {row["why"] for row in found["stalled_queues"] if row["owners"] == [MEMBERS[2]]}
    assert why == (
        f"{MEMBERS[2]} filters the topic by {kind} {tags}: native Go clients before 2.1.1 commit "
        "nothing over what the filter leaves out, so that the offset may stay although all is "
        "read (it says that it is v2.1.0); it asks for messages, and has none that waits"
    )
    assert severities(found) == {"INFO"}


def test_without_running_infos_it_is_in_doubt(audit):
    found = audit(group())
    assert queues(found["stalled_queues"]) == B_QUEUES
    assert {row["severity"] for row in found["stalled_queues"]} == {"WARNING"}
    assert all("filters the topic by TAG pay" in row["why"] for row in found["stalled_queues"])
    # Nobody is to be restarted.
    assert found["group_faults"] == []


@pytest.mark.parametrize("infos", [pulls_no_more, hangs])
def test_who_does_not_ask_or_has_messages_that_wait_is_stalled(audit, infos):
    found = audit(group(infos=infos))
    assert {row["severity"] for row in found["stalled_queues"]} == {"CRITICAL"}
    assert not any("filters the topic" in row["why"] for row in found["stalled_queues"])
    frozen = {tuple(row["client_ids"]) for row in found["group_faults"]}
    assert frozen == {(MEMBERS[2],), (MEMBERS[3],)}


@pytest.mark.parametrize(
    "of_group",
    [
        {"language": "JAVA"},
        {"tags": "*"},
        {"language": "JAVA", "infos": pulls},
        {"tags": "*", "infos": pulls},
    ],
)
def test_who_commits_over_what_a_filter_leaves_out_or_has_none_is_stalled(audit, of_group):
    found = audit(group(**of_group))
    assert queues(found["stalled_queues"]) == B_QUEUES
    assert {row["severity"] for row in found["stalled_queues"]} == {"CRITICAL"}


@pytest.mark.parametrize(("version", "severity"), [("v2.1.1", "CRITICAL"), ("V4_9_4", "INFO")])
def test_a_go_client_that_says_that_it_is_new_is_stalled(audit, monkeypatch, version, severity):
    monkeypatch.setitem(GO, "PROP_CLIENT_VERSION", version)
    found = audit(group(infos=pulls))
    assert {row["severity"] for row in found["stalled_queues"]} == {severity}


@pytest.mark.parametrize(("infos", "severity"), [(pulls, "INFO"), (None, "WARNING")])
def test_a_group_of_which_nothing_passes_the_filter_is_not_told_as_hanging(audit, infos, severity):
    found = audit(group(infos=infos, passing=()))
    (fault,) = found["group_faults"]
    assert (fault["fault"], fault["severity"]) == ("GROUP_NOT_CONSUMING", severity)
    assert "filter the topic by TAG pay: native Go clients before 2.1.1" in fault["evidence"]
    assert fault["remedy"].startswith("nothing, if its listener gets the messages that pass")
    assert ("suspended its consumers" in fault["remedy"]) == (severity == "WARNING")


def test_a_group_whose_old_go_clients_all_hang_consumes_nothing(audit):
    (fault,) = audit(
        group(infos=lambda second, queue: hangs(second, ("broker-b", queue[1])), passing=())
    )["group_faults"]
    assert (fault["fault"], fault["severity"]) == ("GROUP_NOT_CONSUMING", "CRITICAL")
    assert "filter the topic" not in fault["evidence"]

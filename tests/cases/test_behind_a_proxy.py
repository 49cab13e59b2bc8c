"""Members that no broker's list has, as behind a proxy: small dumps, the truth reckoned before."""

import pytest

from tests.cases.small_dumps import BROKERS, MEMBERS, OFFLINE, instant, minute_of, rounds


def polled(stops, listed=0, of=("broker-b",)):
    """Each queue has 100 new messages a minute. By queue of these brokers the minute from
    which on nobody reads it; all others keep up. ``listed``: so many minutes
    the brokers list the members.
    """

    def read(minute, name):
        until = stops if name in of else {}
        ends = [100 * min(minute, until.get(queue, 99)) for queue in range(4)]
        return {queue: (100 * minute + 9, end) for queue, end in enumerate(ends)}

    return rounds(lambda minute, _: MEMBERS if minute < listed else OFFLINE, read)


EVERY = [(name, number) for name in BROKERS for number in range(4)]


def orphaned_since(found):
    return {
        (row["broker_name"], row["queue_id"]): row["first_seen"] for row in found["orphaned_queues"]
    }


@pytest.mark.parametrize(
    ("stops", "listed", "since"),
    [
        # No list ever had a member, and one queue of eight is read by nobody, from when on.
        ({0: 0}, 0, {0: 0}),
        ({0: 5}, 0, {0: 300}),
        # The members went behind the proxy at 10:03.
        ({0: 5, 1: 10}, 3, {0: 300, 1: 600}),
        # A message that takes its time.
        ({0: 5, 1: 13}, 3, {0: 300}),
    ],
)
def test_of_members_in_no_list_each_queue_is_judged_by_its_own_offset(audit, stops, listed, since):
    found = audit(polled(stops, listed))
    assert orphaned_since(found) == {
        ("broker-b", number): instant(second) for number, second in since.items()
    }
    assert {row["severity"] for row in found["orphaned_queues"]} == {"CRITICAL"}
    faults = {row["fault"]: row for row in found["group_faults"]}
    assert faults.keys() == {"GROUP_OFFLINE", "UNLISTED_CONSUMER"}
    offline = faults["GROUP_OFFLINE"]
    assert (offline["queues_affected"], offline["broker_names"]) == (len(since), ["broker-b"])
    assert offline["first_seen"] == instant(min(since.values()))
    assert offline["remedy"].startswith("ask the proxy, or whatever else lists the members")
    # Seven queues, or six, have a reader.
    assert "queues 0-3 of broker-a and" in faults["UNLISTED_CONSUMER"]["evidence"]
    assert "queue 0 of broker-b" not in faults["UNLISTED_CONSUMER"]["evidence"]


def test_of_each_topic_the_queues_are_named_that_nobody_reads(audit):
    def lines():
        yield from polled({0: 5})
        for each in polled({3: 9}, of=("broker-a",)):
            if "topic" in each:
                yield each | {"topic": "U"}
            elif each["kind"] == "consume_stats":
                yield each | {"body": each["body"].replace('\\"T\\"', '\\"U\\"')}

    found = audit(lines())
    offline = {
        row["topic"]: (row["broker_names"], row["queues_affected"], row["first_seen"])
        for row in found["group_faults"]
        if row["fault"] == "GROUP_OFFLINE"
    }
    assert offline == {"T": (["broker-b"], 1, instant(300)), "U": (["broker-a"], 1, instant(540))}


@pytest.mark.parametrize("listed", [0, 3])
def test_members_behind_a_proxy_that_all_end_leave_the_queues_from_then_on(audit, listed):
    found = audit(polled(dict.fromkeys(range(4), 8), listed, of=BROKERS))
    assert orphaned_since(found) == dict.fromkeys(EVERY, instant(480))
    (fault,) = found["group_faults"]
    assert (fault["fault"], fault["first_seen"]) == ("GROUP_OFFLINE", instant(480))
    assert "; since 10:08:00 UTC messages wait in queues 0-3 of broker-a" in fault["evidence"]


def test_a_group_behind_a_proxy_that_reads_all_of_its_queues_has_nothing(audit):
    found = audit(polled({}))
    assert (found["group_faults"], found["orphaned_queues"]) == ([], [])
    assert [row["coverage"] for row in found["group_health"]] == ["NO_TOPIC"]


def test_of_a_group_that_went_behind_a_proxy_what_the_lists_say_harms_nothing(audit):
    found = audit(polled({}, listed=3))
    severities = {row["fault"]: row["severity"] for row in found["group_faults"]}
    assert severities == {"GROUP_OFFLINE": "INFO", "UNLISTED_CONSUMER": "WARNING"}
    assert found["orphaned_queues"] == []


def test_members_behind_a_proxy_that_were_all_gone_for_a_time_left_the_queues_meanwhile(audit):
    """No list ever had them; from 10:04 to 10:09 nobody reads, then all is read up."""

    def lines():
        for each in polled({}):
            minute = minute_of(each)
            if each["kind"] == "consume_stats" and 4 <= minute <= 9:
                there, then = (f'"consumerOffset": {number},' for number in (100 * minute, 400))
                each["body"] = each["body"].replace(there, then)
            yield each

    found = audit(lines())
    assert orphaned_since(found) == dict.fromkeys(EVERY, instant(240))
    assert {row["last_seen"] for row in found["orphaned_queues"]} == {instant(540)}
    assert {row["severity"] for row in found["orphaned_queues"]} == {"CRITICAL"}

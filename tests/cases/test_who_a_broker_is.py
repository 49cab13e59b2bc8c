"""Brokers of one name, slaves that become the master or act for it, and brokers that one nameserver
has lost: who a broker is, is its cluster, name and address.
"""

from __future__ import annotations

import json

import pytest

from jobs.cli import main
from tests.cases.small_dumps import (
    BROKERS,
    MEMBERS,
    OFFLINE,
    in_turn,
    instant,
    line,
    members,
    offsets,
    route,
)
from tests.support.audited import lasting, queues

ONE, OTHER = "10.9.0.1:10911", "10.9.0.2:10911"


def every_second(minute):
    return (ONE, OTHER)[minute % 2]


def seldom(minute):
    return OTHER if minute % 7 == 3 else ONE


def cluster_info(second, addr=ONE, clusters=("C", "D"), namesrv="ns:9876"):
    """The nameserver's table: the cluster that came first has the address, all have the name."""
    body = {
        "brokerAddrTable": {"broker-a": {"brokerAddrs": {"0": addr}, "cluster": "C"}},
        "clusterAddrTable": {cluster: ["broker-a"] for cluster in clusters},
    }
    return line("cluster_info", second, namesrv_addr=namesrv, body=json.dumps(body))


def asked_in(minute, addrs, listed):
    """The lists of broker-a, asked at these addresses."""
    for number, addr in enumerate(addrs):
        yield members(60 * minute + 2 + number, "broker-a", listed[addr]) | {"broker_addr": addr}


def registering(
    at, one=MEMBERS, other=OFFLINE, polled=True, routed=True, both=False, minutes=range(20)
):
    """broker-a at one address or the other; of the second one's offsets nothing ever moves."""
    listed = {ONE: one, OTHER: other}
    for minute in minutes:
        addr = at(minute)
        yield cluster_info(60 * minute, addr)
        yield route(60 * minute + 1, "broker-a", addrs=routed * [("broker-a", {"0": addr})])
        for each in asked_in(minute, (ONE, OTHER) if both else (addr,), listed):
            yield each if polled else {k: v for k, v in each.items() if k != "broker_addr"}
        read = in_turn(minute) if addr == ONE or both else (7, 0)
        yield offsets(60 * minute + 5, "broker-a", read) | {"broker_addr": addr}


def names(found, table="group_faults"):
    return {row["fault" if table == "group_faults" else "kind"] for row in found[table]}


@pytest.mark.parametrize(
    "given",
    [
        {"at": every_second},
        {"at": seldom},
        # The other one is nearly always there, and nobody's list is new enough.
        {"at": lambda minute: ONE if seldom(minute) == OTHER else OTHER},
        {"at": every_second, "both": True},
        {"at": every_second, "polled": False},
        {"at": every_second, "routed": False},
        # Some members use one of them, and others the other.
        {"at": every_second, "one": MEMBERS[:2], "other": MEMBERS[2:]},
        {"at": every_second, "other": MEMBERS[:1]},
    ],
)
def test_no_list_of_one_of_two_brokers_of_one_name_counts_against_the_other(audit, given):
    found = audit(registering(**given))
    assert found["orphaned_queues"] == found["duplicate_queues"] == found["stalled_queues"] == []
    assert found["events"] == []
    (fault,) = found["group_faults"]
    assert (fault["fault"], fault["severity"]) == ("DUPLICATE_BROKER_NAME", "WARNING")
    assert fault["persistence"] == "PERSISTENT"
    assert fault["ongoing"]
    for said in ("2 brokers have the name broker-a", ONE, OTHER):
        assert said in fault["evidence"]
    assert "brokerName" in fault["remedy"]


def test_the_clusters_that_have_the_name_are_said(run):
    _, said = run(registering(every_second), "--fail-on", "WARNING")
    assert "Several brokers have one name" in said


def test_it_is_over_when_one_of_them_alone_is_seen(audit):
    found = audit(registering(lambda minute: every_second(minute) if minute < 10 else ONE))
    (fault,) = found["group_faults"]
    assert (fault["first_seen"], fault["last_seen"]) == (instant(60), instant(540))
    assert not fault["ongoing"]


@pytest.mark.parametrize(
    ("given", "events"),
    [
        # A pod that comes back at another address; one broker that two collectors ask at two.
        ({"at": lambda minute: ONE if minute < 9 else OTHER}, {"BROKER_ADDRESS_CHANGED"}),
        ({"at": every_second, "routed": False}, set()),
    ],
)
def test_one_broker_with_two_addresses_is_one(audit, given, events):
    lines = [
        each
        for each in registering(**given, other=MEMBERS)
        if each["kind"] != "consume_stats" and each["kind"] != "cluster_info"
    ]
    found = audit(lines)
    assert found["group_faults"] == found["orphaned_queues"] == []
    assert names(found, "events") == events


def taken_back(times):
    """The slave is the master for five minutes, so many times; then the master is it again."""
    return lambda minute: OTHER if minute // 5 % 2 and minute < 10 * times else ONE


@pytest.mark.parametrize(
    ("times", "routed", "several"),
    # By routes, which give a slave its own id, two times are enough.
    [(1, True, False), (2, True, True), (2, False, False), (3, False, True)],
)
def test_a_failover_that_was_taken_back_twice_is_no_second_broker(audit, times, routed, several):
    """The slave's list has the members that found it; only who is id 0 was asked."""
    lines = registering(taken_back(times), routed=routed, other=MEMBERS[:3], minutes=range(35))
    faults = audit(each for each in lines if each["kind"] != "cluster_info")["group_faults"]
    assert ("DUPLICATE_BROKER_NAME" in {each["fault"] for each in faults}) == several


def one_address(clusters_of, addressed=True):
    """broker-a always at one address; ``clusters_of``: by minute those of each nameserver."""
    for minute in range(20):
        for namesrv, clusters in clusters_of(minute).items():
            yield cluster_info(60 * minute, clusters=clusters, namesrv=namesrv)
        given = route(60 * minute + 1, "broker-a")
        if not addressed:
            body = json.loads(given["body"])
            body["brokerDatas"][0]["brokerAddrs"] = {}
            given |= {"body": json.dumps(body)}
        yield given
        yield members(60 * minute + 2, "broker-a", MEMBERS)
        yield offsets(60 * minute + 5, "broker-a", in_turn(minute))


@pytest.mark.parametrize("addressed", [True, False])
def test_a_nameserver_that_has_the_name_in_two_clusters_is_enough(audit, addressed):
    """No round met the other one; and its address is said only where it is known."""
    found = audit(one_address(lambda _: {"ns:9876": ("C", "D")}, addressed))
    (fault,) = found["group_faults"]
    assert (fault["fault"], fault["severity"], fault["ongoing"]) == (
        "DUPLICATE_BROKER_NAME",
        "WARNING",
        True,
    )
    assert (fault["topic"], fault["broker_names"]) == ("T", ["broker-a"])
    assert "the nameservers have broker-a in the clusters C and D" in fault["evidence"]
    assert ("all rounds met broker-a:10911" in fault["evidence"]) == addressed
    assert found["orphaned_queues"] == found["duplicate_queues"] == []


@pytest.mark.parametrize("clusters", [("C", "D"), ("C",)])
def test_explain_says_of_the_name_what_the_run_says(run, tmp_path, capsys, monkeypatch, clusters):
    """No list shows it: of dumps, of snapshots, or of the tables of the run."""
    monkeypatch.chdir(tmp_path)
    _, said = run(one_address(lambda _: {"ns:9876": clusters}))
    is_wrong = len(clusters) > 1
    assert ("Several brokers have one name" in said) == is_wrong
    for place in (["--dumps", "dump.jsonl"], ["--snapshots", "out/snapshots"], []):
        assert main(["explain", *place, "--group", "G", "--topic", "T"]) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert ("Nothing is wrong at this moment" in text) != is_wrong
        assert ("Why: DUPLICATE_BROKER_NAME. To do: give one of these brokers" in text) == is_wrong


def test_of_one_round_it_is_not_seen_for_long(audit):
    lines = one_address(lambda _: {"ns:9876": ("C", "D")})
    (fault,) = audit(each for each in lines if each["snapshot_time"][14:16] == "00")["group_faults"]
    assert (fault["fault"], fault["severity"]) == ("DUPLICATE_BROKER_NAME", "INFO")


@pytest.mark.parametrize(
    "clusters_of",
    [
        # It moved at 10:05; the one nameserver has its old entry until the connection expires.
        lambda minute: {
            "ns:9876": ("C",) if minute < 5 else ("C", "D") if minute < 8 else ("D",),
            "ns2:9876": ("C",) if minute < 5 else ("D",),
        },
        # Each nameserver has a cluster of its own.
        lambda _: {"ns:9876": ("C",), "ns2:9876": ("D",)},
        # Nobody asked for the clusters.
        lambda _: {},
    ],
)
def test_a_broker_that_moved_or_another_nameserver_is_no_second_one(audit, clusters_of):
    assert audit(one_address(clusters_of))["group_faults"] == []


def test_groups_that_have_no_queue_on_it_are_not_told(audit):
    def lines():
        for minute in range(20):
            yield cluster_info(60 * minute)
            yield route(60 * minute + 1, "broker-b")
            yield members(60 * minute + 2, "broker-a", OFFLINE)
            yield members(60 * minute + 3, "broker-b", MEMBERS)

    assert names(audit(lines())) == set()


# ---------------------------------------------------------------- masters and slaves

MASTER, SLAVE = "broker-a:10911", "broker-a:10921"


def failover(acting, gone=range(5, 6), comes_back=10):
    """The master dies at 10:05. A slave becomes the master a minute later, or acts for it until it
    comes back; ``acting``: of the second, who the collector asks for: the route's id, or its own.
    """
    for minute in range(20):
        ids, perm = {"0": MASTER, "2": SLAVE}, 6
        if acting and min(gone) <= minute < comes_back:
            ids, perm = {"0": SLAVE}, 4
        elif not acting and minute in gone:
            ids = {"2": SLAVE}
        elif not acting and minute > max(gone):
            ids = {"0": SLAVE} | ({"1": MASTER} if minute >= comes_back else {})
        given = route(60 * minute, *BROKERS, addrs={"broker-a": ids})
        body = json.loads(given["body"])
        for each in body["brokerDatas"]:
            each["enableActingMaster"] = bool(acting)
        body["queueDatas"][0]["perm"] = perm
        yield given | {"body": json.dumps(body)}
        polled = {"2": SLAVE} if acting == "its own" and perm == 4 else ids
        for broker_id, addr in polled.items():
            asked = {"broker_id": int(broker_id), "broker_addr": addr}
            yield members(60 * minute + 2, "broker-a", MEMBERS) | asked
        yield members(60 * minute + 3, "broker-b", MEMBERS)


def test_a_slave_that_became_the_master_is_one(audit):
    left, changed = audit(failover(acting=None))["events"]
    assert (left["kind"], left["begins"], left["ends"]) == (
        "MASTER_LEFT",
        instant(300),
        instant(360),
    )
    assert (changed["kind"], changed["begins"]) == ("BROKER_ADDRESS_CHANGED", instant(360))
    said = f"the master of broker-a changed from {MASTER} to {SLAVE}"
    assert said in changed["headline"]


@pytest.mark.parametrize("acting", ["the route's", "its own"])
def test_a_slave_that_acts_for_its_master_is_none(audit, acting):
    found = audit(failover(acting))
    (left,) = found["events"]
    assert (left["kind"], left["begins"], left["ends"]) == (
        "MASTER_LEFT",
        instant(300),
        instant(600),
    )
    assert found["group_faults"] == []
    assert {row["completeness"] for row in found["state_runs"] if "completeness" in row} <= {1.0}


@pytest.mark.parametrize("rounds", [1, 10])
def test_a_mock_broker_is_no_broker(audit, rounds):
    """Of one round alone a master is away that no route names; a mock broker never has one."""

    def lines():
        for minute in range(rounds):
            given = route(60 * minute, *BROKERS)
            body = json.loads(given["body"])
            mapped = {"bname": "broker-a", "scope": "__global__", "totalQueues": 4}
            body["topicQueueMappingByBroker"] = {"broker-a": mapped | {"currIdMap": {}}}
            yield given | {"body": json.dumps(body)}
            for number, name in enumerate(BROKERS, start=1):
                yield members(60 * minute + number, name, MEMBERS)

    found = audit(lines())
    assert [row for row in found["events"] if "syslo" in row["headline"]] == []
    assert [row for row in found["gaps"] if "syslo" in row["text"]] == []


# ---------------------------------------------------------------- a broker that a nameserver lost

THREE = ("broker-a", "broker-b", "broker-c")


def lost(lacks="broker-c", cut_off=None):
    """Two members: the second one asks ns2, whose route lacks a broker; the first one does not
    reach the broker from which it is ``cut_off``.
    """
    one, other = MEMBERS[:2]
    for minute in range(15):
        yield route(60 * minute, *THREE)
        left = [name for name in THREE if name != lacks]
        yield route(60 * minute, *left) | {"namesrv_addr": "ns2:9876"}
        for number, name in enumerate(THREE, start=1):
            listed = [one] * (name != cut_off) + [other] * (name != lacks)
            yield members(60 * minute + number, name, listed)


def test_a_list_that_lacks_clients_of_a_nameserver_without_the_broker_has_its_root_there(audit):
    found = audit(lost())
    (fault,) = lasting(found["group_faults"])
    assert fault["fault"] == "ROUTE_DIVERGENCE"
    assert f"the list of broker-c lacks {MEMBERS[1]}: a client of ns2:9876" in fault["evidence"]
    assert queues(found["orphaned_queues"]) == {("T", "broker-c", number) for number in range(4)}
    rows = [*found["orphaned_queues"], *found["duplicate_queues"]]
    assert {tuple(row["causes"]) for row in rows} == {("ROUTE_DIVERGENCE",)}
    # Of 12 queues each member then has six.
    assert (fault["findings_cleared"], fault["findings_left"]) == (len(rows), 0)


def test_a_member_cut_off_from_a_broker_of_all_routes_is_another_fault(audit):
    alone = lasting(audit(lost(lacks=None, cut_off="broker-b"))["group_faults"])
    assert [row["fault"] for row in alone] == ["BROKER_VIEW_DIVERGENCE"]
    both = {row["fault"]: row for row in lasting(audit(lost(cut_off="broker-b"))["group_faults"])}
    assert both.keys() == {"BROKER_VIEW_DIVERGENCE", "ROUTE_DIVERGENCE"}
    assert "broker-c" not in both["BROKER_VIEW_DIVERGENCE"]["evidence"].split(";")[0]
    assert both["BROKER_VIEW_DIVERGENCE"]["client_ids"] == [MEMBERS[0]]
    assert both["ROUTE_DIVERGENCE"]["client_ids"] == [MEMBERS[1]]

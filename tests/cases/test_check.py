"""``check``: whether a finding of the last report is gone, by newer dumps."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree

import pytest

from jobs.cli import main
from tests.cases.conftest import written
from tests.cases.small_dumps import (
    AVG,
    MEMBERS,
    OFFLINE,
    SHARES,
    TIMED_OUT,
    holds,
    in_turn,
    of_broker,
    rounds,
    route,
)

pytestmark = pytest.mark.long

#: The minutes of the report, and those of the newer dumps.
BEFORE, AFTER = range(10), range(10, 20)
#: One process more has the first client id.
SHARED = [MEMBERS[0], *MEMBERS]
GONE, WRONG, NO_INPUT, NOT_YET = 0, 1, 3, 5


def without_b(until=99):
    """broker-b, which has half of the queues, does not know the group up to this minute."""
    return lambda minute, name: OFFLINE if name == "broker-b" and minute < until else MEMBERS


def silent_b(*minutes):
    """broker-b gives no list in these minutes."""
    return lambda minute, name: TIMED_OUT if name == "broker-b" and minute in minutes else MEMBERS


def stuck(minutes, of_queue=lambda minute: (100 * minute + 9, 5)):
    """Queue 0 of broker-b has an owner and offsets of its own; the others are read in turn."""

    def read(minute, name):
        others = dict.fromkeys(range(4), in_turn(minute))
        return others | ({0: of_queue(minute)} if name == "broker-b" else {})

    return rounds(read=read, minutes=minutes)


def of_two_topics(listed, minutes):
    for minute in minutes:
        yield route(60 * minute, "broker-a", "broker-b", topic="U")
    yield from rounds(listed, minutes=minutes, topics=("T", "U"))


def of_another_group():
    return [
        {**each, "consumer_group": "H"} if "consumer_group" in each else each
        for each in rounds(minutes=AFTER)
    ]


def configs(*groups, names=("broker-a", "broker-b")):
    """The groups that each of these brokers has a configuration of, in the last minute."""
    table = {"subscriptionGroupTable": {each: {} for each in groups}}
    return [of_broker("subscription_group", 60 * 19, name, table) for name in names]


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Where the report of these lines is; of the same lines and known issues there is one."""
    places = {}

    def publish(lines):
        lines = list(lines)
        known = [path.read_text() for path in Path("conf").glob("*")]
        if (key := json.dumps([known, lines])) not in places:
            folder = tmp_path_factory.mktemp("report")
            given = ["--dumps", str(written(folder, lines)), "--output", str(folder / "out")]
            assert main(["run", *given, "--engine", "local", "--workers", "1", "--quiet"]) == 0
            places[key] = folder / "out"
        return places[key]

    return publish


@pytest.fixture
def report(tmp_path, monkeypatch, published):
    """Puts the report of these lines into the current folder."""
    monkeypatch.chdir(tmp_path)
    return lambda lines: copytree(published(lines), "out", dirs_exist_ok=True)


@pytest.fixture
def check(tmp_path, capsys):
    """The exit code, and standard output, of a check of these newer lines."""

    def check(lines, *options):
        (tmp_path / "newer").mkdir(exist_ok=True)
        newer = str(written(tmp_path / "newer", lines))
        capsys.readouterr()
        given = options or ("--group", "G")
        code = main(["check", *given, "--reports", "out/reports", "--dumps", newer, "--quiet"])
        return code, capsys.readouterr().out

    return check


def finding_ids(capsys, table):
    capsys.readouterr()
    assert main(["show", table, "--reports", "out/reports", "--format", "json", "--quiet"]) == 0
    return [json.loads(each)["finding_id"] for each in capsys.readouterr().out.splitlines()]


QUEUES = "orphaned queue (queues 0-3 of broker-b) of G / T"


def shared_late(minute, _):
    """Two processes share an id in the last two minutes."""
    return SHARED if minute > 17 else MEMBERS


@pytest.mark.parametrize(
    ("listed", "minutes", "code", "says"),
    [
        (MEMBERS, AFTER, GONE, f"Gone: {QUEUES}: last seen at 2026-11-20 10:09:00 UTC, and not"),
        (without_b(), AFTER, WRONG, f"Still there: {QUEUES}: seen from 2026-11-20 10:10:00 UTC"),
        # The repair came later; up to the end it is too soon.
        (without_b(14), AFTER, GONE, f"Gone: {QUEUES}: last seen at 2026-11-20 10:13:00 UTC"),
        (without_b(18), range(20), NOT_YET, "Cannot be said before 2026-11-20 10:21:00 UTC"),
        (MEMBERS, range(10, 12), NOT_YET, "Cannot be said before 2026-11-20 10:13:00 UTC"),
        (without_b(), range(10, 12), NOT_YET, "Cannot be said before 2026-11-20 10:13:00 UTC"),
        (without_b(), BEFORE, NOT_YET, f"Cannot be said yet: {QUEUES}: nothing newer than"),
        # The broker that would show it is silent: all the time, at the end, at the beginning.
        (silent_b(*AFTER), AFTER, NOT_YET, f"Cannot be said yet: {QUEUES}: broker broker-b/0"),
        (silent_b(16, 17, 18, 19), AFTER, NOT_YET, "Cannot be said before 2026-11-20 10:22:00"),
        (silent_b(10, 11, 12, 13), AFTER, GONE, "Gone: "),
        # Something else came: it lasts, or is too new to.
        (SHARED, AFTER, WRONG, "Gone, but something else is wrong now, orphaned queue (queues 2"),
        (shared_late, AFTER, NOT_YET, "Cannot be said before 2026-11-20 10:21:00 UTC"),
        (OFFLINE, AFTER, NOT_YET, f"Cannot be said yet: {QUEUES}: the group has no member"),
    ],
)
def test_a_queue_that_nobody_consumed(report, check, listed, minutes, code, says):
    report(rounds(without_b(), minutes=BEFORE))
    came, said = check(rounds(listed, minutes=minutes))
    assert (came, said[: len(says)]) == (code, says)
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    ("left", "says"),
    [
        ({"names": ("broker-a",)}, "the queue is not in"),
        ({"topics": ("U",)}, "no member subscribes"),
    ],
)
def test_nothing_is_left_that_it_could_be_of(report, check, left, says):
    report(rounds(without_b(), minutes=BEFORE))
    code, said = check(rounds(minutes=AFTER, **left))
    assert (code, said.startswith(f"Gone: {QUEUES}: {says}")) == (GONE, True)
    assert check(rounds(minutes=range(10, 12), **left))[0] == NOT_YET


@pytest.mark.parametrize(
    ("newer", "code"),
    [
        (stuck(AFTER), WRONG),
        (stuck(AFTER, in_turn), GONE),
        # No message comes any more, and those that are there wait; nobody knows of offsets.
        (rounds(read=(909, 5), minutes=AFTER), NOT_YET),
        (rounds(minutes=AFTER), NOT_YET),
    ],
)
def test_a_stall_is_gone_when_its_offsets_advance(report, check, newer, code):
    report(stuck(BEFORE))
    assert check(newer)[0] == code


@pytest.mark.parametrize(
    ("read", "code"), [((1000, 5), NOT_YET), (in_turn, GONE), (lambda m, _: (100 * m, 5), WRONG)]
)
def test_a_group_that_consumed_nothing_does_so_when_an_offset_advances(report, check, read, code):
    report(rounds(read=lambda minute, _: (100 * minute + 9, 5), minutes=BEFORE))
    read = in_turn if read is in_turn else read
    assert check(rounds(read=read, minutes=AFTER))[0] == code


@pytest.mark.parametrize(
    ("said_by_brokers", "code"),
    [
        ([], NOT_YET),
        (configs("H", "G"), NOT_YET),
        (configs("H", names=("broker-a",)), NOT_YET),
        (configs("H"), GONE),
    ],
)
def test_a_group_is_deleted_where_every_broker_says_so(report, check, said_by_brokers, code):
    report(rounds(without_b(), minutes=BEFORE))
    came, said = check([*of_another_group(), *said_by_brokers])
    assert came == code
    assert ("it was deleted" in said) == (code == GONE)


def second_nameserver(minutes, *names):
    """Another nameserver gives a route over these brokers."""
    return [{**route(60 * each, *names), "namesrv_addr": "ns2:9876"} for each in minutes]


def test_nameservers_that_differed_are_all_to_be_asked_again(report, check):
    report([*rounds(minutes=BEFORE), *second_nameserver(BEFORE, "broker-a")])
    newer = [*rounds(minutes=AFTER)]
    code, said = check(newer)
    assert (code, "no route came from ns2:9876" in said) == (NOT_YET, True)
    assert check([*newer, *second_nameserver(AFTER, "broker-a", "broker-b")])[0] == GONE
    assert check([*newer, *second_nameserver(AFTER, "broker-a")])[0] == WRONG


def infos(minutes, strategy_of_last, held=MEMBERS):
    """Running infos of these members, of whom the last one allocates otherwise."""
    for minute in minutes:
        for client_id in held:
            strategy = strategy_of_last if client_id == MEMBERS[3] else AVG
            yield holds(60 * minute + 20, client_id, SHARES[client_id], strategy)


def test_what_running_infos_showed_is_gone_when_all_members_have_answered(report, check):
    circle = f"{AVG}ByCircle"
    report([*rounds(minutes=BEFORE), *infos(BEFORE, circle)])
    newer = [*rounds(minutes=AFTER)]
    code, said = check(newer)
    assert (code, "running infos would show it" in said) == (NOT_YET, True)
    assert check([*newer, *infos(AFTER, AVG, MEMBERS[:3])])[0] == NOT_YET
    assert check([*newer, *infos(AFTER, AVG)])[0] == GONE
    assert check([*newer, *infos(AFTER, circle)])[0] == WRONG


def test_queues_that_left_with_messages_are_to_be_seen_back(report, check):
    def left(minute, name):
        read = dict.fromkeys(range(4), in_turn(minute))
        return read | ({0: (9_000 + minute, 5 + minute)} if name == "broker-b" else {})

    before = rounds(read=left, minutes=range(10))
    gone = ("broker-a",)
    report([*before, *rounds(read=in_turn, minutes=range(10, 15), names=gone)])
    code, said = check(rounds(read=in_turn, minutes=range(15, 25), names=gone))
    assert (code, "do not show that the queues are back" in said) == (NOT_YET, True)
    others = ("broker-a", "broker-c")
    assert check(rounds(read=in_turn, minutes=range(15, 25), names=others))[0] == NOT_YET
    assert check(rounds(read=in_turn, minutes=range(15, 25)))[0] == GONE


def test_of_several_topics_each_has_a_line_and_the_worst_decides(report, check):
    def mended_in_u(minutes):
        yield from of_two_topics(without_b(), minutes)

    report(mended_in_u(BEFORE))
    code, said = check(of_two_topics(without_b(), AFTER))
    assert (code, said.splitlines()[0][:36]) == (WRONG, "Still there: all 8 findings of G: se")
    # U has no queue on broker-b any more.
    newer = [*rounds(without_b(), minutes=AFTER, topics=("T", "U"))]
    newer += [route(60 * minute, "broker-a", topic="U") for minute in AFTER]
    code, said = check(newer)
    first, *others = said.splitlines()
    assert code == WRONG
    assert first.startswith(f"Still there: 4 of 8 findings of G, {QUEUES}: seen from")
    assert [each.strip().partition(":")[0] for each in others] == ["Still there", "Gone"]
    assert check(newer, "--group", "G", "--topic", "U")[0] == GONE


def test_one_finding_is_asked_about_by_its_id(report, check, capsys):
    report(stuck(BEFORE))
    (stalled,) = finding_ids(capsys, "stalled_queues")
    code, said = check(stuck(AFTER), stalled, "--format", "json")
    document = json.loads(said)
    assert (code, document["state"], document["can_be_said_at"]) == (WRONG, "STILL_THERE", None)
    (found,) = document["findings"]
    assert (found["finding_id"], found["broker_name"], found["queue_id"]) == (
        stalled,
        "broker-b",
        0,
    )
    code, said = check(stuck(range(10, 12)), stalled, "--format", "json")
    assert (code, json.loads(said)["can_be_said_at"]) == (NOT_YET, "2026-11-20T10:13:00.000Z")


def test_the_same_cause_at_another_queue_is_not_well(report, check, capsys):
    """One of four orphans has an owner since; the others, of the same cause, have none."""
    report(rounds(without_b(), minutes=BEFORE))
    first = finding_ids(capsys, "orphaned_queues")[0]
    newer = [*rounds(without_b(), minutes=AFTER)]
    for number, each in enumerate(newer):
        if each["kind"] == "topic_route":
            newer[number] = route(
                60 * int(each["snapshot_time"][14:16]),
                "broker-a",
                "broker-b",
                queues={"broker-a": 4, "broker-b": 1},
            )
    code, said = check(newer, finding_ids(capsys, "orphaned_queues")[-1])
    assert code == WRONG, (first, said)
    assert said.startswith("Gone, but something else is wrong now, orphaned queue (queue 0 of")


def test_a_known_issue_is_asked_about_by_its_id_and_is_called_one(report, check, capsys, tmp_path):
    (tmp_path / "conf").mkdir()
    known = '[[known_issues]]\ngroups = "G"\nreason = "on purpose"\nexpires = 2027-01-01\n'
    (tmp_path / "conf" / "known_issues.toml").write_text(known)
    report(rounds(without_b(), minutes=BEFORE))
    assert check(rounds(minutes=AFTER))[0] == NO_INPUT  # nothing of the group counts
    first = finding_ids(capsys, "orphaned_queues")[0]
    code, said = check(rounds(without_b(), minutes=AFTER), first)
    assert code == WRONG
    assert said.startswith("Still there, a known issue (on purpose): orphaned queue (queue ")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("0123456789abcdef",), NO_INPUT),
        (("--group", "NONE"), NO_INPUT),
        (("--group", "G", "--topic", "NONE"), NO_INPUT),
        (("0123456789abcdef", "--group", "G"), 2),
        (("0123456789abcdef", "--topic", "T"), 2),
        (("--group", "G", "--namesrv", "localhost:1"), 2),
    ],
)
def test_a_finding_that_is_not_in_the_report_is_an_error(report, check, options, code):
    report(rounds(without_b(), minutes=BEFORE))
    assert check(rounds(minutes=AFTER), *options) == (code, "")


def test_the_answer_is_in_the_language_and_the_zone_of_its_reader(report, check):
    report(rounds(without_b(), minutes=BEFORE))
    _, said = check(
        rounds(minutes=range(10, 12)),
        *("--group", "G", "--language", "zh", "--set", "display_time_zone=Asia/Shanghai"),
    )
    assert said.startswith("2026-11-20 18:13:00 UTC+08:00 之前不能判断：")

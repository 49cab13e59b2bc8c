"""A what-if of a group whose shares nobody computes: before it is what its members hold."""

from __future__ import annotations

from jobs.cli import main
from tests.cases.conftest import written
from tests.cases.small_dumps import MEMBERS
from tests.cases.test_held_alone import SELDOM, THREE, TWICE, lines, read


def asked_what_if(tmp_path, capsys, lines, *changes):
    dump = written(tmp_path, lines)
    code = main(["what-if", "--dumps", str(dump), "--group", "G", "--topic", "T", *changes])
    return code, " ".join(capsys.readouterr().out.split())


def test_what_if_of_members_that_assign_names_who_holds_what(tmp_path, capsys):
    given = lines(TWICE, SELDOM, assigns=True, offsets_of=read())
    _, told = asked_what_if(tmp_path, capsys, given, "--mend", "MANUAL_ASSIGNMENT")
    assert told.startswith("Nothing is computed: all members take their queues by assign()")
    assert f"{MEMBERS[0]} has queues 0-3 of broker-a of T." in told
    assert f"{MEMBERS[2]} has no queue of T." in told
    assert (
        "Queue 3 of broker-a is taken by several; queue 3 of broker-b is taken by nobody." in told
    )
    assert "let it give each queue to one member" in told
    assert "0 processes" not in told


def test_what_if_of_a_strategy_is_judged_by_what_is_held_before(tmp_path, capsys):
    given = [*lines(THREE, SELDOM, assigns=False, offsets_of=read())]
    _, told = asked_what_if(tmp_path, capsys, given, "--strategy", "AVG")
    assert "cannot be computed" not in told
    assert "Of use: 1 orphaned queue then has one owner" in told
    assert "Before it is what the members hold" in told
    # Where lists change, a strategy that nobody knows gives something else.
    _, told = asked_what_if(tmp_path, capsys, given, "--leave", MEMBERS[0])
    assert "cannot be computed before and after" in told


def test_what_if_of_a_strategy_is_not_known_where_one_did_not_tell(tmp_path, capsys):
    given = lines(THREE, SELDOM, assigns=False, offsets_of=read(), silent=(1,))
    _, told = asked_what_if(tmp_path, capsys, given, "--strategy", "AVG")
    assert "cannot be computed before" in told

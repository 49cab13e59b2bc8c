"""`live` and `collect` say names: who did not answer, what was misspelt, what is missing."""

from __future__ import annotations

import importlib.abc
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobs import __main__ as console
from jobs import cli
from jobs.collect.collect_options import namesrvs_of
from jobs.collect.frames import ACCESS_KEY, SECRET_KEY
from jobs.commands import check
from tests.collect.test_collector import ROOT, lines_of, servers
from tests.support.remote_cluster import RemoteCluster
from tests.support.replay import Answering, Manners, Replay, answer_frame, error, in_thread

NAMESRVS = ("ns1:9876", "ns2:9876")
NO_ACCOUNT = "org.apache.rocketmq.acl.common.AclException: No accessKey is configured"


@pytest.fixture
def cluster() -> RemoteCluster:
    made = RemoteCluster()
    made.add_group("G_ORDER", ["x", "y"], ["T"])
    made.add_group("G_PAY", ["z"], ["T"])
    return made


Ran = tuple[int, str]


def collected(
    tmp_path: Path,
    capsys: Any,
    answers: dict[str, Answering],
    *arguments: str,
    groups: tuple[str, ...] = (".*",),
    manners: dict[str, Manners] | None = None,
) -> Ran:
    """The exit code and what was said of one round."""
    with servers(tmp_path, answers, NAMESRVS, manners, timeout_seconds=1.0) as (_, config):
        choose(config, "groups", json.dumps(groups))
        dumps = ["--config", str(config), "--dumps", str(tmp_path / "d")]
        code = cli.main(["collect", *dumps, *arguments])
    return code, capsys.readouterr().err


def choose(config: Path, name: str, value: str) -> None:
    """Sets an option of the cluster."""
    text = config.read_text()
    config.write_text(text.replace("[clusters.c", f"{name} = {value}\n[clusters.c"))


@pytest.mark.long
def test_who_did_not_answer_is_named(tmp_path: Path, capsys: Any, cluster: RemoteCluster) -> None:
    cluster.silent = {"y"}
    code, said = collected(
        tmp_path, capsys, dict(cluster.answers()), manners={"b:10911": Manners(hangs_after=0)}
    )
    assert code == 0
    assert "a (a:10911): group G_ORDER, member y: no answer to" in said
    assert "b (b:10911): no answer to" in said


def test_a_group_that_nobody_knows_is_a_mistake(
    tmp_path: Path, capsys: Any, cluster: RemoteCluster
) -> None:
    answers = dict(cluster.answers())
    code, said = collected(tmp_path, capsys, answers, groups=("G_ORDR", "G_PAY"))
    assert code == 2
    assert "no such group: no broker knows G_ORDR; did you mean G_ORDER?" in said
    # A broker that does not answer may know it.
    refuses = {"b:10911": Manners(refuses=True)}
    assert collected(tmp_path, capsys, answers, groups=("G_ORDR",), manners=refuses)[0] == 0
    # A broker without a configuration of the group may have members of it.
    cluster.members["NEW"] = {"b:10911": [("n", "10.0.0.9:1")]}
    configured = answer_frame(b'{"subscriptionGroupTable":{"G_PAY":{}}}')
    for address in ("a:10911", "b:10911"):
        of = cluster.answers()[address]
        answers[address] = lambda asked, of=of: configured if asked.code == 201 else of(asked)  # type: ignore[misc]
    assert collected(tmp_path, capsys, answers, groups=("NEW",))[0] == 0


def test_live_ends_at_a_group_that_nobody_knows(
    tmp_path: Path, capsys: Any, cluster: RemoteCluster
) -> None:
    with servers(tmp_path, cluster.answers(), NAMESRVS) as (_, config):
        choose(config, "groups", '["TYPO"]')
        arguments = ["live", "--config", str(config), "--output", str(tmp_path / "out")]
        assert cli.main(arguments) == 2
    said = capsys.readouterr()
    assert "no broker knows TYPO" in said.err
    assert "verdict" not in said.out
    assert not list(tmp_path.rglob("*.jsonl*"))


@pytest.mark.parametrize(
    ("setting", "value", "says"),
    [
        ("clusters", "c", "no such cluster: nameservers know none that is c; did you mean 'C'"),
        ("topics", "TT", "no such topic: no group has one that is TT; there is only 'T'"),
    ],
)
def test_a_cluster_or_a_topic_that_is_not_there_is_a_mistake(
    tmp_path: Path, capsys: Any, cluster: RemoteCluster, setting: str, value: str, says: str
) -> None:
    with servers(tmp_path, dict(cluster.answers()), NAMESRVS) as (_, config):
        choose(config, setting, json.dumps(value))
        arguments = ["collect", "--config", str(config), "--dumps", str(tmp_path / "d")]
        assert cli.main(arguments) == 2
    assert re.search(says, capsys.readouterr().err)
    assert not list(tmp_path.rglob("*.jsonl*"))


def test_what_is_refused_for_want_of_an_account_says_so(
    tmp_path: Path, capsys: Any, cluster: RemoteCluster
) -> None:
    answers = dict(cluster.answers())
    denied = {address: lambda _: error(1, NO_ACCOUNT) for address in cluster.addresses}
    for groups in ((".*",), ("G_ORDER",)):
        code, said = collected(tmp_path, capsys, {**answers, **denied}, groups=groups)
        assert code == 4
        assert (
            "refused for want of an account that may ask: a (a:10911) answers: org.apache" in said
        )
        assert f"{ACCESS_KEY} and {SECRET_KEY}, or --account FILE" in said
        assert lines_of(tmp_path / "d") == []
    code, said = collected(tmp_path, capsys, {**answers, "b:10911": denied["b:10911"]})
    assert code == 0
    assert "refused for want of an account that may ask: b (b:10911) answers" in said


def test_an_account_without_tls_and_one_that_all_may_read_are_warned_of(
    tmp_path: Path, capsys: Any, cluster: RemoteCluster
) -> None:
    account = tmp_path / "tools.yml"
    account.write_text("accessKey: reader\nsecretKey: secret\n")
    account.chmod(0o644)
    with servers(tmp_path, cluster.answers(), NAMESRVS) as (_, config):
        choose(config, "account_file", f'"{account}"')
        arguments = ["collect", "--config", str(config), "--dumps", str(tmp_path / "d")]
        assert cli.main(arguments) == 0
        said = capsys.readouterr().err
        assert f"account file {account}: everybody on this machine may read it" in said
        assert "the account is used without TLS" in said
        account.chmod(0o600)
        assert cli.main(arguments) == 0
        assert "everybody" not in capsys.readouterr().err


# Addresses


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("a:1,b:2", ["a:1", "b:2"]),
        ("a:1; b", ["a:1", "b:9876"]),
        ("10.0.0.1", ["10.0.0.1:9876"]),
        ("[::1]", ["[::1]:9876"]),
        ("a:1;", ["a:1"]),
    ],
)
def test_addresses_as_operators_have_them(text: str, addresses: list[str]) -> None:
    assert namesrvs_of(text) == addresses


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("http://10.0.0.1:9876", "over RocketMQ's own protocol, without http://"),
        ("::1", "in brackets, as [::1]:9876"),
        ("a:b", "expected host:port, came 'a:b'"),
        ("a:1,,b:70000", "expected host:port, came 'b:70000'"),
        ("", "expected host:port"),
    ],
)
@pytest.mark.parametrize("command", ["live", "collect"])
def test_addresses_that_are_none(
    tmp_path: Path, capsys: Any, command: str, given: str, says: str
) -> None:
    place = {"live": "--output", "collect": "--dumps"}[command]
    arguments = [command, "--namesrv", given, place, str(tmp_path / "d")]
    assert cli.main(arguments) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert says in said


def test_a_broker_is_no_nameserver(tmp_path: Path, capsys: Any, cluster: RemoteCluster) -> None:
    broker = cluster.answers()["a:10911"]
    answers = {**cluster.answers(), **dict.fromkeys(NAMESRVS, broker)}
    code, said = collected(tmp_path, capsys, answers)
    assert code == 2
    assert "ns1:9876, ns2:9876: no nameserver, for it does not know the brokers" in said
    code, said = collected(tmp_path, capsys, {**cluster.answers(), "ns2:9876": broker})
    assert code == 0
    assert "ns2:9876: no nameserver" in said


# The page, and Ctrl-C


@pytest.mark.long
@pytest.mark.parametrize(("who", "said"), [("y", "1 line was"), ("xyz", "3 lines were")])
def test_odd_members_do_not_take_the_page_away(
    tmp_path: Path, cluster: RemoteCluster, who: str, said: str
) -> None:
    odd = answer_frame(b'{"properties":7,"mqTable":{}}')
    answers: dict[str, Answering] = {}
    for address, of in cluster.answers().items():
        answers[address] = lambda asked, of=of: (  # type: ignore[misc]
            odd if asked.fields.get("clientId", "-") in who else of(asked)
        )
    with servers(tmp_path, answers, NAMESRVS) as (_, config):
        arguments = ["live", "--config", str(config), "--output", str(tmp_path / "out")]
        assert cli.main([*arguments, "--watch", "0"]) == 0
    (page,) = (tmp_path / "out").glob("*/report.html")
    assert re.search(rf"{said} not understood \(\d", page.read_text())


def test_rounds_of_live_are_ten_seconds_apart(
    tmp_path: Path, cluster: RemoteCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    asked: list[dict[str, Any]] = []
    options = SimpleNamespace(settling_seconds=0)
    monkeypatch.setattr(check, "collect_from", lambda _, given: asked.append(given) or options)
    monkeypatch.setattr(check, "_judge", lambda *_: 0)
    monkeypatch.setattr("time.sleep", waited.append)
    arguments = ["live", "--namesrv", "a:1", "--output", str(tmp_path)]
    for watch, every, seconds in (("2", 10.0, 5.0), ("30s", 10.0, 25.0), ("3m", 30.0, 165.0)):
        assert cli.main([*arguments, "--watch", watch]) == 0
        assert waited.pop() == pytest.approx(every, abs=1)
        assert (asked[-1]["every_seconds"], asked[-1]["for_seconds"]) == (every, seconds)
    # What clients hold is asked from the second round on, and seen for as long.
    options.settling_seconds = 45
    assert cli.main([*arguments, "--watch", "3m"]) == 0
    assert waited.pop() == pytest.approx(45, abs=1)
    assert asked[-1]["for_seconds"] == 195.0


def command(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-u", "-m", "jobs", *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def started(
    tmp_path: Path, cluster: RemoteCluster, *arguments: object, hangs: bool = False
) -> Iterator[tuple[subprocess.Popen[str], Replay]]:
    manners = dict.fromkeys(cluster.addresses, Manners(hangs_after=0)) if hangs else {}
    with servers(tmp_path, cluster.answers(), NAMESRVS, manners) as (replay, config):
        process = command(*arguments, "--config", config)
        try:
            yield process, replay
        finally:
            process.kill()
            process.communicate()


def until(is_so: Callable[[], object]) -> None:
    ends = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.01)


@pytest.mark.e2e
@pytest.mark.parametrize("more", [(), ("--every", "60")])
def test_ctrl_c_while_collecting_is_130(
    tmp_path: Path, cluster: RemoteCluster, more: tuple[str, ...]
) -> None:
    arguments = ("collect", "--dumps", tmp_path / "d", "--timeout", "60", *more)
    with started(tmp_path, cluster, *arguments, hangs=True) as (process, replay):
        until(lambda: len(replay.requests) > 2)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=10)
    assert process.returncode == 130, said
    assert said.splitlines()[-1] == "rebalance-audit: interrupted"
    assert lines_of(tmp_path / "d") == []


@pytest.mark.e2e
@pytest.mark.parametrize("seconds", [0.0, pytest.param(10.5, marks=pytest.mark.house)])
def test_ctrl_c_while_watching_is_130(
    tmp_path: Path, cluster: RemoteCluster, seconds: float
) -> None:
    with started(tmp_path, cluster, "live", "--output", tmp_path / "out") as (process, _):
        assert process.stdout is not None
        until(lambda: "watching for" in (process.stdout or sys.stdin).readline())
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        said, errors = process.communicate(timeout=10)
    assert process.returncode == 130, errors
    assert "second verdict" not in said
    assert errors.splitlines()[-1] == "rebalance-audit: interrupted"


def test_ctrl_c_in_the_first_second_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(importlib.abc.MetaPathFinder):
        def find_spec(self, name: str, *_: object) -> None:
            if name == "jobs.cli":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "jobs.cli")
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    with pytest.raises(SystemExit, match="130"):
        console.main()


@pytest.mark.house
@pytest.mark.e2e
def test_sigterm_ends_a_round_among_thousands_of_silent_servers(
    tmp_path: Path, cluster: RemoteCluster
) -> None:
    many = {f"s{number}": {0: f"s{number}:1"} for number in range(5_000)}
    groups = json.dumps({"subscriptionGroupTable": {f"g{n}": {} for n in range(50_000)}}).encode()
    honest = cluster.answers()["a:10911"]
    cluster.brokers |= many
    answers = {each: dict(cluster.answers())[each] for each in (*NAMESRVS, "a:10911")}
    answers["a:10911"] = lambda asked: answer_frame(groups) if asked.code == 201 else honest(asked)
    with in_thread(Replay({**answers, "silent:1": lambda _: None})) as replay:
        at = replay.connect_to["silent:1"]
        connect = {**{each[0]: at for of in many.values() for each in [list(of.values())]}}
        connect |= replay.connect_to
        config = tmp_path / "many.toml"
        lines = [f'"{address}" = "{to}"' for address, to in connect.items()]
        head = ["[[clusters]]", f"namesrv = {json.dumps(NAMESRVS)}", "[clusters.connect_to]"]
        config.write_text("\n".join([*head, *lines]))
        process = command("collect", "--config", config, "--dumps", tmp_path / "d", "--every", 60)
        try:
            until(lambda: sum(frame.code == 203 for _, frame in replay.requests) > 100)
            time.sleep(0.5)
            began = time.monotonic()
            process.terminate()
            _, said = process.communicate(timeout=30)
            assert time.monotonic() - began < 5
            assert process.returncode == 0, said
        finally:
            process.kill()
            process.wait()
    assert os.environ.get(SECRET_KEY) is None

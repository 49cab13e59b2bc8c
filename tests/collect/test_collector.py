"""The command: rounds into a folder, its figures, its ends, and the audit of what it collected."""

from __future__ import annotations

import asyncio
import errno
import gzip
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from pydantic import BaseModel

from jobs import cli
from jobs.collect import collector, dump_folder
from jobs.collect.client import Answer, Figures
from jobs.collect.collect_options import CollectOptions, Tls, load_options
from jobs.collect.collector import Collector, metrics_text
from jobs.collect.dump_folder import DumpFolder
from jobs.collect.frames import ACCESS_KEY, SECRET_KEY, find_account
from jobs.collect.questions import members
from jobs.commands.collect import collect_from
from jobs.declared.instants import SECOND
from jobs.errors import SettingsError
from tests.support.asking import client_of
from tests.support.remote_cluster import RemoteCluster
from tests.support.replay import Answering, Manners, Replay, answering, in_thread, recorded

ROOT = Path(__file__).parent.parent.parent


@contextmanager
def servers(
    tmp_path: Path,
    answers: Mapping[str, Answering],
    namesrvs: tuple[str, ...],
    manners: Mapping[str, Manners] | None = None,
    **options: Any,
) -> Iterator[tuple[Replay, Path]]:
    """Servers, and a file of options that finds them; who was just seen is asked, too."""
    options = {"running_infos_after_seconds": 0, **options}
    # Other tests have clients of the same names.
    state = patch.dict(os.environ, XDG_STATE_HOME=str(tmp_path / "state"))
    with state, in_thread(Replay(answers, manners or {})) as replay:
        lines = [f"{name} = {json.dumps(value)}" for name, value in options.items()]
        connect = [f'"{at}" = "{to}"' for at, to in replay.connect_to.items()]
        lines += ["[[clusters]]", f"namesrv = {json.dumps(namesrvs)}", "[clusters.connect_to]"]
        path = tmp_path / "collect.toml"
        path.write_text("\n".join([*lines, *connect]) + "\n")
        yield replay, path


@pytest.fixture
def cluster() -> RemoteCluster:
    made = RemoteCluster()
    made.add_group("G", ["x", "y"], ["T"])
    return made


def lines_of(folder: Path) -> list[list[dict[str, Any]]]:
    rounds = []
    for path in sorted(folder.glob("????-??-??/*.jsonl.gz")):
        with gzip.open(path, "rt") as lines:
            rounds.append([json.loads(line) for line in lines])
    return rounds


def command(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "jobs.cli", "collect", *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_one_round_is_one_file(tmp_path: Path, cluster: RemoteCluster, capsys: Any) -> None:
    metrics = tmp_path / "collect.prom"
    namesrvs = tuple(cluster.namesrvs)
    with servers(tmp_path, cluster.answers(), namesrvs) as (_, config):
        arguments = ["--config", config, "--dumps", tmp_path / "dumps", "--metrics", metrics]
        assert cli.main(["collect", *map(str, arguments)]) == 0
    (lines,) = lines_of(tmp_path / "dumps")
    told = capsys.readouterr().err
    assert f"{len(lines)} lines" in told
    assert str(tmp_path / "dumps") in told
    text = metrics.read_text()
    assert 'rebalance_audit_collect_rounds_total{cluster="default"} 1.0' in text
    assert f'rebalance_audit_collect_lines_total{{cluster="default"}} {len(lines)}.0' in text
    assert "rebalance_audit_collect_errors_total{" not in text


def test_a_cluster_has_its_metrics_whatever_its_name() -> None:
    # The library's own series *_created are left out, and nothing else.
    text = metrics_text({"orders_created": Figures(rounds=3)})
    assert 'rebalance_audit_collect_rounds_total{cluster="orders_created"} 3.0' in text
    assert "# HELP rebalance_audit_collect_rounds_created" not in text


def test_troubles_are_told_by_address_code_and_remark(
    tmp_path: Path, cluster: RemoteCluster, capsys: Any
) -> None:
    denied = answering(recorded("494acl_denied"))["127.0.0.1:10981"]
    answers = {**cluster.answers(), "b:10911": denied}
    manners = {"ns2:9876": Manners(refuses=True)}
    metrics = tmp_path / "collect.prom"
    with servers(tmp_path, answers, tuple(cluster.namesrvs), manners) as (_, config):
        arguments = ["--config", config, "--dumps", tmp_path / "dumps", "--metrics", metrics]
        assert cli.main(["collect", *map(str, arguments)]) == 0
    told = capsys.readouterr().err
    assert "ns2:9876: cannot connect: Connection refused" in told
    refused = 'rebalance_audit_collect_errors_total{address="ns2:9876",cluster="default",code="-2"}'
    assert refused in metrics.read_text()


def test_where_no_nameserver_answers_the_command_fails_and_leaves_no_file(
    tmp_path: Path, cluster: RemoteCluster, capsys: Any
) -> None:
    manners = dict.fromkeys(cluster.namesrvs, Manners(refuses=True))
    with servers(tmp_path, cluster.answers(), tuple(cluster.namesrvs), manners) as (_, config):
        assert cli.main(["collect", "--config", str(config), "--dumps", str(tmp_path / "d")]) == 4
    told = capsys.readouterr().err
    assert "no nameserver answers" in told
    assert "ns1:9876: cannot connect: Connection refused" in told
    assert lines_of(tmp_path / "d") == []


def test_nothing_to_collect_is_told(tmp_path: Path, cluster: RemoteCluster, capsys: Any) -> None:
    cluster.members.clear()
    with servers(tmp_path, cluster.answers(), tuple(cluster.namesrvs)) as (_, config):
        assert cli.main(["collect", "--config", str(config), "--dumps", str(tmp_path / "d")]) == 4
    assert "no broker names a group that is wanted" in capsys.readouterr().err


@pytest.mark.long
def test_round_after_round_until_the_time_is_over(tmp_path: Path, cluster: RemoteCluster) -> None:
    namesrvs = tuple(cluster.namesrvs)
    with servers(tmp_path, cluster.answers(), namesrvs) as (_, config):
        given = {"dumps": str(tmp_path / "d"), "every_seconds": 0.1, "for_seconds": 0.55}
        options = load_options(str(config), given, {})
        said: list[str] = []
        run(options, said)
    rounds = lines_of(tmp_path / "d")
    assert 2 <= len(rounds) <= 6
    assert len({line["snapshot_time"] for lines in rounds for line in lines}) == len(rounds)
    assert len(said) == len(rounds)


@pytest.mark.long
def test_a_round_that_fails_is_told_and_the_next_one_goes_on(
    tmp_path: Path, cluster: RemoteCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    complained: list[str] = []

    def fsync(_: int) -> None:
        if len(said) == 2 and not any("a round failed" in each for each in complained):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(dump_folder.os, "fsync", fsync)
    metrics = tmp_path / "m.prom"
    with servers(tmp_path, cluster.answers(), tuple(cluster.namesrvs)) as (_, config):
        given = {"dumps": str(tmp_path / "d"), "every_seconds": 0.1, "for_seconds": 1.45}
        options = load_options(str(config), {**given, "metrics": str(metrics)}, {})
        run(options, said, complained)
    assert len(said) >= 4
    (text,) = [each for each in complained if "a round failed" in each]
    assert "cannot be written" in text
    assert "No space left on device; nothing of it was kept" in text
    assert len(lines_of(tmp_path / "d")) == len(said)
    assert 'rebalance_audit_collect_missed_total{cluster="default"} 0.0' not in metrics.read_text()


def run(options: CollectOptions, said: list[str], complained: list[str] | None = None) -> None:
    complain = (said if complained is None else complained).append
    asyncio.run(collector.collect(options, os.environ, now, said.append, complain))


def now() -> int:
    return time.time_ns() // 1000


@pytest.mark.e2e
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_it_can_be_ended_at_any_moment_and_begun_again(
    tmp_path: Path, cluster: RemoteCluster, end: signal.Signals
) -> None:
    folder = tmp_path / "d"
    manners = dict.fromkeys(cluster.addresses, Manners(delay=0.01))
    with servers(tmp_path, cluster.answers(), tuple(cluster.namesrvs), manners) as (_, config):
        for number in range(2):
            process = command("--config", config, "--dumps", folder, "--every", "0.1")
            while len(lines_of(folder)) < 2 * (number + 1):
                assert process.poll() is None
                time.sleep(0.01)
            time.sleep(0.05 * number)
            process.send_signal(end)
            _, told = process.communicate(timeout=20)
            if end == signal.SIGTERM:
                assert process.returncode == 0, told
                assert "stopped" in told
    whole = {
        sum(line["kind"] == "consumer_connection" for line in lines) for lines in lines_of(folder)
    }
    assert whole == {3}


@pytest.mark.e2e
def test_one_round_that_is_ended_is_not_kept(tmp_path: Path, cluster: RemoteCluster) -> None:
    manners = dict.fromkeys(cluster.addresses, Manners(hangs_after=0))
    with servers(tmp_path, cluster.answers(), tuple(cluster.namesrvs), manners) as (replay, config):
        process = command("--config", config, "--dumps", tmp_path / "d", "--timeout", "60")
        while not replay.requests:
            time.sleep(0.01)
        process.terminate()
        _, told = process.communicate(timeout=20)
    assert process.returncode == 4
    assert "nothing of the round was kept" in told
    assert lines_of(tmp_path / "d") == []


@pytest.mark.long
def test_ten_rounds_of_recorded_answers_are_audited(tmp_path: Path, capsys: Any) -> None:
    """What the frames say: two processes with the id app-DUP in G_DUP and in G_ORDD, and G_OK."""
    exchanges = [each for each in recorded("494") if each.asked.version == 401]
    namesrvs = ("127.0.0.1:9876", "127.0.0.1:9877")
    folder = DumpFolder(tmp_path / "d")
    late = 0

    async def collect() -> None:
        nonlocal late
        async with Replay(answering(exchanges)) as replay:
            options = {"namesrv": namesrvs, "connect_to": replay.connect_to}
            async with client_of(lambda: now() + late, **options) as client:
                collecting = Collector(client, folder)
                for _ in range(10):
                    await collecting.collect()
                    late += 60 * SECOND

    with folder.locked():
        asyncio.run(collect())
    assert len(lines_of(folder.root)) == 10

    output = tmp_path / "out"
    arguments = ["--dumps", folder.root, "--output", output, "--engine", "local", "--quiet"]
    assert cli.main(["run", *map(str, arguments)]) == 0
    rows = {name: table(output, name, capsys) for name in TABLES}
    assert rows["quarantine"] == []
    stacked = {(row["consumer_group"], row["client_id"]) for row in rows["stacked_client_ids"]}
    assert {(group, "10.0.2.10@app-DUP") for group in ("G_DUP", "G_ORDD")} <= stacked
    assert {"G_OK", "G_DUP", "G_ROLL"} <= {row["consumer_group"] for row in rows["group_health"]}
    faulty = {row["consumer_group"] for row in rows["group_faults"]}
    assert "G_DUP" in faulty
    assert "G_OK" not in faulty


TABLES = ("quarantine", "stacked_client_ids", "group_health", "group_faults")


def table(output: Path, name: str, capsys: Any) -> list[dict[str, Any]]:
    capsys.readouterr()
    arguments = ["show", name, "--reports", str(output / "reports"), "--format", "json"]
    assert cli.main(arguments) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.long
def test_live_gives_a_first_verdict_and_a_second_one(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.commands.check._LIVE_APART", 1.0)
    slow = [0.3]

    def collect(*arguments: Any) -> CollectOptions:
        """The first round of a process begins late: imports, connections."""
        time.sleep(slow.pop() if slow else 0)
        return collect_from(*arguments)

    monkeypatch.setattr("jobs.commands.check.collect_from", collect)
    exchanges = [each for each in recorded("494") if each.asked.version == 401]
    namesrvs = ("127.0.0.1:9876", "127.0.0.1:9877")
    # What a file for a loop says of rounds does not count here.
    with servers(tmp_path, answering(exchanges), namesrvs, every_seconds=60.0) as (_, config):
        arguments = ["live", "--config", str(config), "--output", str(tmp_path / "out")]
        assert cli.main([*arguments, "--watch", "0", "--fail-on", "CRITICAL"]) == 0
        first = capsys.readouterr().out
        slow.append(0.3)
        # Not a moment longer than what lasts has to last.
        watch = ["--set", "persistence_seconds=1", "--fail-on", "CRITICAL"]
        assert cli.main([*arguments, *watch, "--language", "zh"]) == 1
    assert "nothing can be seen to last yet" in first
    assert "Nothing lasting was found" in first
    second = capsys.readouterr().out
    assert "second verdict, from 1 s" in second
    assert "have lasting faults" in second
    pages = [each.read_text() for each in sorted((tmp_path / "out").glob("*/report.html"))]
    assert ['lang="zh-CN"' in page for page in pages] == [False, True]


def test_sigterm_after_a_collector_does_what_it_did_before(
    tmp_path: Path, cluster: RemoteCluster
) -> None:
    """Else ``live`` ends without a word between its two collectors."""

    def handler(*_: Any) -> None:
        """Nobody sends one."""

    before = signal.signal(signal.SIGTERM, handler)
    try:
        with servers(tmp_path, cluster.answers(), cluster.namesrvs) as (_, config):
            given = ["--config", str(config), "--dumps", str(tmp_path / "dumps")]
            assert cli.main(["collect", *given]) == 0
            assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)


# Options


def test_the_file_that_is_shown_has_every_option_with_its_default() -> None:
    text = (ROOT / "docs" / "collect" / "collect.toml").read_text(encoding="utf-8")
    shown = tomllib.loads(re.sub(r"(?m)^# (?=\w+ = |\[|\")", "", text))
    options = CollectOptions.model_validate(shown)
    (cluster,) = options.clusters
    assert cluster.tls is not None
    models: list[BaseModel] = [options, cluster, cluster.tls]
    for model in models:
        assert model.model_fields_set == set(type(model).model_fields)
    assert [str(each) for each in cluster.brokers] == ["10.0.0.0/8", "192.168.0.0/16"]

    plain = CollectOptions.model_validate({**tomllib.loads(text), "dumps": "d"})
    least = {"dumps": "d", "clusters": [{"namesrv": plain.clusters[0].namesrv}]}
    assert plain == CollectOptions.model_validate(least)


def test_options_of_a_file_and_of_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "collect.toml"
    path.write_text('dumps = "d"\n[[clusters]]\nname = "east"\nnamesrv = ["a:1"]\n')
    options = load_options(str(path), {"timeout_seconds": 3.0}, {})
    assert (options.dumps, options.timeout_seconds, options.clusters[0].name) == ("d", 3.0, "east")
    assert load_options(None, {"dumps": "d"}, {"namesrv": ["a:1"]}).clusters[0].namesrv == ("a:1",)


@pytest.mark.parametrize(
    ("text", "given", "cluster", "says"),
    [
        (None, {"dumps": "d"}, {}, "expected --namesrv"),
        (None, {}, {"namesrv": ["a:1"]}, "expected --dumps"),
        (None, {"dumps": "d"}, {"namesrv": ["a:b"]}, "expected host:port, came 'a:b'"),
        (None, {"dumps": "d"}, {"namesrv": ["a:1"], "groups": ["("]}, "regular expression"),
        (None, {"dumps": "d"}, {"namesrv": ["a:1"], "without": ["lists"]}, "expected 'routes', "),
        ("[[clusters]]\nnamesrv=['a:1']\n", {"dumps": "d"}, {"name": "x"}, "came also name"),
        ("[[clusters]]\nnamesrv=['a:1']\nnamesrvs=1\n", {"dumps": "d"}, {}, "namesrvs"),
        (
            "[[clusters]]\nnamesrv=['a:1']\n[[clusters]]\nnamesrv=['b:1']\n",
            {"dumps": "d"},
            {},
            "a name for each",
        ),
    ],
)
def test_wrong_options_are_refused_with_what_was_expected(
    tmp_path: Path, text: str | None, given: Any, cluster: Any, says: str
) -> None:
    path = None
    if text is not None:
        path = str(tmp_path / "collect.toml")
        Path(path).write_text(text)
    with pytest.raises(SettingsError, match=says.replace("(", r"\(")):
        load_options(path, given, cluster)


def test_a_secret_in_the_file_is_refused_and_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "collect.toml"
    path.write_text('[[clusters]]\nnamesrv = ["a:1"]\nsecret_key = "top-secret"\n')
    with pytest.raises(SettingsError, match="secret_key is a secret") as refused:
        load_options(str(path), {"dumps": "d"}, {})
    assert "top-secret" not in str(refused.value)


def test_the_account_comes_from_the_environment_or_a_file(tmp_path: Path) -> None:
    assert find_account({}, None) is None
    account = find_account({ACCESS_KEY: "reader", SECRET_KEY: "top-secret"}, None)
    assert account is not None
    assert (account.access_key, account.secret_key) == ("reader", "top-secret")
    with pytest.raises(SettingsError, match="secretKey is empty"):
        find_account({ACCESS_KEY: "reader"}, None)
    tools = tmp_path / "tools.yml"
    tools.write_text("# of mqadmin\naccessKey: rocketmq2\nsecretKey: '12345678'\n")
    assert find_account({ACCESS_KEY: "other", SECRET_KEY: "x"}, str(tools)) == find_account(
        {ACCESS_KEY: "rocketmq2", SECRET_KEY: "12345678"}, None
    )
    tools.write_text("secretKey: top-secret\n")
    with pytest.raises(SettingsError, match="accessKey is empty") as refused:
        find_account({}, str(tools))
    assert "top-secret" not in str(refused.value)
    with pytest.raises(SettingsError, match="FileNotFoundError"):
        find_account({}, str(tmp_path / "nowhere"))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_connections_can_be_encrypted(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=broker"],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    at = "10.0.0.1:10911"
    answers = answering([each._replace(address=at) for each in recorded("494acl")])

    async def ask(tls: Tls | None) -> Answer:
        async with Replay(answers, tls=context) as replay:
            return await asked(replay.connect_to, tls)

    async def asked(connect_to: Mapping[str, str], tls: Tls | None) -> Answer:
        options = {"timeout_seconds": 2, "connect_to": connect_to, "tls": tls}
        async with client_of(lambda: 0, **options) as client:
            return await client.ask(at, members("G_X"))

    async def ask_without_tls(tls: Tls) -> Answer:
        """As a 4.9.4 with tls.server.mode=disabled: it ends what begins with a handshake."""
        server = await asyncio.start_server(lambda _, it: it.transport.abort(), "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            return await asked({at: f"127.0.0.1:{port}"}, tls)

    def reason(tls: Tls | None, ask: Callable[[Any], Any] = ask) -> str:
        answer = asyncio.run(ask(tls))
        assert answer.code == -2
        return str(answer.remark)

    assert asyncio.run(ask(Tls(verify="chain", authorities=str(certificate)))).code == 206
    assert asyncio.run(ask(Tls(verify="none"))).code == 206
    # The certificate is for another name, and by nobody that is trusted.
    for tls in (Tls(authorities=str(certificate)), Tls(verify="chain")):
        assert "; [clusters.tls] in the file of --config says what to trust" in reason(tls)
    # One side alone encrypts: real servers of 4.9.4 end the connection without a word.
    assert "; a server that takes TLS alone does so: --tls" in reason(None)
    assert "; a server without TLS does so" in reason(Tls(verify="none"), ask_without_tls)
    with pytest.raises(SettingsError, match=r"tls: .*nowhere"):
        Tls(authorities=str(tmp_path / "nowhere")).to_context()


def test_the_secret_is_in_no_dump_no_metric_and_no_message(
    tmp_path: Path, cluster: RemoteCluster, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ACCESS_KEY, "reader")
    monkeypatch.setenv(SECRET_KEY, "top-secret")
    denied = answering(recorded("494acl_badkey"))["127.0.0.1:10981"]
    answers = {**cluster.answers(), "b:10911": denied}
    with servers(tmp_path, answers, tuple(cluster.namesrvs)) as (replay, config):
        arguments = [
            "--config",
            config,
            "--dumps",
            tmp_path / "d",
            "--metrics",
            tmp_path / "m.prom",
        ]
        assert cli.main(["collect", *map(str, arguments)]) == 0
        assert all(frame.fields["AccessKey"] == "reader" for _, frame in replay.requests)
    written = [each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()]
    written += [gzip.decompress(each.read_bytes()) for each in tmp_path.rglob("*.gz")]
    printed = capsys.readouterr()
    assert b"top-secret" not in b"".join(written)
    assert "top-secret" not in printed.out + printed.err
    assert os.environ[SECRET_KEY] == "top-secret"

"""``check`` of a cluster: it asks round after round, until there is an answer."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobs.cli import main
from jobs.collect.collect_options import CollectOptions
from jobs.commands import check as command
from jobs.errors import SettingsError
from tests.collect.test_collector import servers
from tests.support.remote_cluster import RemoteCluster

pytestmark = pytest.mark.long

#: What is there for so long counts; rounds are a quarter of a second apart.
SET = ("--set", "persistence_seconds=1")
#: A process more has the client id of the first, as every broker sees it.
SECOND_X = ("x", "10.0.0.9:77")
#: What a check says, and its exit code.
Check = Callable[..., tuple[int, str]]


def stacked_cluster() -> RemoteCluster:
    """Two processes of G share an id; H is well."""
    made = RemoteCluster()
    made.add_group("G", ["x", "y"], ["T"])
    made.add_group("H", ["z"], ["U"])
    for listed in made.members["G"].values():
        listed.append(SECOND_X)
    return made


@pytest.fixture
def cluster() -> RemoteCluster:
    return stacked_cluster()


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reports on such a cluster."""
    place, made = tmp_path_factory.mktemp("reported"), stacked_cluster()
    with servers(place, made.answers(), made.namesrvs) as (_, config):
        rounds = ["--every", "0.25", "--for", "1.5", "--quiet"]
        dumps = str(place / "dumps")
        assert main(["collect", "--config", str(config), "--dumps", dumps, *rounds]) == 0
    run = ["run", "--dumps", dumps, "--output", str(place), "--engine", "local", "--quiet", *SET]
    assert main(run) == 0
    return place / "reports"


@pytest.fixture
def check(
    cluster: RemoteCluster,
    reports: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Check]:
    """A check of G, of which there is a report; nothing of it is left on the disk."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "_LIVE_APART", 0.5)
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    with servers(tmp_path, cluster.answers(), cluster.namesrvs) as (_, config):

        def check(*options: str) -> tuple[int, str]:
            capsys.readouterr()
            given = ["check", "--reports", str(reports), "--config", str(config), "--group", "G"]
            code = main([*given, *options])
            assert not list(place.iterdir())
            return code, capsys.readouterr().out

        yield check


def test_it_ends_by_itself_when_it_can_say_that_the_finding_is_gone(
    check: Check, cluster: RemoteCluster
) -> None:
    code, said = check("--for", "0")
    assert (code, said.partition(":")[0][:20]) == (5, "Cannot be said befor")
    for listed in cluster.members["G"].values():
        listed.remove(SECOND_X)
    code, said = check("--for", "10m")
    assert (code, said.partition(":")[0]) == (0, "Gone")


def test_it_ends_by_itself_when_the_finding_lasts_again(check: Check) -> None:
    code, said = check("--for", "10m")
    assert (code, said.partition(":")[0]) == (1, "Still there")


@pytest.mark.parametrize("offsets_stay", [False, True])
def test_a_group_that_no_broker_knows_any_more_was_deleted(
    check: Check, cluster: RemoteCluster, offsets_stay: bool
) -> None:
    del cluster.members["G"]
    if not offsets_stay:
        cluster.topics["G"].clear()
    code, said = check("--for", "10m")
    assert (code, said.startswith("Gone: all 12 findings of G: no broker knows")) == (0, True)


def test_a_broker_that_does_not_answer_makes_nothing_gone(
    check: Check, cluster: RemoteCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for address in cluster.addresses:
        cluster.members["G"][address] = [("x", "10.0.0.9:1")]
    cluster.brokers["c"] = {0: "c:10911"}  # nobody listens there
    code, said = check("--for", "2")
    assert (code, said.partition(":")[0]) == (5, "Cannot be said yet")


@pytest.mark.parametrize("group", ["G", "G-1.%a", "G|H"])
def test_no_other_group_and_cluster_is_asked(group: str) -> None:
    given = {"dumps": "d", "clusters": [{"name": name, "namesrv": ["ns:1"]} for name in "ab"]}
    several = CollectOptions.model_validate(given)
    (cluster,) = several.only("b", group).clusters
    assert cluster.name == "b"
    assert [*filter(cluster.takes_group, [group, "H", "G-1x%a"])] == [group]
    given["clusters"] = [{"namesrv": ["ns:1"]}]
    (cluster,) = CollectOptions.model_validate(given).only("C", group).clusters
    assert cluster.clusters == "C"
    with pytest.raises(SettingsError, match="no cluster 'c' among those to collect"):
        several.only("c", group)


def test_ctrl_c_ends_it_and_leaves_nothing_behind(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command.time, "sleep", stop)
    assert check("--for", "10m") == (130, "")

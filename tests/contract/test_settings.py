"""The settings as a contract: what ships loads, what is wrong is told, all of it at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.errors import SettingsError
from jobs.settings import Settings, find_settings, load_settings


def test_the_file_that_ships_loads_and_states_the_defaults(repository: Path) -> None:
    shipped = load_settings(repository / "conf" / "audit.toml")
    assert [each.groups for each in shipped.strategies] == ["G_S10"]
    assert shipped.model_copy(update={"strategies": ()}) == Settings()


def test_settings_are_found_here_before_those_beside_the_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert [each.groups for each in find_settings().strategies] == ["G_S10"]
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "audit.toml").write_text("persistence_seconds = 7\n")
    assert find_settings() == Settings(persistence_seconds=7)
    assert find_settings(["persistence_seconds=8"]) == Settings(persistence_seconds=8)


def test_every_error_is_listed_with_its_path(tmp_path: Path) -> None:
    path = tmp_path / "audit.toml"
    path.write_text(
        "persistence_seconds = -1\n"
        "persistance = 3\n"
        'default_strategy = "AVERAGE"\n'
        'client_log_time_zone = "Asia/Atlantis"\n'
        "[severity]\n"
        "warning_probability = 2.0\n"
        "[[strategies]]\n"
        'groups = "("\n'
        'name = "AVG"\n'
        "[[strategies]]\n"
        'groups = ".*"\n'
        'name = "CONSISTENT_HASH"\n'
        "params = { virtual_nodes = 3 }\n"
    )
    with pytest.raises(SettingsError) as raised:
        load_settings(path)
    text = str(raised.value)
    for part in (
        str(path),
        "persistence_seconds:",
        "persistance:",
        "default_strategy:",
        "client_log_time_zone: Value error, expected a time zone such as Asia/Shanghai or GMT+8",
        "severity.warning_probability:",
        "strategies.0.groups:",
        "strategies.1:",
        "virtual_nodes",
    ):
        assert part in text, part


def test_overrides_are_read_as_toml_and_else_as_text() -> None:
    settings = load_settings(
        None,
        ["persistence_seconds=60", "severity.critical_probability=0.9", "paths.reports=s3://b/r"],
    )
    assert settings.persistence_seconds == 60
    assert settings.severity.critical_probability == 0.9
    assert settings.paths.reports == "s3://b/r"


@pytest.mark.parametrize("name", ["Asia/Shanghai", "UTC", "GMT+8", "GMT-03:30", "UTC+05:45"])
def test_a_time_zone_is_a_place_or_an_offset(name: str) -> None:
    settings = load_settings(None, [f"client_log_time_zone={name}"])
    assert settings.client_log_time_zone == name


@pytest.mark.parametrize("name", ["", "GMT+15", "GMT8", "+08:00", "CET ", "asia/shanghai"])
def test_another_zone_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match=r"client_log_time_zone: .*expected a time zone"):
        load_settings(None, [f'client_log_time_zone="{name}"'])

    assert load_settings(None, [" paths.reports =a=b"]).paths.reports == "a=b"


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("persistence_seconds", "--set: expected a.b=c, came 'persistence_seconds'"),
        ("=3", "--set: expected a.b=c, came '=3'"),
        (" =3", "--set: expected a.b=c, came ' =3'"),
        ("persistence_seconds.x=3", "--set: persistence_seconds.x: persistence_seconds is no sec"),
    ],
)
def test_a_malformed_override_is_refused(override: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        load_settings(None, ["persistence_seconds=60", override])


@pytest.mark.parametrize("text", ["persistence_seconds = ", "\x00", "a = b = c"])
def test_a_file_that_is_no_toml_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "audit.toml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=r"audit\.toml: expected TOML: "):
        load_settings(path)


def test_equal_settings_have_equal_hashes_and_others_not() -> None:
    assert Settings().fingerprint() == load_settings(None).fingerprint()
    assert Settings().fingerprint() != Settings(persistence_seconds=60).fingerprint()


def test_what_is_told_of_a_run_does_not_change_it() -> None:
    others = load_settings(None, ["alerts.severity=CRITICAL", "alerts.attempts=1"])
    assert others != Settings()
    assert others.fingerprint() == Settings().fingerprint()


@pytest.mark.parametrize("base", ["javascript:alert(1)", "data:text/html,x", "FTP://wiki/x"])
def test_a_link_that_runs_something_is_refused(base: str) -> None:
    with pytest.raises(SettingsError, match=r"paths\.finding_pages: .*expected an http"):
        load_settings(None, [f"paths.finding_pages={base}"])


@pytest.mark.parametrize("base", ["https://wiki/x", "HTTP://wiki", "file:///x", "../findings"])
def test_a_link_is_a_url_or_a_path(base: str) -> None:
    assert load_settings(None, [f"paths.finding_pages={base}"]).paths.finding_pages == base

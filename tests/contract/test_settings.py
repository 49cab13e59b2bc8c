"""The settings as a contract: what ships loads, what is wrong is told, all of it at once."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from jobs.collect.collect_options import CollectOptions
from jobs.config.bounds import Bounds
from jobs.config.choices import DEFAULT_SETTINGS
from jobs.config.settings import Settings, find_settings, load_settings, variables_of
from jobs.config.toml_files import Section, checked, names_of, source_of, variable_of
from jobs.errors import SettingsError
from tests.support.truth import SAMPLE_SETTINGS


def refused(*given: Any) -> str:
    """What is said of settings that are refused."""
    with pytest.raises(SettingsError) as raised:
        load_settings(*given)
    return str(raised.value)


def test_the_file_that_ships_loads_and_states_the_defaults(repository: Path) -> None:
    assert load_settings(repository / "conf" / "audit.toml") == Settings()


def test_the_example_of_strategies_in_the_file_that_ships_can_be_taken_as_it_is(
    tmp_path: Path, repository: Path
) -> None:
    text = (repository / "conf" / "audit.toml").read_text()
    _, header, example = text.partition("# [[strategies]]\n")
    path = tmp_path / "audit.toml"
    path.write_text((header + example).replace("# ", ""))
    (strategy,) = load_settings(path).strategies
    assert strategy.params == {"consumeridcs": ["room1", "room2"]}


def test_the_settings_of_the_sample_change_two_settings_alone() -> None:
    sample = load_settings(SAMPLE_SETTINGS)
    assert [each.groups for each in sample.strategies] == ["G_S10"]
    assert sample == Settings(persistence_seconds=60, strategies=sample.strategies)


def test_settings_are_found_here_before_those_beside_the_code(here: Path) -> None:
    assert find_settings((), {}) == Settings()
    (here / "conf").mkdir()
    (here / "conf" / "audit.toml").write_text("persistence_seconds = 7\n")
    assert find_settings((), {}) == Settings(persistence_seconds=7)
    assert find_settings(["persistence_seconds=8"], {}) == Settings(persistence_seconds=8)


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
    text = refused(path)
    for part in (
        str(path),
        "persistence_seconds:",
        "persistance:",
        "default_strategy:",
        "client_log_time_zone: expected a time zone such as Asia/Shanghai or GMT+8",
        "severity.warning_probability:",
        "strategies.0.groups:",
        "strategies.1:",
        "virtual_nodes",
    ):
        assert part in text, part


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("persistence_seconds", "60", 60),
        ("severity.critical_probability", "0.9", 0.9),
        ("paths.reports", "s3://b/r", "s3://b/r"),
        (" paths.reports ", "a=b", "a=b"),
        *[
            ("client_log_time_zone", zone, zone)
            for zone in ("Asia/Shanghai", "UTC", "GMT+8", "GMT-03:30", "UTC+05:45")
        ],
        *[
            ("paths.finding_pages", base, base)
            for base in ("https://wiki/x", "HTTP://wiki", "file:///x", "../findings")
        ],
    ],
)
def test_overrides_are_read_as_toml_and_else_as_text(name: str, text: str, value: object) -> None:
    found: object = load_settings(None, [f"{name}={text}"])
    for part in name.strip().split("."):
        found = getattr(found, part)
    assert found == value


@pytest.mark.parametrize("text", ["persistence_seconds = ", "\x00", "a = b = c"])
def test_a_file_that_is_no_toml_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "audit.toml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=r"audit\.toml: expected TOML: "):
        load_settings(path)


def test_equal_settings_have_equal_hashes_and_others_not() -> None:
    assert Settings().fingerprint() == load_settings(None).fingerprint()
    assert Settings().fingerprint() != Settings(persistence_seconds=60).fingerprint()


def test_what_is_told_of_a_run_and_how_long_it_is_kept_do_not_change_it() -> None:
    others = load_settings(
        None, ["alerts.severity=CRITICAL", "alerts.attempts=1", "retention.keep_days=90"]
    )
    assert others != Settings()
    assert others.fingerprint() == Settings().fingerprint()


#: What stumbled: an override, and what is said of it.
REFUSED = [
    ("persistence_seconds=" + "[" * 20_000, "nested too deep"),
    ("persistence_seconds=" + "9" * 5000, "Exceeds the limit"),
    ("persistence_seconds=0x" + "f" * 9000, "expected numbers of 64 bits"),
    ("severity.warning_probability=nan", "expected a finite number"),
    ("alerts.timeout_seconds=inf", "expected a finite number"),
    ("paths.reports=2026-01-01", "paths.reports: expected a text"),
    ('paths.reports="a\\u0000b"', "without the character NUL"),
    ("paths.reports=\udcff", "expected UTF-8"),
    # A second line would be a second key.
    (
        "persistence_seconds=1\nheartbeat_expiry_seconds=2",
        "persistence_seconds: expected a whole number",
    ),
    ('masking.patterns=["' + "(" * 3000 + '"]', "expected a regular expression"),
    ('masking.patterns=["a{1,99999999999999999999}"]', "the repetition number is too large"),
    ("a" + ".b" * 20_000 + "=1", "expected at most 32 names"),
    ("a..b=1", "expected a.b=c"),
    (".=1", "expected a.b=c"),
    ('"persistence_seconds"=1', "expected a.b=c"),
    ("\udcff=1", "expected a.b=c"),
    ("default_strategy=" + "x" * 100_000, "characters)"),
    ("persistence_seconds", "--set: expected a.b=c, came 'persistence_seconds'"),
    *[(f"{name}=3", f"--set: expected a.b=c, came '{name}=3'") for name in ("", " ")],
    ("persistence_seconds.x=3", "persistence_seconds.x: expected a whole number, came {'x': 3}"),
    *[(f"retention.keep_days={each}", "keep_days: ") for each in (0, -1, 1.5, 36501, '"90d"')],
    # For how many days reports are kept would be 1.
    *[
        (f"{name}=true", f"{name}: expected a whole number")
        for name in ("bounds.topic_queues", "persistence_seconds", "retention.keep_days")
    ],
    # What runs something is no link.
    *[
        (f"paths.finding_pages={base}", "expected an http")
        for base in ("javascript:alert(1)", "data:text/html,x", "FTP://wiki/x")
    ],
    *[
        (f'client_log_time_zone="{zone}"', "client_log_time_zone: expected a time zone")
        for zone in ("", "GMT+15", "GMT8", "+08:00", "CET ", "asia/shanghai")
    ],
]


@pytest.mark.parametrize(("override", "said"), REFUSED, ids=lambda each: each[:40])
def test_what_no_setting_can_be_is_refused_in_few_words(override: str, said: str) -> None:
    told = refused(None, [override])
    assert said in told
    assert len(told) < 1200


def test_an_override_before_it_is_no_section_of_another() -> None:
    said = "--set persistence_seconds.x: persistence_seconds is no sec"
    assert said in refused(None, ["persistence_seconds=60", "persistence_seconds.x=3"])


@given(st.binary(max_size=200) | st.text("[]{}=,.\"'#\n\\ux01 abc", max_size=200).map(str.encode))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_file_has_is_settings_or_is_refused_by_its_name(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "audit.toml"
    path.write_bytes(content)
    try:
        assert load_settings(path).fingerprint()
    except SettingsError as error:
        assert f"{path}:" in str(error).partition("\n")[0]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff\xfe", "expected a text in UTF-8, came UTF-16: save the file as UTF-8"),
        (b"a = 1\nb = '\xfc'", "UTF-8, came the byte 0xfc in line 2: save the file as UTF-8"),
        (b"a = " + b"[" * 100_000, "expected TOML: lists or tables are nested too deep"),
        (b"[" + b"a." * 500 + b"a]", "nested more than 32 deep"),
        (b"a = 1\n" * 2, "expected TOML: "),
        (b"#" * (5 << 20), "expected at most 4,194,304 bytes, came more: is it this file?"),
        (b"\n".join(b"a%d = 1" % number for number in range(5000)), "and 4950 more"),
        (b'"\\u001b[31m" = 1', r"  \x1b[31m: there is no such setting"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_file_that_is_none_of_settings_is_refused(
    tmp_path: Path, content: bytes, said: str
) -> None:
    path = tmp_path / "audit.toml"
    path.write_bytes(content)
    told = refused(path)
    assert str(path) in told
    assert said in told


def test_what_is_no_file_is_refused_and_a_pipe_is_read(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=f"{tmp_path} cannot be read: .*Is a directory"):
        load_settings(tmp_path)
    with pytest.raises(SettingsError, match="/dev/zero: expected at most"):
        load_settings("/dev/zero")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("persistence_seconds = 7\n",))
    writer.start()
    assert load_settings(pipe).persistence_seconds == 7
    writer.join()


def test_a_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "audit.toml"
    path.write_text("\ufeffpersistence_seconds = 7\n", encoding="utf-8")
    assert load_settings(path).persistence_seconds == 7


def test_which_file_is_read_is_that_of_the_current_directory_before_that_beside_the_code(
    here: Path, repository: Path
) -> None:
    assert source_of("x.toml", DEFAULT_SETTINGS) == f"{here}/x.toml"
    assert source_of(None, DEFAULT_SETTINGS) == f"{repository}/conf/audit.toml"
    assert source_of(None, Path("conf/gone.toml")) is None
    (here / "conf").mkdir()
    (here / "conf" / "audit.toml").touch()
    assert source_of(None, DEFAULT_SETTINGS) == f"{here}/conf/audit.toml"


def test_an_installed_wheel_reads_the_settings_that_it_brought(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever changes them there expects it; a wheel has nothing beside its packages."""
    monkeypatch.setattr(
        "jobs.config.toml_files.__file__", str(here / "site" / "jobs" / "config" / "toml_files.py")
    )
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(here / name))
    assert source_of(None, DEFAULT_SETTINGS) is None
    installed = here / "data" / "share" / "rebalance-audit" / "conf" / "audit.toml"
    installed.parent.mkdir(parents=True)
    installed.write_text("persistence_seconds = 7\n")
    assert source_of(None, DEFAULT_SETTINGS) == str(installed)
    assert find_settings((), {}) == Settings(persistence_seconds=7)


def test_a_key_of_the_masking_that_is_empty_is_refused(tmp_path: Path) -> None:
    """The hashes would else be plain ones, without a word."""
    path = tmp_path / "key"
    path.write_text(" \n")
    masking = load_settings(None, [f"masking.key_file={path}"]).masking
    with pytest.raises(SettingsError, match=f"masking.key_file {path}: expected a key"):
        masking.to_masking()


def sections(section: type[Section] = Section) -> Iterator[type[Section]]:
    """The parts of every file: of settings, and of what is collected."""
    for each in section.__subclasses__():
        yield each
        yield from sections(each)


NUMBERS = {
    f"{section.__name__}.{name}": section
    for section in (*sections(), Bounds)
    for name, type_ in get_type_hints(section).items()
    if {int, float} & {type_, *get_args(type_)}
}


def test_the_numbers_of_every_file_are_found() -> None:
    assert {"RetentionSetting.keep_days", "Email.port", "Bounds.line_bytes"} <= NUMBERS.keys()
    assert NUMBERS["CollectOptions.every_seconds"] is CollectOptions


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("value", [True, "7"])
def test_no_number_takes_a_truth_value_or_a_text(number: str, value: object) -> None:
    _, _, name = number.partition(".")
    with pytest.raises(ValidationError) as raised:
        TypeAdapter(NUMBERS[number]).validate_python({name: value})
    assert (name,) in {error["loc"] for error in raised.value.errors()}


@pytest.mark.parametrize(
    ("override", "line"),
    [
        ("persistance_seconds=3", "there is no such setting: did you mean persistence_seconds?"),
        # The name is right, and its section is missing.
        ("keep_days=3", "there is no such setting: did you mean retention.keep_days?"),
        ("alerts.sned=NEW", "there is no such setting: did you mean alerts.send or"),
        ("xyz=3", "there is no such setting"),
        ("persistence_seconds=true", "expected a whole number, came True"),
        ("severity.critical_probability=2", "expected 1.0 or less, came 2"),
        ("publishing.wait_seconds=-1", "expected 0.0 or more, came -1"),
        ("paths=3", "expected a section, came 3"),
        ("paths.dumps=3", "expected a list, came 3"),
    ],
)
def test_an_override_that_is_wrong_is_blamed_itself(
    override: str, line: str, tmp_path: Path
) -> None:
    """And not the file, which is as it should be."""
    file = tmp_path / "audit.toml"
    file.write_text("persistence_seconds = 60\n")
    path, told = override.partition("=")[0], refused(file, [override])
    assert f"settings of the command line:\n  --set {path}: {line}" in told
    assert str(file) not in told
    # Where the file is wrong as well, each line says whose it is.
    file.write_text("persistence_second = 60\n")
    said = refused(file, [override]).splitlines()
    assert said[0] == f"settings {file}:"
    assert any(each.startswith(f"  --set {path}: ") for each in said)
    assert any(each.startswith("  persistence_second: there is no such") for each in said)


def test_the_environment_goes_before_the_file_and_set_before_both(tmp_path: Path) -> None:
    file = tmp_path / "audit.toml"
    file.write_text("persistence_seconds = 1\nroute_max_age_seconds = 1\n[paths]\nreports = 'x'\n")
    environment = {
        "REBALANCE_AUDIT_PERSISTENCE_SECONDS": "2",
        "REBALANCE_AUDIT_PATHS__REPORTS": "/r=1",
        "REBALANCE_AUDIT_PATHS__DUMPS": '["a", "b"]',
        "REBALANCE_AUDIT_STRATEGIES": '[{groups = "G.*", name = "AVG"}]',
        # Empty is as if it were not there.
        "REBALANCE_AUDIT_LANGUAGE": "",
    }
    found = load_settings(file, ["persistence_seconds=3"], environment)
    assert (found.persistence_seconds, found.route_max_age_seconds) == (3, 1)
    assert (found.paths.reports, found.paths.dumps) == ("/r=1", ("a", "b"))
    assert [each.groups for each in found.strategies] == ["G.*"]
    assert load_settings(file, [], environment).persistence_seconds == 2


@pytest.mark.parametrize(
    ("variable", "value", "line"),
    [
        ("PERSISTENCE_SECONDS", "60 s", "expected a whole number, came '60 s'"),
        ("PATHS__DUMPS", "dumps/", "expected a list, came 'dumps/'"),
        ("ALERTS__SEND", "SOMETIMES", "expected 'NEW', 'OPEN' or 'ALWAYS', came 'SOMETIMES'"),
        ("PATHS__REPROTS", "x", "there is no such setting: did you mean REBALANCE_AUDIT_PATHS__"),
        ("PERSISTANCE_SECONDS", "3", "there is no such setting: did you mean REBALANCE_AUDIT_PERS"),
        ("KEEP__DAYS", "3", "there is no such setting"),
        ("PERSISTENCE_SECONDS__X", "3", "expected a whole number, came {'x': 3}"),
    ],
)
def test_a_variable_that_is_wrong_is_named_with_what_was_expected(
    variable: str, value: str, line: str
) -> None:
    told = refused(Path("/dev/null"), [], {f"REBALANCE_AUDIT_{variable}": value})
    assert told.startswith(f"settings of the environment:\n  REBALANCE_AUDIT_{variable}: {line}")


def test_each_of_several_places_is_named_by_what_is_wrong_there() -> None:
    first, *lines = refused(None, ["x=1"], {"REBALANCE_AUDIT_PATHS__X": "1"}).splitlines()
    assert first == "settings of the command line and of the environment:"
    named = [line.partition(": ")[0].strip() for line in lines]
    assert named == ["REBALANCE_AUDIT_PATHS__X", "--set x"]


@pytest.mark.parametrize(
    "variable",
    # Secrets have readers of their own; the others are what Kubernetes adds of a service.
    [
        *("WEBHOOK", "SECRET", "WEBHOOK_ON_CALL", "SECRET_STRATEGIES", "SECRET_ON__CALL"),
        *("ACCESS_KEY", "SECRET_KEY", "SECURITY_TOKEN", "PORT", "PORT_80_TCP", "SERVICE_HOST"),
    ],
)
def test_a_variable_that_is_no_setting_is_left_alone(variable: str) -> None:
    assert load_settings(None, [], {f"REBALANCE_AUDIT_{variable}": "x"}) == Settings()


def test_every_setting_has_a_variable() -> None:
    environment = {variable_of(name): "x" for name in names_of(Settings)}
    assert set(variables_of(environment).values()) == set(names_of(Settings))


def test_no_error_is_in_the_words_of_a_library(tmp_path: Path) -> None:
    file = tmp_path / "audit.toml"
    file.write_text(
        'language = 3\nbounds = 1\nstrategies = [{}]\npersistence_seconds = 1.5\nx = "y"\n'
        '[alerts]\nattempts = "x"\ndestinations = [{name = 3}]\nemail = {recipients = []}\n'
    )
    told = refused(file)
    for words in ("Input should", "Extra inputs", "Field required", "Value error", "type="):
        assert words not in told


class Pair(BaseModel):
    both: tuple[int, ...] = Field(min_length=2)


@pytest.mark.parametrize(
    ("both", "is_short"), [([], True), ([1], True), (["x"], False), ([1, "x"], False)]
)
def test_a_list_is_called_too_short_only_where_nothing_in_it_is_wrong(
    both: list[object], is_short: bool
) -> None:
    with pytest.raises(SettingsError) as error:
        checked(Pair, "pair.toml", {"both": both})
    assert ("both: expected 2 of them or more" in str(error.value)) == is_short
    assert (", came 'x'" in str(error.value)) != is_short

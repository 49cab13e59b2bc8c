"""The known issues as a contract: what ships loads, what is wrong is told, all of it at once."""

from __future__ import annotations

import tomllib
from datetime import date
from pathlib import Path

import pytest

from jobs.config.known_issues import KnownIssue, KnownIssues, load_known_issues
from jobs.errors import SettingsError


def test_the_file_that_ships_has_no_entry_and_its_examples_are_right(
    repository: Path, tmp_path: Path
) -> None:
    shipped = repository / "conf" / "known_issues.toml"
    assert load_known_issues(shipped) == KnownIssues()
    _, _, examples = shipped.read_text().partition("# [[known_issues]]")
    path = tmp_path / "examples.toml"
    path.write_text(
        "\n".join(line.removeprefix("#") for line in f"# [[known_issues]]{examples}".splitlines())
    )
    first, second = load_known_issues(path).known_issues
    assert first.groups == "G_BILLING"
    assert first.expires == date(2027, 1, 31)
    assert second.clients == r"10\.0\.7\..*"


def test_entries_are_found_here_before_those_beside_the_code(here: Path) -> None:
    assert load_known_issues(None) == KnownIssues()
    (here / "conf").mkdir()
    (here / "conf" / "known_issues.toml").write_text(
        '[[known_issues]]\ngroups = "G"\nreason = "why"\nexpires = 2026-12-31\n'
    )
    (entry,) = load_known_issues(None).known_issues
    assert entry == KnownIssue(groups="G", reason="why", expires=date(2026, 12, 31))


def test_every_error_is_listed_with_its_path(tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    path.write_text(
        "[[known_issues]]\n"
        'groups = "("\n'
        'kind = "ORPHANED"\n'
        'kinds = ["ORPHAN"]\n'
        "expires = 20261231\n"
        "[[known_issues]]\n"
        'reason = " "\n'
        'queues = [-1.5, true, "1"]\n'
    )
    with pytest.raises(SettingsError) as raised:
        load_known_issues(path)
    text = str(raised.value)
    for part in (
        str(path),
        "known_issues.0.groups: expected a regular expression",
        "known_issues.0.kind: there is no such key: did you mean known_issues.0.kinds",
        "known_issues.0.kinds.0: expected 'ORPHANED', 'DUPLICATE'",
        "known_issues.0.reason: expected a value, there is none",
        "known_issues.0.expires: expected a date such as 2026-12-31, came 20261231",
        "known_issues.1.groups: expected a value, there is none",
        "known_issues.1.reason:",
        "known_issues.1.expires: expected a value, there is none",
        "known_issues.1.queues.0: expected a whole number, came -1.5",
        # Else they would be queue 1.
        "known_issues.1.queues.1: expected a whole number, came True",
        "known_issues.1.queues.2: expected a whole number, came '1'",
    ):
        assert part in text, part


def test_two_entries_with_one_reason_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    path.write_text(2 * '[[known_issues]]\ngroups = "G"\nreason = "OPS-1"\nexpires = 2026-12-31\n')
    with pytest.raises(SettingsError, match=r"different reason in every.*twice: \['OPS-1'\]"):
        load_known_issues(path)


def test_a_file_that_was_named_has_to_be_there_and_is_toml(tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    with pytest.raises(SettingsError, match=r"known\.toml"):
        load_known_issues(path)
    path.write_text("known_issues = ")
    with pytest.raises(SettingsError, match=r"known\.toml: expected TOML"):
        load_known_issues(path)


def test_an_entry_holds_up_to_its_date_and_on_it() -> None:
    text = '[[known_issues]]\ngroups = "G"\nreason = "why"\nexpires = 2026-11-20\n'
    known = KnownIssues.model_validate(tomllib.loads(text))
    held = [len(known.in_force(date(2026, 11, day))) for day in (1, 20, 21)]
    assert held == [1, 1, 0]

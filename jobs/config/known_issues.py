"""The known issues: conf/known_issues.toml, checked whole before anything runs.

A finding that an entry matches is shown and marked with the entry's reason, and ``--fail-on`` does
not count it. So is a topic that was not audited, where the kinds of the entry name its coverage.

An entry holds up to its date of expiry and on it; whether it does is judged by the date that is
audited, so that a night that is run again gives the same reports. The entries are not a part of the
settings' fingerprint. Counts include known issues, and ``known`` beside them has those alone.
"""

from datetime import date
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, field_validator, model_validator

from ..declared.kinds import FINDING_KINDS
from ..verdict.gaps import ACTIONS
from .choices import DEFAULT_KNOWN_ISSUES
from .settings import NamePattern, Section, WholeNumber, checked, find_text, parse_toml, read_text

#: Kinds of an entry: a kind of finding, or a coverage with which nothing was audited.
KNOWN_KINDS = (*FINDING_KINDS, *ACTIONS)


class KnownIssue(Section):
    """A known issue: its findings, its reason and its end; patterns go over the whole name.

    Where several names are concerned (the clients of a fault, the topics of a client id), the
    pattern has to match each; a finding that has no such name is not matched by a pattern for it.
    """

    groups: NamePattern
    clusters: NamePattern | None = None
    topics: NamePattern | None = None
    clients: NamePattern | None = None
    brokers: NamePattern | None = None
    queues: tuple[WholeNumber, ...] | None = None
    kinds: tuple[Literal[KNOWN_KINDS], ...] | None = None  # type: ignore[valid-type]
    reason: str = Field(min_length=1, pattern=r"\S")
    expires: date

    @field_validator("expires", mode="before")
    @classmethod
    def _is_date(cls, value: Any) -> Any:
        if isinstance(value, date | str):
            return value
        raise ValueError("expected a date such as 2026-12-31")

    def patterns(self) -> dict[str, str]:
        """The patterns that are given, by key."""
        keys = ("groups", "clusters", "topics", "clients", "brokers")
        return {key: getattr(self, key) for key in keys if getattr(self, key) is not None}


class KnownIssues(Section):
    """All entries, in the order of the file: the first that matches a finding marks it."""

    model_config = ConfigDict(title="known issues")

    known_issues: tuple[KnownIssue, ...] = ()

    @model_validator(mode="after")
    def _have_reasons_of_their_own(self) -> "KnownIssues":
        reasons = [known_issue.reason for known_issue in self.known_issues]
        twice = sorted({reason for reason in reasons if reasons.count(reason) > 1})
        if twice:
            # A finding is marked with the reason alone: it has to show which entry it is.
            raise ValueError(f"expected a different reason in every entry, twice: {twice}")
        return self

    def in_force(self, audited: date) -> tuple[KnownIssue, ...]:
        """The entries that hold on the audited date."""
        return tuple(
            known_issue for known_issue in self.known_issues if audited <= known_issue.expires
        )


def load_known_issues(path: str | Path | None) -> KnownIssues:
    """The entries of a TOML file; None: of conf/known_issues.toml, here or beside the code.

    Raises SettingsError with every error that was found.
    """
    found = (str(path), read_text(path)) if path else find_text(DEFAULT_KNOWN_ISSUES)
    return KnownIssues() if found is None else checked(KnownIssues, found[0], parse_toml(*found))

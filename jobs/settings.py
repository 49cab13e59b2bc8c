"""The settings: conf/audit.toml, checked whole before anything runs.

Every error is listed with its path; unknown keys are refused, for a misspelt key that is ignored
is a setting that silently does not hold.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args
from urllib.parse import urlsplit
from zoneinfo import available_timezones

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from jobs.errors import SettingsError
from jobs.masking import Masking
from rebalance_core import AllocationError, make_strategy

#: How an offset is written where there is no place to name, as in the clients' own log patterns.
_OFFSET = re.compile(r"(GMT|UTC)[+-]([0-9]|0[0-9]|1[0-4])(:[0-5][0-9])?")

Severity = Literal["INFO", "WARNING", "CRITICAL"]
SEVERITIES: tuple[Severity, ...] = ("INFO", "WARNING", "CRITICAL")


class Section(BaseModel):
    """A part of a settings file: what it does not know it refuses."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def is_pattern(pattern: str) -> str:
    """The pattern, if it is a regular expression; else ValueError."""
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"expected a regular expression, came {pattern!r}: {error}") from error
    return pattern


#: The names of ``masking.DEFAULT_PATTERNS``.
DefaultPattern = Literal["BINDER_KEY", "NAMED_SECRET", "URL_PASSWORD", "RANDOM_TOKEN"]

#: A regular expression over a whole name.
NamePattern = Annotated[str, AfterValidator(is_pattern)]


class Paths(Section):
    """Where things lie; local paths or any URI that Spark and PyArrow reach."""

    dumps: tuple[str, ...] = ()
    snapshots: str | None = None
    reports: str | None = None
    finding_pages: str | None = None

    @field_validator("finding_pages")
    @classmethod
    def _is_link(cls, base: str | None) -> str | None:
        # It becomes a link of the page: no javascript:, no data:.
        if base is None or urlsplit(base).scheme in ("", "http", "https", "file"):
            return base
        raise ValueError("expected an http(s) or file URL, or a path")


class StrategySetting(Section):
    """The strategy of some groups, and the parameters that nothing but the settings can tell."""

    groups: NamePattern
    clients: NamePattern = ".*"
    name: str
    params: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _is_strategy(self) -> StrategySetting:
        try:
            make_strategy(self.name, dict(self.params))
        except AllocationError as error:
            raise ValueError(str(error)) from error
        return self

    def to_rule(self) -> dict[str, Any]:
        """The arguments of the core's ``StrategyRule``, as plain values."""
        return {
            "groups": self.groups,
            "clients": self.clients,
            "name": self.name,
            "params": dict(self.params),
        }


class SeverityThresholds(Section):
    """From which probability on a persistent finding is a warning, or critical."""

    warning_probability: float = Field(default=0.01, ge=0, le=1)
    critical_probability: float = Field(default=0.5, ge=0, le=1)


class MaskingSetting(Section):
    """What is taken for a secret in a client id, and what the hash in its place is made with."""

    defaults: tuple[DefaultPattern, ...] = get_args(DefaultPattern)
    patterns: tuple[NamePattern, ...] = ()
    key_file: str | None = None

    def to_masking(self) -> Masking:
        """The setting as plain values; SettingsError where the file of the key cannot be read."""
        key = "" if self.key_file is None else read_text(self.key_file).strip()
        return Masking(self.defaults, self.patterns, key.encode())


class Alerts(Section):
    """Whom the command ``alert`` tells, and of what."""

    webhook_file: str | None = None
    tell: Literal["NEW", "OPEN", "ALWAYS"] = "NEW"
    severity: Severity = "WARNING"
    groups_told: int = Field(default=10, ge=1, le=50)
    worst_groups: int = Field(default=20, ge=0, le=1000)
    timeout_seconds: float = Field(default=10, gt=0, le=300)
    attempts: int = Field(default=3, ge=1, le=10)


class Settings(Section):
    """All settings; the comments of conf/audit.toml are their reference."""

    paths: Paths = Paths()
    persistence_seconds: int = Field(default=180, ge=0)
    route_max_age_seconds: int = Field(default=900, ge=0)
    heartbeat_expiry_seconds: int = Field(default=130, ge=0)
    client_log_time_zone: str | None = None
    default_strategy: str = "AVG"
    strategies: tuple[StrategySetting, ...] = ()
    severity: SeverityThresholds = SeverityThresholds()
    allowed_quarantine_share: float = Field(default=0.01, ge=0, le=1)
    masking: MaskingSetting = MaskingSetting()
    alerts: Alerts = Alerts()

    @field_validator("default_strategy")
    @classmethod
    def _is_strategy(cls, name: str) -> str:
        try:
            make_strategy(name)
        except AllocationError as error:
            raise ValueError(str(error)) from error
        return name

    @field_validator("client_log_time_zone")
    @classmethod
    def _is_time_zone(cls, name: str | None) -> str | None:
        if name is None or name in available_timezones() or _OFFSET.fullmatch(name):
            return name
        raise ValueError("expected a time zone such as Asia/Shanghai or GMT+8")

    def fingerprint(self) -> str:
        """A hash of the settings that the reports follow from: equal settings, equal hash."""
        # What is told of a published run does not change it.
        text = json.dumps(self.model_dump(mode="json", exclude={"alerts"}), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


#: Where the settings are looked for when none are named.
DEFAULT_SETTINGS = Path("conf/audit.toml")


def load_settings(path: str | Path | None, overrides: Sequence[str] = ()) -> Settings:
    """The settings of a TOML file (None: all defaults) with ``a.b=c`` overrides.

    An override's value is read as TOML, and as text where it is none. Raises SettingsError with
    every error that was found.
    """
    if path is None:
        return _settings("the built-in defaults", "", overrides)
    return _settings(str(path), read_text(path), overrides)


def find_settings(overrides: Sequence[str] = ()) -> Settings:
    """The settings where none are named: conf/audit.toml here, else the one beside the packages."""
    found = find_text(DEFAULT_SETTINGS)
    return load_settings(None, overrides) if found is None else _settings(*found, overrides)


def read_text(path: str | Path) -> str:
    """The text of a file that was named; SettingsError where it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"settings {path}: {error}") from error


def find_text(default: Path) -> tuple[str, str] | None:
    """Where a file lies that was not named, and its text: here, else beside the packages.

    The latter is so in a checkout, and in the zip that spark-submit gets.
    """
    if default.is_file():
        return str(default), read_text(default)
    beside = Path(__file__).parent.parent / default
    loader: Any = sys.modules[__name__].__loader__
    try:
        return str(beside), loader.get_data(str(beside)).decode("utf-8")
    except OSError:
        return None


def _settings(source: str, text: str, overrides: Sequence[str]) -> Settings:
    values = parse_toml(source, text)
    for override in overrides:
        _apply(values, override)
    return checked(Settings, source, values)


def parse_toml(source: str, text: str) -> dict[str, Any]:
    """The values of a TOML text; SettingsError where it is none."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"settings {source}: expected TOML: {error}") from error


_Model = TypeVar("_Model", bound=BaseModel)


def checked(model: type[_Model], source: str, values: dict[str, Any]) -> _Model:
    """The values as the model; SettingsError with every error and its path."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        lines = [
            f"  {'.'.join(str(part) for part in each['loc']) or '(top)'}: {each['msg']}"
            f", came {each['input']!r}"
            for each in error.errors()
        ]
        raise SettingsError(f"settings {source}:\n" + "\n".join(lines)) from error


def _apply(values: dict[str, Any], override: str) -> None:
    key, separator, text = override.partition("=")
    if not separator or not key.strip():
        raise SettingsError(f"--set: expected a.b=c, came {override!r}")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    *sections, last = key.strip().split(".")
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            raise SettingsError(f"--set: {key}: {section} is no section")
    values[last] = value

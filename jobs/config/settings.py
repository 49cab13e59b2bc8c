"""The settings: conf/audit.toml and the environment, checked whole before anything runs.

Every error is listed with its path; unknown keys are refused, for a misspelt key that is ignored
is a setting that silently does not hold. So are variables that are meant as settings: a library
that reads variables (pydantic-settings) ignores those, has words of its own for errors, and takes
JSON where files and --set take TOML.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit
from zoneinfo import available_timezones

from pydantic import (
    Field,
    model_validator,
)

from rebalance_core import make_strategy
from rebalance_core.errors import nearest

from ..errors import SettingsError
from ..languages.language import ENGLISH, Language, language, time_zone
from .bounds import DEFAULT_BOUNDS, Bounds
from .choices import DEFAULT_SETTINGS, LANGUAGES, Severity, WebhookService
from .masking import Masking
from .toml_files import (
    PREFIX,
    NamePattern,
    Number,
    Section,
    WholeNumber,
    checked,
    excerpt,
    find_text,
    parse_toml,
    read_text,
    set_value,
    that,
)

#: The form of an offset where there is no place to name, as in the clients' log patterns.
_OFFSET = re.compile(r"(GMT|UTC)[+-]([0-9]|0[0-9]|1[0-4])(:[0-5][0-9])?")

#: The names of ``texts.secret_patterns.DEFAULT_PATTERNS``.
DefaultPattern = Literal["BINDER_KEY", "NAMED_SECRET", "URL_PASSWORD", "RANDOM_TOKEN"]


def _is_link(base: str) -> None:
    # It becomes a link of the page: no javascript:, no data:.
    if urlsplit(base).scheme not in ("", "http", "https", "file"):
        raise ValueError("expected an http(s) or file URL, or a path")


class Paths(Section):
    """Places of files: local paths, or any URI that Spark and PyArrow reach."""

    #: The dumps of `run` and `ingest` without `--dumps`: files, folders or patterns.
    dumps: tuple[str, ...] = ()
    #: The folder of the snapshot tables, for commands without `--snapshots`.
    snapshots: str | None = None
    #: The folder of the reports, for commands without `--reports`.
    reports: str | None = None
    #: The URL of the pages on the findings, to which page and ticket then link.
    finding_pages: Annotated[str, that(_is_link)] | None = None


class StrategySetting(Section):
    """The strategy of some groups; the first entry that matches group and client counts.

    An observed strategy (running info, client log) wins over the name given here, but no dump shows
    the parameters of `CONFIG`, `MACHINE_ROOM` and `MACHINE_ROOM_NEARBY`: without an entry such a
    group is not audited, and `group_health` has the reason. A name means what the client's SDK
    computes under it: give client-go's `virtual_node_count`, for Go itself has no default.
    """

    #: The groups: a regular expression over the whole name.
    groups: NamePattern
    #: The clients of these groups, likewise.
    clients: NamePattern = ".*"
    #: `AVG`, `AVG_BY_CIRCLE`, `CONSISTENT_HASH`, `CONFIG`, `MACHINE_ROOM`, or
    #: `MACHINE_ROOM_NEARBY-` with the strategy within a room.
    name: str
    #: Its parameters. `CONSISTENT_HASH`: `virtual_node_count = 10`. `CONFIG`: `config_queues =
    #: [["topic", "broker-a", 0]]`. `MACHINE_ROOM`: `consumeridcs = ["room1"]`.
    #: `MACHINE_ROOM_NEARBY-*`: `broker_room = { "broker-a" = "room1" }` and `client_room`, or
    #: `broker_room_patterns` and `client_room_patterns`: lists of `{ pattern = "broker-[ab]", room
    #: = "room1" }`; the first that matches the whole name counts, and a group `(?P<room>...)` may
    #: replace `room`.
    params: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _is_strategy(self) -> "StrategySetting":
        make_strategy(self.name, dict(self.params))
        return self


class SeverityThresholds(Section):
    """Probabilities from which a persistent finding is a warning, or critical."""

    #: A persistent finding is `INFO` below it. From it on an orphan whose messages pile up is
    #: `CRITICAL`.
    warning_probability: Number = Field(default=0.01, ge=0, le=1)
    #: The probability from which on an orphan is `CRITICAL`, and a duplicate in a group that
    #: consumes in order.
    critical_probability: Number = Field(default=0.5, ge=0, le=1)


class MaskingSetting(Section):
    """Secrets in client ids: what counts as one, and the key of the hash in its place."""

    #: Kinds of secrets: `BINDER_KEY` is `accessKey|secretKey|topic|pid`, `NAMED_SECRET`
    #: `password=...` and the like, `URL_PASSWORD` `://user:password@`, in `s3://` the key id, too,
    #: `RANDOM_TOKEN` a long random text beside a `|`.
    defaults: tuple[DefaultPattern, ...] = get_args(DefaultPattern)
    #: More: regular expressions; the group `(?P<secret>...)` counts, else all that matches.
    patterns: tuple[NamePattern, ...] = ()
    #: A file with a key for the hash. By a plain hash anybody can check a guess at a weak secret.
    key_file: str | None = None

    def to_masking(self) -> Masking:
        """The setting as plain values; SettingsError where the file of the key cannot be read."""
        key = "" if self.key_file is None else read_text(self.key_file).strip()
        if self.key_file is not None and not key:
            raise SettingsError(f"masking.key_file {self.key_file}: expected a key, it is empty")
        return Masking(self.defaults, self.patterns, key.encode())


#: An address without a name: what strangers could put into a header is refused.
EmailAddress = Annotated[str, Field(pattern=r"^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9.-]+$")]


class Email(Section):
    """A mail server, and who gets mail from whom; its password is a secret, and no setting."""

    #: The mail server.
    host: str = Field(min_length=1)
    #: Its port.
    port: WholeNumber = Field(default=587, ge=1, le=65535)
    #: The encryption of the connection; `TLS` is mostly port 465.
    security: Literal["STARTTLS", "TLS", "NONE"] = "STARTTLS"
    #: The address of the sender.
    sender: EmailAddress
    #: The addresses that get the mail.
    recipients: tuple[EmailAddress, ...] = Field(min_length=1)
    #: The name that logs in; the secret is its password.
    user: str | None = None

    @model_validator(mode="after")
    def _logs_in_over_tls(self) -> "Email":
        if self.user is not None and self.security == "NONE":
            raise ValueError("expected security STARTTLS or TLS with a user: a password is sent")
        return self


#: The id by which services call people.
MentionId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@+-]*$")]


class Destination(Section):
    """Destination of alerts; URL and secret come from the environment or from these files."""

    #: The service. Without it the host of the URL shows which; `JSON` is for all others.
    service: Literal[WebhookService, "APPRISE", "EMAIL"] | None = None
    #: A file whose first line is the URL, which is a secret; `REBALANCE_AUDIT_WEBHOOK` in the
    #: environment overrides it.
    webhook_file: str | None = None
    #: A file with the other secret: the key that DingTalk and Feishu sign with, PagerDuty's routing
    #: key, the password of the mail server. `REBALANCE_AUDIT_SECRET` overrides it.
    secret_file: str | None = None
    #: The ids that a message calls, by a name in `owners`. Slack: a user (`U...`) or a
    #: user group (`S...`). Feishu: an open id (`ou_...`). DingTalk and WeCom: a user id or a mobile
    #: number.
    mentions: dict[str, MentionId] | None = None
    email: Email | None = None

    @model_validator(mode="after")
    def _has_what_its_service_needs(self) -> "Destination":
        if self.service == "EMAIL" and self.email is None:
            raise ValueError("expected a section email, for service is EMAIL")
        if self.service not in ("EMAIL", None) and self.email is not None:
            raise ValueError(f"expected no section email, for service is {self.service}")
        return self


class NamedDestination(Destination):
    """One destination of several, which has the settings of a single one as well."""

    #: Its name, with which its variables end: `REBALANCE_AUDIT_WEBHOOK_ON_CALL` for `on-call`.
    name: str = Field(pattern=r"^[a-z][a-z0-9-]{0,39}$")
    #: Overrides the one of `alerts`.
    severity: Severity | None = None
    #: The groups that it gets: a regular expression over the whole name.
    groups: NamePattern = ".*"


class Publishing(Section):
    """Publication of a run's tables as the ones that count."""

    #: A run waits for so long for another one that writes the same tables, then it is refused.
    wait_seconds: Number = Field(default=600, ge=0, le=86_400)


class RetentionSetting(Section):
    """Retention of published reports."""

    #: After each run so many days of reports are kept, counted back from the last published date.
    #: Without it all are. `rebalance-audit prune` does the same by hand.
    keep_days: WholeNumber | None = Field(default=None, ge=1, le=36_500)


class Alerts(Destination):
    """Messages that the command `alert` sends, and to whom."""

    #: The owners of groups, whom a message names: by a regular expression over the whole name of
    #: the group, as `"ORDER_.*" = "team orders"`. The first that matches counts.
    owners: dict[NamePattern, str] = Field(default_factory=dict)
    #: Several destinations in place of one.
    destinations: tuple[NamedDestination, ...] = ()
    #: `NEW`: findings that this destination did not get yet, of whatever date; again where one is
    #: worse, or was over and is back. `OPEN`: all that are not over, every time. `ALWAYS`: as
    #: `OPEN`, and that there are none.
    send: Literal["NEW", "OPEN", "ALWAYS"] = "NEW"
    #: Less severe findings are not sent; known issues, and what passed by itself, never are.
    severity: Severity = "WARNING"
    #: Groups, each with a topic, that have their own line in one message.
    groups_shown: WholeNumber = Field(default=10, ge=1, le=50)
    #: Groups that have metrics.
    worst_groups: WholeNumber = Field(default=20, ge=0, le=1000)
    #: An attempt to post ends after so many seconds.
    timeout_seconds: Number = Field(default=10, gt=0, le=300)
    #: The attempts to post, where the failure may pass.
    attempts: WholeNumber = Field(default=3, ge=1, le=10)
    #: The link to the page in each message; `{date}` is the date.
    report_url: str | None = Field(default=None, pattern=r"^https?://[!-~]+$")

    @model_validator(mode="after")
    def _is_one_or_several(self) -> "Alerts":
        names = [destination.name for destination in self.destinations]
        if len(set(names)) < len(names):
            raise ValueError(f"expected destinations of different names, came {names}")
        unknown = {
            owner
            for destination in (self, *self.destinations)
            for owner in destination.mentions or ()
            if owner not in self.owners.values()
        }
        if unknown:
            raise ValueError(f"expected mentions of names in owners, came {sorted(unknown)}")
        alone = [name for name in Destination.model_fields if getattr(self, name) is not None]
        if names and alone:
            raise ValueError(
                f"expected {', '.join(alone)} in each of the destinations, came both there and here"
            )
        return self


def _is_time_zone(name: str) -> None:
    if name not in available_timezones() and not _OFFSET.fullmatch(name):
        raise ValueError("expected a time zone such as Asia/Shanghai or GMT+8")


def _is_language(code: str) -> None:
    if code not in LANGUAGES:
        raise ValueError(f"expected one of the languages {', '.join(LANGUAGES)}")


class Settings(Section):
    """All settings; docs/settings.md is made of the comments and docstrings here."""

    paths: Paths = Paths()
    #: A finding that was seen for at least so many seconds is `PERSISTENT`, a shorter one
    #: `TRANSIENT`. A crashed client leaves the lists after 120 s; a heartbeat (30 s) and a
    #: rebalance (20 s) follow.
    persistence_seconds: WholeNumber = Field(default=180, ge=0)
    #: A topic's route holds until a poll brings another, but no longer than so many seconds after
    #: the last poll: then the topic is not audited.
    route_max_age_seconds: WholeNumber = Field(default=900, ge=0)
    #: A member that a broker still lists so many seconds after its last heartbeat is a ghost. A
    #: broker drops a channel that was silent for 120 s, and looks every 10 s. In lists that stay
    #: the same for longer every connection is alive: copies of an id are processes.
    heartbeat_expiry_seconds: WholeNumber = Field(default=130, ge=0)
    #: The time zone of the clients' logs: a name such as `Asia/Shanghai`, or `GMT+8`, the default
    #: of 5.1 and later (4.x: the local time of the host). Without it each log's offset from UTC is
    #: inferred; set the zone where logs are gathered hours later, or where it changed within the
    #: dumps.
    client_log_time_zone: Annotated[str, that(_is_time_zone)] | None = None
    #: The strategy of clients for which none was observed or configured.
    default_strategy: Annotated[str, that(make_strategy)] = "AVG"
    strategies: tuple[StrategySetting, ...] = ()
    severity: SeverityThresholds = SeverityThresholds()
    #: The share of input lines, or of their bytes if that is more, that may be quarantined. Above
    #: it the exit code is 3 where most lines of some kind are, and above ten times that share in
    #: any case. A dump file with a larger share of lines that no collector wrote is damaged.
    allowed_quarantine_share: Number = Field(default=0.01, ge=0, le=1)
    #: The language of what people read: `en`, or `zh` for Chinese; `--language` overrides it for
    #: one command.
    language: Annotated[str, that(_is_language)] = ENGLISH.code
    #: The time zone of what people read (pages, tickets, alerts, the console, explain and what-if),
    #: and of `--at`, `--since` and `--until` without a zone: `UTC`, `local` (that of the machine),
    #: or a name such as `Asia/Shanghai`. Tables, metrics, CSV and JSON have UTC, and a date is a
    #: day of UTC.
    display_time_zone: Annotated[str, that(time_zone)] = "UTC"
    masking: MaskingSetting = MaskingSetting()
    bounds: Bounds = DEFAULT_BOUNDS
    publishing: Publishing = Publishing()
    retention: RetentionSetting = RetentionSetting()
    alerts: Alerts = Alerts()

    def overrides(self) -> list[str]:
        """The arguments of ``--set`` to judge as these settings do: all that are not defaults.

        >>> Settings(persistence_seconds=60, strategies=()).overrides()
        ['persistence_seconds=60']
        """
        judged = flat(self.model_dump(mode="json", include=_JUDGED))
        return [f"{name}={_as_toml(value)}" for name, value in judged if value != _DEFAULTS[name]]

    @property
    def reader(self) -> Language:
        """The language and the zone of what people read."""
        return language(self.language, self.display_time_zone)

    @property
    def console_language(self) -> Language:
        """The language of the lines of a run, which are English."""
        return language(ENGLISH.code, self.display_time_zone)

    def fingerprint(self) -> str:
        """A hash of the settings that the reports follow from: equal settings, equal hash."""
        # How a published run is shown and kept does not change it.
        others = {"alerts", "display_time_zone", "language", "publishing", "retention"}
        values = self.model_dump(mode="json", exclude=others)
        text = json.dumps(values, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


#: Settings by which ``explain`` and ``what-if`` judge.
_JUDGED = {
    "persistence_seconds",
    "route_max_age_seconds",
    "heartbeat_expiry_seconds",
    "default_strategy",
    "strategies",
    "severity",
}


def flat(values: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, Any]]:
    """The settings of a dump, with the names of their sections before theirs.

    >>> list(flat({"severity": {"warning_probability": 0.1}, "language": "en"}))
    [('severity.warning_probability', 0.1), ('language', 'en')]
    """
    for name, value in values.items():
        if isinstance(value, dict):
            yield from flat(value, f"{within}{name}.")
        else:
            yield f"{within}{name}", value


_DEFAULTS = dict(flat(Settings().model_dump(mode="json", include=_JUDGED)))


def _as_toml(value: Any) -> str:
    """A value as TOML has it; nothing of it is null."""
    if isinstance(value, dict):
        there = {key: part for key, part in value.items() if part is not None}
        return f"{{{', '.join(f'{json.dumps(key)} = {_as_toml(there[key])}' for key in there)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_as_toml, value))}]"
    return json.dumps(value)


#: The names of settings that --set takes.
_KEY = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")
_VARIABLE = re.compile(PREFIX + r"(?!WEBHOOK|SECRET|ACCESS_KEY)([A-Z0-9_]+)")


#: The settings where there is no file.
_BUILT_IN = ("the built-in defaults", "")


def load_settings(
    path: str | Path | None,
    overrides: Sequence[str] = (),
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Settings:
    """The settings of a TOML file (None: all defaults) with ``a.b=c`` overrides.

    Before the overrides the variables of an environment count (``variables_of``). A value of both
    is read as TOML, and as text where it is none. Raises SettingsError with every error that was
    found.
    """
    if path is None:
        return _settings(*_BUILT_IN, overrides, environment)
    try:
        text = read_text(path)
    except SettingsError as error:
        if not Path(path).is_file():
            error.add_note("rebalance-audit init writes files of settings")
        raise
    return _settings(str(path), text, overrides, environment)


def find_settings(overrides: Sequence[str], environment: Mapping[str, str]) -> Settings:
    """The settings where none are named: conf/audit.toml here, else the one beside the packages."""
    return _settings(*(find_text(DEFAULT_SETTINGS) or _BUILT_IN), overrides, environment)


def variables_of(environment: Mapping[str, str]) -> dict[str, str]:
    """The settings that variables of an environment are meant as, by variable; empty ones are none.

    Kubernetes gives each pod variables of its services (``REBALANCE_AUDIT_PORT_80_TCP``): what has
    no ``__`` and is near no setting is not ours.

    >>> variables_of({"REBALANCE_AUDIT_PATHS__REPORTS": "/r", "REBALANCE_AUDIT_WEBHOOK": "x"})
    {'REBALANCE_AUDIT_PATHS__REPORTS': 'paths.reports'}
    """
    found = {}
    for variable, text in sorted(environment.items()):
        match = _VARIABLE.fullmatch(variable)
        name = match[1].lower().replace("__", ".") if match and text else ""
        if "." in name or (name and nearest(name, Settings.model_fields)):
            found[variable] = name
    return found


def _settings(
    source: str, text: str, overrides: Sequence[str], environment: Mapping[str, str]
) -> Settings:
    values = parse_toml(source, text)
    given = {}
    for variable, setting in variables_of(environment).items():
        set_value(values, setting, environment[variable], variable)
        given[setting] = variable
    for override in overrides:
        key, separator, value = override.partition("=")
        setting = key.strip()
        if not separator or not _KEY.fullmatch(setting):
            raise SettingsError(f"--set: expected a.b=c, came {excerpt(repr(override))}")
        given[setting] = f"--set {setting}"
        set_value(values, setting, value, given[setting])
    return checked(Settings, source, values, given)

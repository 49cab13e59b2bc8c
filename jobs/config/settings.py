"""The settings: conf/audit.toml and the environment, checked whole before anything runs.

Every error is listed with its path; unknown keys are refused, for a misspelt key that is ignored
is a setting that silently does not hold. So are variables that are meant as settings: a library
that reads variables (pydantic-settings) ignores those, has words of its own for errors, and takes
JSON where files and --set take TOML.
"""

import hashlib
import json
import re
import sys
import sysconfig
import tomllib
import warnings
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeVar, get_args
from urllib.parse import urlsplit
from zoneinfo import available_timezones

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    Strict,
    ValidationError,
    model_validator,
)

from rebalance_core import make_strategy
from rebalance_core.errors import nearest

from ..errors import SettingsError
from ..languages.language import ENGLISH, Language, language, time_zone
from ..texts.shown import did_you_mean, visible
from .bounds import DEFAULT_BOUNDS, Bounds
from .choices import DEFAULT_SETTINGS, LANGUAGES, Severity, WebhookService
from .masking import Masking

#: The form of an offset where there is no place to name, as in the clients' log patterns.
_OFFSET = re.compile(r"(GMT|UTC)[+-]([0-9]|0[0-9]|1[0-4])(:[0-5][0-9])?")

#: A number as a file has it: ``true`` is none, and would else be 1.
WholeNumber = Annotated[int, Strict()]
Number = Annotated[float, Strict()]


class Section(BaseModel):
    """A part of a settings file: what it does not know it refuses."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def that(check: Callable[[str], object]) -> AfterValidator:
    """Lets a text through, as it is, that a function takes without a ValueError."""

    def checked_text(text: str) -> str:
        check(text)
        return text

    return AfterValidator(checked_text)


def _is_pattern(pattern: str) -> None:
    """ValueError where it is no regular expression.

    How long it takes is not looked at: a pattern such as ``(a+)+b`` is the operator's to avoid.
    """
    try:
        with warnings.catch_warnings():
            # Python warns of what a later version may read otherwise; that is no error today.
            warnings.simplefilter("ignore", FutureWarning)
            re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"expected a regular expression, came {pattern!r}: {error}") from error


#: The names of ``secret_patterns.DEFAULT_PATTERNS``.
DefaultPattern = Literal["BINDER_KEY", "NAMED_SECRET", "URL_PASSWORD", "RANDOM_TOKEN"]

#: A regular expression over a whole name.
NamePattern = Annotated[str, that(_is_pattern)]


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
        there = {key: each for key, each in value.items() if each is not None}
        return f"{{{', '.join(f'{json.dumps(key)} = {_as_toml(there[key])}' for key in there)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_as_toml, value))}]"
    return json.dumps(value)


#: A file of settings or known issues has some kilobytes; what is larger is another file.
_MOST_FILE_BYTES = 4 << 20
#: Tables and lists within each other: settings have four.
_DEEPEST = 32
#: The most errors that are listed, each with so many characters of what is wrong and of what came.
_MOST_ERRORS, _LONGEST = 50, 400
#: The names of settings that --set takes.
_KEY = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")
#: The environment variables of settings; those of secrets have one reader each.
_PREFIX = "REBALANCE_AUDIT_"
_VARIABLE = re.compile(_PREFIX + r"(?!WEBHOOK|SECRET|ACCESS_KEY)([A-Z0-9_]+)")


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


def variable_of(setting: str) -> str:
    """The environment variable of a setting.

    >>> variable_of("paths.reports")
    'REBALANCE_AUDIT_PATHS__REPORTS'
    """
    return _PREFIX + setting.upper().replace(".", "__")


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


def read_text(path: str | Path) -> str:
    """The text of a file that was named; SettingsError where it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            # A device or a pipe may have no end.
            content = file.read(_MOST_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SettingsError(f"{path} cannot be read: {reason}; check the path") from error
    return _decoded(path, content)


def _decoded(path: str | Path, content: bytes) -> str:
    if len(content) > _MOST_FILE_BYTES:
        raise SettingsError(
            f"{path}: expected at most {_MOST_FILE_BYTES:,} bytes, came more: is it this file?"
        )
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        is_utf16 = content.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
        came = "UTF-16" if is_utf16 else f"the byte {content[error.start]:#04x} in line {line}"
        raise SettingsError(
            f"{path}: expected a text in UTF-8, came {came}: save the file as UTF-8"
        ) from error


def find_text(default: Path) -> tuple[str, str] | None:
    """Finds a file that was not named: its path and its text, here, else as it ships."""
    if default.is_file():
        return str(default.absolute()), read_text(default)
    return shipped_text(default)


def shipped_text(name: Path) -> tuple[str, str] | None:
    """Finds a file of the project: its path and its text, beside the packages, else installed.

    Beside the packages it is in a checkout, and in the zip that spark-submit gets.
    """
    beside = Path(__file__).parents[2] / name
    loader: Any = sys.modules[__name__].__loader__
    try:
        content = loader.get_data(str(beside))
    except OSError:
        installed = installed_folder() / name
        return (str(installed), read_text(installed)) if installed.is_file() else None
    return str(beside), _decoded(beside, content)


def installed_folder() -> Path:
    """The folder that a wheel brings besides its packages: settings, pages on the findings."""
    return Path(sysconfig.get_path("data")) / "share" / "rebalance-audit"


def source_of(named: str | None, default: Path) -> str | None:
    """The file that is read: the one that was named, else the one that is found; None: none."""
    if named:
        return str(Path(named).absolute())
    found = find_text(default)
    return None if found is None else found[0]


def _settings(
    source: str, text: str, overrides: Sequence[str], environment: Mapping[str, str]
) -> Settings:
    values = parse_toml(source, text)
    given = {}
    for variable, setting in variables_of(environment).items():
        _set(values, setting, environment[variable], variable)
        given[setting] = variable
    for override in overrides:
        key, separator, value = override.partition("=")
        setting = key.strip()
        if not separator or not _KEY.fullmatch(setting):
            raise SettingsError(f"--set: expected a.b=c, came {_shortened(repr(override))}")
        given[setting] = f"--set {setting}"
        _set(values, setting, value, given[setting])
    return checked(Settings, source, values, given)


def parse_toml(source: str, text: str) -> dict[str, Any]:
    """The values of a TOML text; SettingsError where it is none."""
    try:
        return _loaded(text.removeprefix("\ufeff"))
    except ValueError as error:
        raise SettingsError(
            f"{source}: expected TOML: {visible(str(error))}; mend it there"
        ) from error


def _loaded(text: str) -> dict[str, Any]:
    """The values of a TOML text; ValueError where it is none, or has what no setting can be."""
    try:
        values = tomllib.loads(text)
    except RecursionError:
        raise ValueError("lists or tables are nested too deep") from None
    # Not by recursion: a key such as a.a.a makes tables as deep as it is long.
    inner: list[tuple[Any, int]] = [(values, 0)]
    while inner:
        value, depth = inner.pop()
        if depth > _DEEPEST:
            raise ValueError(f"lists or tables are nested more than {_DEEPEST} deep")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ValueError("expected numbers of 64 bits, came a larger one")
        if isinstance(value, str) and "\0" in value:
            raise ValueError("expected texts without the character NUL")
        children = value.values() if isinstance(value, dict) else value
        if isinstance(value, dict | list):
            inner += [(child, depth + 1) for child in children]
    return values


_Model = TypeVar("_Model", bound=BaseModel)


#: The expected values, by pydantic's type of an error; the context has its numbers.
_EXPECTED = {
    "missing": "expected a value, there is none",
    "int_type": "expected a whole number",
    "float_type": "expected a number",
    "finite_number": "expected a finite number",
    "string_type": "expected a text",
    "bool_type": "expected true or false",
    "tuple_type": "expected a list",
    **dict.fromkeys(("dict_type", "model_type", "dataclass_type"), "expected a section"),
    "greater_than": "expected more than {gt}",
    "greater_than_equal": "expected {ge} or more",
    "less_than_equal": "expected {le} or less",
    "literal_error": "expected {expected}",
    "ip_any_network": "expected a network as 10.0.0.0/8",
    "string_too_short": "expected a text of {min_length} characters or more",
    "string_pattern_mismatch": "expected a text like {pattern}",
    "too_short": "expected {min_length} of them or more",
}
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
_NOTHING_CAME = ("missing", *_UNKNOWN)


def checked(
    model: type[_Model],
    source: str,
    values: dict[str, Any],
    given: Mapping[str, str] = MappingProxyType({}),
) -> _Model:
    """The values as the model; SettingsError with every error, its path and where that is from.

    ``given``: the paths that did not come from the source, and the option or variable of each.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        lines: list[str] = []
        places: set[str] = set()
        errors = error.errors()
        for each in errors:
            within = (other["loc"][: len(each["loc"])] == each["loc"] for other in errors)
            if each["type"] == "too_short" and sum(within) > 1:
                continue  # what is wrong in the list is not counted, and is said
            path = ".".join(map(str, each["loc"]))
            name = _given_as(path, each, given)
            wrong = _shortened(
                f"  {name or path or '(top)'}: {_problem_of(model, path, each, name)}"
            )
            is_said = each["type"] in _NOTHING_CAME or ", came " in each["msg"]
            came = "" if is_said else f", came {each['input']!r}"
            lines.append(wrong + _shortened(came))
            is_variable = name.startswith(_PREFIX)
            places.add(name and f"of the {'environment' if is_variable else 'command line'}")
        if len(lines) > _MOST_ERRORS:
            lines[_MOST_ERRORS:] = [f"  and {len(lines) - _MOST_ERRORS} more"]
        place = " and ".join(sorted(places)) if all(places) else visible(source)
        kind = model.model_config.get("title", "settings")
        raise SettingsError(f"{kind} {place}:\n" + "\n".join(lines)) from error


def _given_as(path: str, error: Mapping[str, Any], given: Mapping[str, str]) -> str:
    """The option or variable that a path came by, with what is below it; empty: the source."""
    for setting, name in reversed(tuple(given.items())):
        if f"{path}.".startswith(f"{setting}."):
            return name + path.removeprefix(setting)
        # It made a section where there is none; what does not fit together may be the file's.
        if setting.startswith(f"{path}.") and error["type"] != "value_error":
            return name
    return ""


def _problem_of(model: type[BaseModel], path: str, error: Mapping[str, Any], given: str) -> str:
    """The problem of a value, in our words."""
    if error["type"] in _UNKNOWN:
        section, _, last = path.rpartition(".")
        if any(isinstance(part, int) for part in error["loc"]):
            there = _names_of_entry(model, error["loc"][:-1])
            # A variable has the whole list: an entry has none of its own.
            before = "" if given.startswith(_PREFIX) else f"{section}."
            near = [f"{before}{each}" for each in nearest(last, there)]
        else:
            there = list(names_of(model))
            # A name may be right, and its section missing.
            near = nearest(path, there) or [each for each in there if each.endswith(f".{last}")]
            if given.startswith(_PREFIX):
                near = [variable_of(each) for each in near]
        other_file = "" if given else "; is it the right file?"
        what = "key" if "title" in model.model_config else "setting"
        return f"there is no such {what}{did_you_mean(near) or other_file}"
    expected = _EXPECTED.get(error["type"])
    if expected is None:
        return str(error["msg"]).removeprefix("Value error, ")
    return expected.format(**error.get("ctx", {}))


def _names_of_entry(model: Any, path: Iterable[str | int]) -> list[str]:
    """The names of an entry in a list, such as ``strategies.0``."""
    for name in path:
        if isinstance(name, str):
            kind = model.model_fields[name].annotation
            model = (get_args(kind) or (kind,))[0]
    return list(names_of(model))


def names_of(model: type[BaseModel]) -> Iterator[str]:
    """The names of all settings of a model, with those of their sections before them."""
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from (f"{name}.{each}" for each in names_of(kind))
        elif is_dataclass(kind):
            yield from (f"{name}.{each.name}" for each in fields(kind))
        else:
            yield name


def _shortened(text: str) -> str:
    shown = visible(text)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}... ({len(text):,} characters)"


def _set(values: dict[str, Any], setting: str, text: str, given: str) -> None:
    """Sets a value by its path; ``given``: the option or variable that has it."""
    *sections, last = setting.split(".")
    if len(sections) > _DEEPEST:
        raise SettingsError(f"{_shortened(given)}: expected at most {_DEEPEST} names")
    value = _value(given, text)
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            raise SettingsError(f"{given}: {section} is no section")
    values[last] = value


def _value(given: str, text: str) -> Any:
    """The value of an option or variable: what the text is in TOML, else the text itself."""
    try:
        values = _loaded(f"value = {text}")
    except tomllib.TOMLDecodeError:
        values = {}
    except ValueError as error:
        raise SettingsError(f"{_shortened(given)}: {error}") from error
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise SettingsError(f"{given}: expected UTF-8, came {_shortened(repr(text))}") from error
    # A text of several lines may be a value and further keys: then it is a text.
    return values["value"] if values.keys() == {"value"} else text

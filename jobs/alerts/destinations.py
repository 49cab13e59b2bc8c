"""Destinations of messages: services with their secrets, from the environment or from files.

A destination without a name has its URL in REBALANCE_AUDIT_WEBHOOK and its secret in
REBALANCE_AUDIT_SECRET; one that is named ``on-call`` in REBALANCE_AUDIT_WEBHOOK_ON_CALL and
REBALANCE_AUDIT_SECRET_ON_CALL. Else they are the first lines of the files that the settings name.
"""

import os
import re
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from ..config.choices import WEBHOOK_SERVICES
from ..config.settings import Destination, Email, NamedDestination
from ..console.progress import Say
from ..errors import SettingsError
from .delivery import Attempts, Refusal
from .message import Message
from .services.apprise import by_apprise
from .services.chats import DINGTALK, FEISHU, SLACK, TEAMS, WECOM
from .services.json_document import JSON
from .services.mail import mail_of, send
from .services.pagerduty import PAGERDUTY
from .services.service import Access, Service
from .webhook import HttpRequest, post

#: The environment variables that have the URL and the secret.
WEBHOOK_VARIABLE = "REBALANCE_AUDIT_WEBHOOK"
SECRET_VARIABLE = "REBALANCE_AUDIT_SECRET"  # noqa: S105 - the name of a variable

#: Printable ASCII without blanks.
_URL = re.compile(r"https?://[!-~]+", re.IGNORECASE)
#: The longest line of a file, in characters.
_LONGEST_SECRET = 8192

#: Services by their names in the settings; e-mail has no webhook, Apprise URLs of its own.
SERVICES: dict[str, Service] = dict(
    zip(WEBHOOK_SERVICES, (SLACK, DINGTALK, FEISHU, WECOM, TEAMS, PAGERDUTY, JSON), strict=True)
)
#: Services that call people by their ids.
WITH_MENTIONS = ("SLACK", "DINGTALK", "FEISHU", "WECOM")

#: Delivers a message; DeliveryError where nobody took it.
Deliver = Callable[[Message, datetime, Attempts], None]


class Addressee(NamedTuple):
    """The reader of messages. ``name``: empty where there is one destination alone.

    ``severity``: None for that of all alerts. ``groups``: the pattern of the groups that it gets
    messages about.
    """

    name: str = ""
    severity: str | None = None
    groups: str = ".*"

    @property
    def prefix(self) -> str:
        """The beginning of a line about it."""
        return f"{self.name}: " if self.name else ""


def addressee_of(settings: Destination) -> Addressee:
    """The reader of what a destination gets."""
    if isinstance(settings, NamedDestination):
        return Addressee(settings.name, settings.severity, settings.groups)
    return Addressee()


@dataclass(frozen=True)
class ReadyDestination:
    """A destination with its secrets. ``mentions``: by owner whom the service calls."""

    to: Addressee
    service: str
    has_incidents: bool
    deliver: Deliver = field(repr=False)
    mentions: Mapping[str, str] = field(default_factory=dict)


def find_destination(
    settings: Destination, environment: Mapping[str, str], warn: Say
) -> ReadyDestination:
    """The destination with its secrets.

    Raises SettingsError, without a secret in it, where a URL or a secret is missing or wrong.
    """
    to = addressee_of(settings)
    where = f"alerts.destinations {to.name}" if to.name else "alerts"

    def ready(service: str, deliver: Deliver, *, has_incidents: bool = False) -> ReadyDestination:
        mentions = settings.mentions or {}
        if mentions and service not in WITH_MENTIONS:
            raise SettingsError(
                f"{where}.mentions: expected one of {', '.join(WITH_MENTIONS)}, came {service}"
            )
        return ReadyDestination(to, service, has_incidents, deliver, mentions)

    secrets = SecretSources(where, to.name, environment, warn)
    secret = secrets.find(SECRET_VARIABLE, "secret_file", settings.secret_file)
    if settings.email is not None:
        return ready("EMAIL", _by_mail(settings.email, secret, where))
    url = secrets.find(WEBHOOK_VARIABLE, "webhook_file", settings.webhook_file)
    if not url and settings.service in SERVICES:
        url = SERVICES[settings.service].url
    if not url:
        raise SettingsError(
            f"{where}: expected the webhook's URL in {secrets.variable(WEBHOOK_VARIABLE)}, or in "
            "the file that webhook_file names, came neither"
        )
    if settings.service == "APPRISE":
        return ready("APPRISE", by_apprise(url, where))
    if not _is_url(url):
        raise SettingsError(
            f"{where}: expected the webhook's URL as https://host/path (what came is not shown); "
            "a URL of Apprise needs service APPRISE"
        )
    chosen = settings.service or service_at(url)
    service = SERVICES[chosen]
    if service.needs_secret and not secret:
        raise SettingsError(
            f"{where}: {chosen} needs a secret: expected it in "
            f"{secrets.variable(SECRET_VARIABLE)}, or in the file that secret_file names"
        )
    deliver = _by_webhook(service, Access(url, secret))
    return ready(chosen, deliver, has_incidents=service.has_incidents)


def service_at(url: str) -> str:
    """The name of the service whose host a URL has; JSON for all others.

    >>> service_at("https://oapi.dingtalk.com/robot/send"), service_at("https://example.org/x")
    ('DINGTALK', 'JSON')
    """
    host = (urlsplit(url).hostname or "").rstrip(".")
    return next((name for name, service in SERVICES.items() if service.is_at(host)), "JSON")


def _by_webhook(service: Service, access: Access) -> Deliver:
    def once(request: HttpRequest, timeout_seconds: float) -> Refusal | None:
        answer = post(request, timeout_seconds)
        return answer if isinstance(answer, Refusal) else service.refusal(answer)

    def deliver(message: Message, now: datetime, attempts: Attempts) -> None:
        for request in service.requests(message, access, now):
            attempts.make(partial(once, request))

    return deliver


def _by_mail(email: Email, password: str, where: str) -> Deliver:
    if (email.user is not None) != bool(password):
        raise SettingsError(
            f"{where}: expected email.user and a password, which is the secret, or neither"
        )

    def deliver(message: Message, now: datetime, attempts: Attempts) -> None:
        mail = mail_of(message, email, now)
        attempts.make(lambda timeout: send(mail, email, password, timeout))

    return deliver


@dataclass(frozen=True)
class SecretSources:
    """The sources of one destination's secrets: ``name`` is its name, "" where it has none.

    ``where`` names its settings.
    """

    where: str
    name: str
    environment: Mapping[str, str] = field(repr=False)
    warn: Say

    def variable(self, variable: str) -> str:
        """The environment variable of this destination."""
        return f"{variable}_{self.name.upper().replace('-', '_')}" if self.name else variable

    def find(self, variable: str, setting: str, file: str | None) -> str:
        """Finds the secret in the environment, else in the file's first line, else "".

        Raises SettingsError where the file cannot be read, or is empty.
        """
        text = self.environment.get(self.variable(variable), "").strip()
        if text or file is None:
            return text
        try:
            with Path(file).open(encoding="utf-8") as opened:
                mode = os.fstat(opened.fileno()).st_mode
                line = opened.readline(_LONGEST_SECRET).strip()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or type(error).__name__
            raise SettingsError(
                f"{self.where}.{setting} {file} cannot be read: {reason}; write the secret into "
                "its first line"
            ) from None
        if not line:
            raise SettingsError(
                f"{self.where}.{setting} {file}: its first line is empty: write the secret there"
            )
        if mode & (stat.S_IROTH | stat.S_IWOTH):
            self.warn(
                f"{self.where}.{setting}: everybody on this machine can read or change {file}, "
                f"which has a secret: chmod o-rw {file}"
            )
        return line


def _is_url(url: str) -> bool:
    with suppress(ValueError):  # of an address or a port
        parts = urlsplit(url)
        return bool(_URL.fullmatch(url) and parts.hostname and parts.port != 0)
    return False

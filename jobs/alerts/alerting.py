"""The command ``alert``: of a published run metrics to a file, and messages to services."""

import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import chain
from pathlib import Path
from time import sleep
from typing import NamedTuple
from urllib.parse import urlsplit

from rebalance_core.english import count

from ..config.choices import WEBHOOK_SERVICES
from ..config.settings import Alerts, Destination, Email, NamedDestination
from ..console.output import Output, write_metrics
from ..console.progress import Say
from ..errors import AuditError, SettingsError
from ..languages.language import ENGLISH, Language
from ..reports.tables import PublishedTables
from ..storage import PublishedRun, Reports
from ..storage.lease import lease
from ..texts.shown import json_text
from .delivered import Delivered, NoteError, Notes, with_sent
from .message import (
    Chosen,
    Digest,
    ids_of,
    make_message,
    problems_to_send,
    read_digest,
    resolved_places,
    says_what_is_missing,
    sent_missing,
)
from .metrics import metrics_text
from .services.apprise import by_apprise
from .services.chats import DINGTALK, FEISHU, JSON, SLACK, TEAMS, WECOM
from .services.mail import mail_of, mail_text, send
from .services.pagerduty import PAGERDUTY
from .services.service import (
    LONGEST_PAUSE,
    Access,
    Attempts,
    DeliveryError,
    HttpRequest,
    Refusal,
    Service,
    post,
)
from .services.text_message import MISSING, OTHERS, Message

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


@dataclass(frozen=True)
class Sender:
    """Means of sending messages, whichever run they are of.

    ``environment`` has the secrets; ``warn`` gets what is wrong and stops nothing.
    """

    alerts: Alerts
    environment: Mapping[str, str]
    now: datetime
    warn: Say
    language: Language = ENGLISH


class Shown(NamedTuple):
    """The way in which a message is shown, and not sent.

    ``again``: as if nothing had been sent before. ``service``: as this service gets it; None: as
    lines.
    """

    again: bool = False
    service: str | None = None


def alert(
    reports: Reports,
    date: str | None,
    sender: Sender,
    metrics: Output | None = None,
    *,
    webhook: bool = False,
    shown: Shown | None = None,
) -> Iterator[str]:
    """Sends the message about the run of a date (None: the last one); yields a line a thing done.

    The metrics come first: no service that fails keeps them away. What was delivered is noted
    beside the reports, so that it is not delivered again, whatever the date; what was not taken is
    not noted. With neither, the message is yielded that each destination would get, as ``shown``.

    Raises InputError where there is no run, SettingsError where a URL or a secret is missing,
    LeaseError where another alert does not end, DeliveryError where a destination did not take its
    message, NoteError where that cannot be noted; the other destinations got theirs.
    """
    alerts = sender.alerts

    def read(published: PublishedRun) -> tuple[Digest, str]:
        tables = PublishedTables(reports, published)
        digest = read_digest(published, tables)
        return digest, metrics_text(digest, tables, alerts.worst_groups) if metrics else ""

    digest, text = reports.read(date, read)
    published = digest.published
    if metrics is not None:
        write_metrics(metrics, text)
        yield f"metrics of {published.date} written to {metrics}"
    if webhook:
        yield from _deliver_all(reports, digest, sender)
    elif metrics is None:
        notes = Notes(reports, sender.warn)
        for destination in alerts.destinations or (alerts,):
            yield from _would_get(destination, notes, digest, sender, shown or Shown())


class _Due(NamedTuple):
    """The message due to a destination: ``delivered`` is what it got before, as this run shows it.

    ``is_any``: there is a message.
    """

    delivered: Delivered
    chosen: Chosen
    message: Message
    is_any: bool


def _due(
    sender: Sender,
    to: Addressee,
    mentions: Mapping[str, str],
    digest: Digest,
    delivered: Delivered,
    *,
    is_on_call: bool,
) -> _Due:
    """Finds what is due to a destination, which calls those whom ``mentions`` has by owner.

    ``is_on_call``: it has incidents, and no other message. A known issue ends its incident; so once
    that expires, it is sent again.
    """
    alerts, about = sender.alerts, digest.about(to.groups)
    # Of all groups: what is not this destination's any more is not over.
    delivered = digest.seen_by(delivered, known_are_over=is_on_call)
    chosen = problems_to_send(about, alerts, delivered, to.severity)
    is_missing = says_what_is_missing(about, alerts, delivered, to.severity)
    message = make_message(about, chosen, alerts, sender.language, delivered)
    called = dict.fromkeys(mentions[item.owner] for item in message.items if item.owner in mentions)
    missing = message.missing if is_missing or not is_on_call else ""
    message = replace(message, mentions=tuple(called), missing=missing)
    is_any = bool(chosen or is_missing) or (alerts.send == "ALWAYS" and not is_on_call)
    return _Due(delivered, chosen, message, is_any)


def _would_get(
    settings: Destination, notes: Notes, digest: Digest, sender: Sender, shown: Shown
) -> Iterator[str]:
    """The message that a destination would get, without its URL and secret."""
    to, service = addressee_of(settings), SERVICES.get(shown.service or "")
    is_on_call = service is not None and service.has_incidents
    before: Delivered = {} if shown.again else notes.delivered(to.name)
    due = _due(sender, to, settings.mentions or {}, digest, before, is_on_call=is_on_call)
    if not due.is_any:
        again = " (--again prints what it was sent)" if before else ""
        yield f"{to.prefix}nothing to send for {digest.published.date}{again}"
        return
    if to.name:
        yield to.prefix.strip()
    if service is not None:
        for request in service.requests(due.message, Access(""), sender.now):
            yield json_text(request.body, indent=2)
    else:
        yield mail_text(due.message) if shown.service else "\n".join(due.message.lines)


def _deliver_all(reports: Reports, digest: Digest, sender: Sender) -> Iterator[str]:
    alerts, warn = sender.alerts, sender.warn
    destinations: Sequence[Destination] = alerts.destinations or (alerts,)
    failures: list[AuditError] = []
    with _alone(reports, digest.published, alerts, len(destinations), warn):
        notes = Notes(reports, warn)
        for each in destinations:
            try:
                destination = find_destination(each, sender.environment, warn)
                yield _deliver(sender, destination, digest, notes)
            # The other destinations get theirs.
            except AuditError as error:
                failures.append(error)
    if failures:
        raise type(failures[0])("; ".join(str(failure) for failure in failures))


def _deliver(sender: Sender, destination: ReadyDestination, digest: Digest, notes: Notes) -> str:
    """Delivers to one destination what it did not get yet; what was done, in words."""
    alerts, date, to = sender.alerts, digest.published.date, destination.to
    before, is_on_call = notes.delivered(to.name), destination.has_incidents
    mentions = destination.mentions
    due = _due(sender, to, mentions, digest, before, is_on_call=is_on_call)
    incidents = notes.incidents(to.name) if is_on_call else frozenset()
    # A date before one that it knows does not show how it is now.
    is_last = date >= max((each.date for each in before.values()), default="")
    resolved = resolved_places(digest, incidents) if is_last else ()
    if not (due.is_any or resolved):
        notes.set_delivered(to.name, due.delivered)
        return f"{to.prefix}nothing to send for {date}"
    message = replace(due.message, resolved=resolved)
    if is_on_call:
        incidents |= {item.place for item in message.items}
        incidents |= {OTHERS} if message.left_out else set()
        incidents |= {MISSING} if message.missing else set()
        # Before the message: an incident that nobody noted would stay open for ever.
        try:
            notes.set_incidents(to.name, incidents)
        except NoteError as error:
            sender.warn(
                f"{to.prefix}close the incidents of this run by hand when they are over: {error}"
            )
    try:
        attempts = Attempts(alerts.timeout_seconds, alerts.attempts, sleep)
        destination.deliver(message, sender.now, attempts)
    except DeliveryError as error:
        raise DeliveryError(
            f"{to.prefix}the message was not delivered ({destination.service}): {error}; the "
            "reports are published, and the next alert, of whatever date, sends what is open"
        ) from None
    sent = chain.from_iterable(findings for _, findings in due.chosen)
    delivered = with_sent(due.delivered, sent, date)
    if message.missing:
        delivered |= sent_missing(digest)
    try:
        notes.set_delivered(to.name, delivered)
        if resolved:
            notes.set_incidents(to.name, incidents - set(resolved))
    except NoteError as error:
        raise NoteError(
            f"{to.prefix}the message was delivered, and the next alert posts it again: {error}"
        ) from error
    posted: str = count(len(ids_of(due.chosen)), "finding")
    if message.missing:
        posted = f"{posted} and what was not read or not audited"
    closed = f", and that {count(len(resolved), 'incident')} resolved" if resolved else ""
    return f"{to.prefix}posted {posted} of {date}{closed}"


@contextmanager
def _alone(
    reports: Reports, published: PublishedRun, alerts: Alerts, destinations: int, warn: Say
) -> Iterator[None]:
    """Holds the lease of the notes: of two alerts at a time one waits, and posts nothing twice."""
    longest = destinations * alerts.attempts * (alerts.timeout_seconds + LONGEST_PAUSE)
    claims = reports.root / "_claims" / "alerts"
    with ExitStack() as held:
        try:
            held.enter_context(lease(claims, f"alert-{published.run_id}", longest, warn))
        except OSError as error:
            warn(
                f"{claims} cannot be written ({error.strerror or type(error).__name__}): an alert "
                "at the same time would post the same again"
            )
        yield

"""The command ``alert``: of a published run metrics to a file, and messages to services."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from time import sleep
from typing import NamedTuple

from rebalance_core.english import count

from ..config.settings import Alerts, Destination
from ..console.output import Output, write_metrics
from ..console.progress import Say
from ..errors import AuditError
from ..languages.language import ENGLISH, Language
from ..reports.tables import PublishedTables
from ..storage import PublishedRun, Reports
from ..storage.lease import lease
from ..texts.shown import json_text
from .delivered import Delivered, with_sent
from .delivery import LONGEST_PAUSE, Attempts, DeliveryError
from .destinations import SERVICES, Addressee, ReadyDestination, addressee_of, find_destination
from .message import (
    MISSING,
    OTHERS,
    Chosen,
    Digest,
    Message,
    ids_of,
    make_message,
    problems_to_send,
    read_digest,
    resolved_places,
    says_what_is_missing,
    sent_missing,
)
from .metrics import metrics_text
from .note import NoteError, Notes
from .services.mail import mail_text
from .services.service import Access


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


@dataclass(frozen=True)
class _Due:
    """The message due to a destination: ``delivered`` is what it got before, as this run shows it.

    ``is_missing``: it does not know what is missing of the run. ``is_any``: there is a message.
    """

    delivered: Delivered
    chosen: Chosen
    message: Message
    is_missing: bool
    is_any: bool


def _due(
    sender: Sender, to: Addressee, digest: Digest, delivered: Delivered, *, is_on_call: bool
) -> _Due:
    """Finds what is due to a destination. ``is_on_call``: it has incidents, and no other message.

    A known issue ends its incident; so once that expires, it is sent again.
    """
    alerts, about = sender.alerts, digest.about(to.groups)
    # Of all groups: what is not this destination's any more is not over.
    delivered = digest.seen_by(delivered, known_are_over=is_on_call)
    chosen = problems_to_send(about, alerts, delivered, to.severity)
    is_missing = says_what_is_missing(about, alerts, delivered, to.severity)
    is_any = bool(chosen or is_missing) or (alerts.send == "ALWAYS" and not is_on_call)
    message = make_message(about, chosen, alerts, sender.language, delivered)
    return _Due(delivered, chosen, message, is_missing, is_any)


def _addressed(due: _Due, mentions: Mapping[str, str], *, is_on_call: bool) -> Message:
    """The message due to a destination, with those whom it calls by owner."""
    owners = dict.fromkeys(item.owner for item in due.message.items)
    called = tuple(dict.fromkeys(mentions[owner] for owner in owners if owner in mentions))
    message = replace(due.message, mentions=called)
    return message if due.is_missing or not is_on_call else replace(message, missing="")


def _would_get(
    settings: Destination, notes: Notes, digest: Digest, sender: Sender, shown: Shown
) -> Iterator[str]:
    """The message that a destination would get, without its URL and secret."""
    to, service = addressee_of(settings), SERVICES.get(shown.service or "")
    is_on_call = service is not None and service.has_incidents
    before: Delivered = {} if shown.again else notes.delivered(to.name)
    due = _due(sender, to, digest, before, is_on_call=is_on_call)
    if not due.is_any:
        again = " (--again prints what it was sent)" if before else ""
        yield f"{to.prefix}nothing to send for {digest.published.date}{again}"
        return
    message = _addressed(due, settings.mentions or {}, is_on_call=is_on_call)
    if to.name:
        yield to.prefix.strip()
    if service is not None:
        for request in service.requests(message, Access(""), sender.now):
            yield json_text(request.body, indent=2)
    else:
        yield mail_text(message) if shown.service else "\n".join(message.lines)


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
    due = _due(sender, to, digest, before, is_on_call=is_on_call)
    incidents = notes.incidents(to.name) if is_on_call else frozenset()
    # A date before one that it knows does not show how it is now.
    is_last = date >= max((each.date for each in before.values()), default="")
    resolved = resolved_places(digest, incidents) if is_last else ()
    if not (due.is_any or resolved):
        notes.set_delivered(to.name, due.delivered)
        return f"{to.prefix}nothing to send for {date}"
    message = _addressed(due, destination.mentions, is_on_call=is_on_call)
    message = replace(message, resolved=resolved)
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

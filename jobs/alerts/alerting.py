"""The command ``alert``: of a published run metrics to a file, and messages to services."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from time import sleep

from rebalance_core.english import count

from ..config.settings import Alerts, Destination
from ..console.output import Output, write_metrics
from ..console.progress import Say
from ..declared.kinds import CRITICAL
from ..errors import AuditError
from ..languages.language import ENGLISH, Language
from ..reports.tables import PublishedTables
from ..storage import PublishedRun, Reports
from ..storage.lease import lease
from .delivery import LONGEST_PAUSE, Attempts, DeliveryError
from .destinations import ReadyDestination, find_destination
from .message import (
    MISSING,
    OTHERS,
    Digest,
    ids_of,
    make_message,
    missing_id,
    problems_to_send,
    read_digest,
    resolved_places,
)
from .metrics import metrics_text
from .note import NoteError, Notes


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


def alert(
    reports: Reports,
    date: str | None,
    sender: Sender,
    metrics: Output | None = None,
    *,
    webhook: bool = False,
) -> Iterator[str]:
    """Sends the message about the run of a date (None: the last one); yields a line a thing done.

    The metrics come first: no service that fails keeps them away. What was delivered is noted
    beside the reports, so that the next run of the date does not deliver it again; what was not
    taken is not noted. With neither, the message is yielded.

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
        delivered = Notes(reports, published, sender.warn).delivered("")
        chosen = problems_to_send(digest, alerts, delivered)
        if chosen or _says_what_is_missing(digest, alerts, delivered) or alerts.send == "ALWAYS":
            yield "\n".join(make_message(digest, chosen, alerts, sender.language).lines)
        else:
            yield f"nothing to send for {published.date}"


def _deliver_all(reports: Reports, digest: Digest, sender: Sender) -> Iterator[str]:
    alerts, warn = sender.alerts, sender.warn
    destinations: Sequence[Destination] = alerts.destinations or (alerts,)
    notes = Notes(reports, digest.published, warn)
    is_last = digest.published.date == reports.resolve(None).date
    failures: list[AuditError] = []
    with _alone(reports, digest.published, alerts, len(destinations), warn):
        for each in destinations:
            try:
                destination = find_destination(each, sender.environment, warn)
                yield _deliver(sender, destination, digest, notes, is_last=is_last)
            # The other destinations get theirs.
            except AuditError as error:
                failures.append(error)
    if failures:
        raise type(failures[0])("; ".join(str(each) for each in failures))


def _deliver(
    sender: Sender, destination: ReadyDestination, digest: Digest, notes: Notes, *, is_last: bool
) -> str:
    """Delivers to one destination what it did not get yet; what was done, in words."""
    alerts, digest = sender.alerts, digest.about(destination.groups)
    date = digest.published.date
    prefix = f"{destination.name}: " if destination.name else ""
    delivered = notes.delivered(destination.name)
    chosen = problems_to_send(digest, alerts, delivered, destination.severity)
    incidents = notes.incidents(destination.name) if destination.has_incidents else frozenset()
    # An earlier date does not show how it is now.
    resolved = resolved_places(digest, incidents) if is_last else ()
    is_missing = _says_what_is_missing(digest, alerts, delivered, destination.severity)
    if not (chosen or is_missing or resolved) and (
        alerts.send != "ALWAYS" or destination.has_incidents
    ):
        return f"{prefix}nothing to send for {date}"
    message = make_message(digest, chosen, alerts, sender.language)
    owners = dict.fromkeys(each.owner for each in message.items)
    mentions = (destination.mentions[each] for each in owners if each in destination.mentions)
    message = replace(message, resolved=resolved, mentions=tuple(dict.fromkeys(mentions)))
    if destination.has_incidents:
        message = message if is_missing else replace(message, missing="")
        incidents |= {each.place for each in message.items}
        incidents |= {OTHERS} if message.left_out else set()
        incidents |= {MISSING} if message.missing else set()
        # Before the message: an incident that nobody noted would stay open for ever.
        try:
            notes.set_incidents(destination.name, incidents)
        except NoteError as error:
            sender.warn(
                f"{prefix}close the incidents of this run by hand when they are over: {error}"
            )
    try:
        attempts = Attempts(alerts.timeout_seconds, alerts.attempts, sleep)
        destination.deliver(message, sender.now, attempts)
    except DeliveryError as error:
        raise DeliveryError(
            f"{prefix}the message was not delivered ({destination.service}): {error}; the reports "
            "are published, and the next alert tries it again"
        ) from None
    try:
        of_missing = {missing_id(digest)} if message.missing else set()
        notes.add(destination.name, ids_of(chosen) | of_missing)
        if resolved:
            notes.set_incidents(destination.name, incidents - set(resolved))
    except NoteError as error:
        raise NoteError(
            f"{prefix}the message was delivered, and the next alert posts it again: {error}"
        ) from error
    posted: str = count(len(ids_of(chosen)), "finding")
    if message.missing:
        posted = f"{posted} and what was not read or not audited"
    closed = f", and that {count(len(resolved), 'incident')} resolved" if resolved else ""
    return f"{prefix}posted {posted} of {date}{closed}"


def _says_what_is_missing(
    digest: Digest, alerts: Alerts, delivered: Collection[str], severity: str | None = None
) -> bool:
    """True if something was not read or not audited, and has to be said: as a WARNING is.

    With ``send = "NEW"`` once for a date.
    """
    if digest.verdict.is_complete or (severity or alerts.severity) == CRITICAL:
        return False
    return alerts.send != "NEW" or missing_id(digest) not in delivered


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

"""The command ``alert``: of a published run metrics to a file, a message to a webhook."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from jobs.alerts.digest import Finding, read_digest
from jobs.alerts.message import findings_to_tell, make_message
from jobs.alerts.metrics import metrics_text
from jobs.alerts.webhook import find_webhook, post
from jobs.errors import AuditError
from jobs.settings import Alerts
from jobs.storage import Location, Published, Reports


def alert(
    reports: Reports,
    date: str | None,
    alerts: Alerts,
    environment: Mapping[str, str],
    metrics: Location | None = None,
    *,
    webhook: bool = False,
) -> Iterator[str]:
    """Tells of the run of a date (None: the last one); yields a line for each thing done.

    The metrics come first: no webhook that fails keeps them away. What was posted is noted beside
    the reports, so that the next run of the date does not post it again; a post that failed is not
    noted. With neither, the message is yielded. Raises InputError where there is no run,
    SettingsError where there is no URL, WebhookError where nobody took the message.
    """
    published = reports.resolve(date)
    digest = read_digest(reports, published)
    if metrics is not None:
        _write(metrics, metrics_text(digest, alerts.worst_groups))
        yield f"metrics of {published.date} written to {metrics}"
    if metrics is not None and not webhook:
        return
    url = find_webhook(environment, alerts.webhook_file) if webhook else None
    told = _told(reports, published)
    findings = findings_to_tell(digest, alerts, told)
    if not findings and alerts.tell != "ALWAYS":
        yield f"nothing to tell of {published.date}"
        return
    message = make_message(digest, findings, alerts)
    if url is None:
        yield message["text"]
        return
    post(url, message, alerts.timeout_seconds, alerts.attempts)
    _note(reports, published, told, findings)
    yield f"told of {len({each.finding_id for each in findings})} findings of {published.date}"


def _write(metrics: Location, text: str) -> None:
    try:
        metrics.replace_text(text)
    except OSError as error:
        raise AuditError(f"metrics cannot be written to {metrics}: {error}") from error


def _told(reports: Reports, published: Published) -> frozenset[str]:
    place = reports.told(published.date)
    return frozenset(place.read_json()["finding_ids"]) if place.exists() else frozenset()


def _note(
    reports: Reports, published: Published, told: frozenset[str], findings: Sequence[Finding]
) -> None:
    every = sorted(told | {each.finding_id for each in findings})
    noted = {"date": published.date, "run_id": published.run_id, "finding_ids": every}
    reports.told(published.date).replace_text(json.dumps(noted) + "\n")

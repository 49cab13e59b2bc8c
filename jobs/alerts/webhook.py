"""Posts a message to a webhook. Its URL is a secret: it is in no argument, no log and no error."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from email.message import Message
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from jobs.errors import AuditError, SettingsError

#: The environment variable that has the URL.
WEBHOOK_VARIABLE = "REBALANCE_AUDIT_WEBHOOK"

_TOO_MANY_REQUESTS = 429
#: Seconds before a second attempt; each later one waits twice as long as the one before.
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 30.0


class WebhookError(AuditError):
    """The webhook did not take the message; what was published is published all the same."""


def find_webhook(environment: Mapping[str, str], file: str | None) -> str:
    """The URL: that of the environment, else the first line of the file.

    Raises SettingsError, without the URL in it, where there is none or where it is none.
    """
    url, source = environment.get(WEBHOOK_VARIABLE, "").strip(), WEBHOOK_VARIABLE
    if not url and file is not None:
        source = f"alerts.webhook_file {file}"
        try:
            url = Path(file).read_text(encoding="utf-8").partition("\n")[0].strip()
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"{source}: {type(error).__name__}") from None
    if not url:
        raise SettingsError(
            f"expected the webhook's URL in {WEBHOOK_VARIABLE}, or in the file that the setting "
            "alerts.webhook_file names, came neither"
        )
    if not _is_url(url):
        raise SettingsError(f"{source}: expected a URL as https://host/path (it is not shown)")
    return url


def _is_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        port_is_right = parts.port is None or parts.port > 0
    except ValueError:
        return False
    shown = url.isascii() and url.isprintable() and " " not in url
    return parts.scheme in ("https", "http") and bool(parts.hostname) and port_is_right and shown


def post(
    url: str,
    message: Mapping[str, Any],
    timeout_seconds: float,
    attempts: int,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Posts the message as JSON, up to so many times; raises WebhookError where nobody took it.

    Tried again is what may pass: no answer, 5xx, 429 (after what its Retry-After says).
    """
    request = urllib.request.Request(  # noqa: S310 - find_webhook lets http and https through
        url,
        data=json.dumps(message).encode("utf-8"),
        headers={"Content-Type": "application/json; charset=utf-8"},
        method="POST",
    )
    said = ""
    for attempt in range(attempts):
        said, wait = _post_once(request, timeout_seconds)
        if not said:
            return
        if wait is None:
            break
        if attempt + 1 < attempts:
            pause(min(max(wait, _FIRST_PAUSE * 2**attempt), _LONGEST_PAUSE))
    raise WebhookError(f"the webhook did not take the message: {said}; the reports are published")


def _post_once(request: urllib.request.Request, timeout: float) -> tuple[str, float | None]:
    """What went wrong (nothing: "") and how long to wait at least; None: it would again."""
    # Errors' own texts may have the URL in them, and so may what a proxy answers: neither is told.
    try:
        with _OPENER.open(request, timeout=timeout) as answer:
            answer.read(1)
        return "", None
    except urllib.error.HTTPError as error:
        with error:
            passes = error.code >= 500 or error.code == _TOO_MANY_REQUESTS
            return f"HTTP status {error.code}", _retry_after(error.headers) if passes else None
    except urllib.error.URLError as error:
        return f"no answer ({type(error.reason).__name__})", 0.0
    # ValueError: a host name that no network can look up.
    except (OSError, ValueError, http.client.HTTPException) as error:
        return f"no answer ({type(error).__name__})", 0.0


def _retry_after(headers: Message) -> float:
    text = headers.get("Retry-After", "")
    return float(text) if text.isdecimal() else 0.0


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirected POST would arrive as a GET, or at a host that nobody named."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Message,
        newurl: str,
    ) -> None:
        """Follows none: the status is the answer."""


_OPENER = urllib.request.build_opener(_NoRedirects)

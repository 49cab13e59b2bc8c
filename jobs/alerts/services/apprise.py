"""Apprise: one library for some hundred services, each behind a URL of its own kind.

https://github.com/caronc/apprise/wiki: the URL says which service it is, and has its secrets. The
library knows the form, the limits and the answers of each; it says whether the message was taken,
and logs why it was not.

Its plugins for DingTalk, Feishu and WeCom (2.2) take every 200 for a success, also one with an
error code: such a URL is refused, for the services of ours read the code.
"""

import logging
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from importlib import import_module
from typing import Any
from urllib.parse import unquote

from ...declared.kinds import worst
from ...errors import AuditError, SettingsError
from .service import Attempts, DeliveryError, inert, within
from .text_message import Link, Message, shown

_WITH_CODES = {"dingtalk": "DINGTALK", "feishu": "FEISHU", "lark": "FEISHU", "wecombot": "WECOM"}
_TYPES = {"CRITICAL": "failure", "WARNING": "warning", "INFO": "info"}
#: Between two attempts, in seconds.
_PAUSE = 1.0
_LONGEST_REASON = 400
#: Shorter parts of a URL are words and numbers as well: those are masked as whole words.
_LONGEST_WORD = 3

#: Characters of which some services make a mention, a tag, a link or emphasis even in plain text.
_MARKS = re.compile(r"(?<!\w)@(?=\w)|<(?=\S)|\](?=\()|(?<!\w)(?=_)")
#: Signs that look the same, and mean nothing in Markdown.
_LOOK_ALIKES = str.maketrans({"*": "∗", "`": "ˋ", "~": "∼"})  # noqa: RUF001


def by_apprise(url: str, where: str) -> Callable[[Message, datetime, Attempts], None]:
    """Makes the function that delivers a message to this URL's service.

    ``where`` names the settings of the destination. Raises AuditError where the library is not
    installed, SettingsError, without the URL, where the library does not know it.
    """
    # Its lines are part of the error that is printed. Nobody else gets them: some have the URL.
    logging.getLogger("apprise").propagate = False
    try:
        apprise = import_module("apprise")
    except ModuleNotFoundError as error:
        if error.name != "apprise":
            raise
        raise AuditError(
            "the Python package apprise is not installed: "
            "pip install 'rocketmq-rebalance-audit[apprise]'"
        ) from error
    asset = apprise.AppriseAsset(
        app_id="Rebalance audit",
        app_desc="Rebalance audit",
        # The end of the process would wait for each thread of its own.
        async_mode=False,
        service_timeout=0,
        default_service_wait=_PAUSE,
        http_redirects=False,
        interpret_emojis=False,
    )
    service = apprise.Apprise.instantiate(url, asset=asset)
    if service is None:
        raise SettingsError(
            f"{where}: expected a URL that Apprise knows, as tgram://TOKEN/CHAT (what came is not "
            "shown)"
        )
    if ours := _WITH_CODES.get(str(service.secure_protocol)):
        raise SettingsError(
            f"{where}: Apprise does not see the errors of this service: expected service {ours}, "
            "and the https URL of its robot"
        )
    service.optional = False
    # Text that fits may be longer as HTML.
    service.overflow_mode = apprise.OverflowMode.SPLIT

    def deliver(message: Message, _now: datetime, attempts: Attempts) -> None:
        service.socket_connect_timeout = service.socket_read_timeout = attempts.timeout_seconds
        # Apprise makes the attempts: it knows who of several has the message already.
        service.retry = service.retry or attempts.number - 1
        seconds = attempts.number * (attempts.timeout_seconds + _PAUSE)
        notification = _notification(message, service.body_maxlen)
        notify = partial(apprise.Apprise(service, asset=asset).notify, **notification)
        try:
            result = within(seconds, notify, lambda: None)
        except TimeoutError:
            raise DeliveryError(f"no answer: not within {seconds:g} s") from None
        if not result:
            lines = [log.message for log in result.logs()]
            raise DeliveryError(masked(lines[-1], url) if lines else "Apprise does not say why")

    return deliver


def _notification(message: Message, longest: int) -> dict[str, Any]:
    """The arguments of ``Apprise.notify``: text, whose title has no name that a stranger chose."""
    heading, *others = message.fitted(list, longest, lambda lines: len(_text(lines)))
    severity = worst((item.severity for item in message.items), "INFO")
    return {
        "title": heading if others else "",
        "body": _text(others or [heading]),
        "notify_type": _TYPES[severity],
        "body_format": "text",
    }


def _text(lines: Sequence[str]) -> str:
    return "\n".join(literal(line) for line in lines)


def literal(line: str) -> str:
    """A line that stays text where it is read as Markdown or HTML.

    >>> literal("[G](//evil.example) @wang <b>").replace("\u200b", "|")
    '[G]|(//evil.example) @|wang <|b>'
    """
    if isinstance(line, Link):
        return line
    return _MARKS.sub("\\g<0>\u200b", inert(line)).translate(_LOOK_ALIKES)


def masked(text: str, url: str) -> str:
    """A line of a log without any part of the URL, on one line.

    >>> masked("Forbidden by https://chat.example/S3cr3t: error=403", "json://chat.example/s3cr3t")
    'Forbidden by https://***: error=403'
    """
    secrets = url.partition("://")[2]
    parts = {each for each in re.split(r"\W+", f"{secrets} {unquote(secrets)}") if each}
    either = "|".join(
        part if len(part) > _LONGEST_WORD else rf"(?<!\w){part}(?!\w)"
        for part in sorted(parts, key=len, reverse=True)
    )
    found = re.compile(rf"(?:{either})(?:[^\w\s](?:{either}))*", re.IGNORECASE)
    return shown(found.sub("***", text), _LONGEST_REASON)

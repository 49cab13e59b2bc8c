"""DingTalk: a custom robot of a group.

https://open.dingtalk.com/document/robots/custom-robot-access: text of up to 20,000 bytes, 20
messages a minute; the answer is 200 with ``errcode``, 0 where the message was taken.
https://open.dingtalk.com/document/robots/customize-robot-security-settings: the signature is made
of the time in milliseconds and the secret, and goes into the URL.

The message is ``text``: its Markdown has no escape, so that names could be links.
"""

import base64
import hashlib
import hmac
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from ..delivery import Refusal
from ..message import Message
from ..webhook import Answer, Request, json_bytes
from .service import Access, Service, code_refusal, inert, is_mobile

_LONGEST = 19_000
_REASONS = {
    300001: "the token in the URL does not exist",
    310000: "the robot's security settings refuse it: the secret, the keyword "
    '(add "Rebalance audit") or the address of this machine',
    40035: "it does not understand the message",
    43004: "it does not understand the message",
    400013: "the group is dissolved",
    400101: "the token in the URL does not exist",
    400102: "the robot is disabled",
    130101: "more than 20 messages a minute: it takes none for 10 minutes",
    410100: "more than 20 messages a minute",
    90030: "its quota is used up",
}
_PASSING = (-1, 130101, 410100)


def _requests(message: Message, access: Access, now: datetime) -> Iterable[Request]:
    mentions = message.mentions
    lines = message.fitted(lambda lines: len(json_bytes(_body(lines, mentions))) <= _LONGEST)
    yield Request(signed(access.url, access.secret, now), _body(lines, mentions))


def _body(lines: Sequence[str], mentions: Sequence[str]) -> dict[str, Any]:
    # Whom it calls is in the text as well.
    text = "\n".join([*map(inert, lines), *(f"@{each}" for each in mentions)])
    at = {
        "isAtAll": False,
        "atMobiles": [each for each in mentions if is_mobile(each)],
        "atUserIds": [each for each in mentions if not is_mobile(each)],
    }
    return {"msgtype": "text", "text": {"content": text}, "at": at}


def signed(url: str, secret: str, now: datetime) -> str:
    """The URL with the signature; without a secret as it is."""
    if not secret:
        return url
    milliseconds = str(int(now.timestamp() * 1000))
    text = f"{milliseconds}\n{secret}"
    digest = hmac.new(secret.encode(), text.encode(), hashlib.sha256).digest()
    sign = base64.b64encode(digest).decode("ascii")
    separator = "&" if "?" in url else "?"
    return f"{url}{separator}{urlencode({'timestamp': milliseconds, 'sign': sign})}"


def _refusal(answer: Answer) -> Refusal | None:
    return code_refusal(answer, ("errcode",), _REASONS, _PASSING)


DINGTALK = Service(("oapi.dingtalk.com", "oapi.dingtalk.io"), _requests, _refusal)

"""Feishu, which is Lark outside China: a custom bot of a group.

https://open.feishu.cn/document/client-docs/bot-v3/add-custom-bot: a body of up to 20 KB, 100
messages a minute and 5 a second; the answer has ``code``, 0 where the message was taken (bots of
the first version: ``StatusCode``). The signature is made of the time in seconds and the secret,
and goes into the body.

The message is a ``post``, whose text elements are shown as they are: a mention or a link would be
an element of its kind. In a ``text`` message ``<at user_id="all">`` calls everybody.
"""

import base64
import hashlib
import hmac
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from ..delivery import Refusal
from ..message import Message
from ..webhook import Answer, Request, json_bytes
from .service import Access, Service, code_refusal, inert

_LONGEST = 19_000
_REASONS = {
    9499: "it does not understand the message",
    11232: "too many messages in a short time",
    19001: "the token in the URL does not exist",
    19002: "it does not understand the message",
    19021: "the signature does not match: the secret is another one, or this machine's clock is "
    "wrong by more than an hour",
    19022: "the bot's security settings refuse the address of this machine",
    19024: 'the bot\'s security settings need a keyword: add "Rebalance audit"',
    99991400: "too many messages in a short time",
}
_PASSING = (11232, 99991400)
#: What Feishu calls the languages.
_LANGUAGES = {"en": "en_us", "zh": "zh_cn"}


def _requests(message: Message, access: Access, now: datetime) -> Iterable[Request]:
    lines = message.fitted(lambda lines: len(json_bytes(_body(lines, message))) <= _LONGEST)
    yield Request(access.url, {**_signature(access.secret, now), **_body(lines, message)})


def _body(lines: Sequence[str], message: Message) -> dict[str, Any]:
    heading, *others = lines
    paragraphs = [[{"tag": "text", "text": inert(line)}] for line in others]
    if message.mentions:
        paragraphs.append([{"tag": "at", "user_id": each} for each in message.mentions])
    text = {"title": heading, "content": paragraphs or [[{"tag": "text", "text": " "}]]}
    return {"msg_type": "post", "content": {"post": {_LANGUAGES[message.language.code]: text}}}


def _signature(secret: str, now: datetime) -> dict[str, str]:
    if not secret:
        return {}
    seconds = str(int(now.timestamp()))
    key = f"{seconds}\n{secret}".encode()
    digest = hmac.new(key, b"", hashlib.sha256).digest()
    return {"timestamp": seconds, "sign": base64.b64encode(digest).decode("ascii")}


def _refusal(answer: Answer) -> Refusal | None:
    return code_refusal(answer, ("code", "StatusCode"), _REASONS, _PASSING)


FEISHU = Service(("open.feishu.cn", "open.larksuite.com"), _requests, _refusal)

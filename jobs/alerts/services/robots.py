"""The robots of a group at DingTalk, Feishu and WeCom: each answers 200, with the code of an error.

The code is 0 where the message was taken. All are sent text that none of them makes anything of.

**DingTalk**, https://open.dingtalk.com/document/robots/custom-robot-access: text of up to 20,000
bytes, 20 messages a minute; the answer has ``errcode``.
https://open.dingtalk.com/document/robots/customize-robot-security-settings: the signature is made
of the time in milliseconds and the secret, and goes into the URL. The message is ``text``: its
Markdown has no escape, so that names could be links.

**Feishu**, which is Lark outside China,
https://open.feishu.cn/document/client-docs/bot-v3/add-custom-bot: a body of up to 20 KB, 100
messages a minute and 5 a second; the answer has ``code`` (bots of the first version:
``StatusCode``). The signature is made of the time in seconds and the secret, and goes into the
body. The message is a ``post``, whose text elements are shown as they are: a mention or a link
would be an element of its kind. In a ``text`` message ``<at user_id="all">`` calls everybody.

**WeCom** (WeChat Work), https://developer.work.weixin.qq.com/document/path/91770: text of up to
2,048 bytes, Markdown of up to 4,096, 20 messages a minute; the answer has ``errcode``. The message
is ``text``: its Markdown has no escape, so that names could be links or mentions.
"""

import hmac
import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import urlencode

from ..message import Link, Message
from ..webhook import HttpRequest, json_size
from .service import Access, Service, code_refusal, inert

_NOT_UNDERSTOOD = "it does not understand the message"
_NO_TOKEN = "the token in the URL does not exist"  # noqa: S105 - a reason


def _signature(key: str, text: str) -> str:
    return b64encode(hmac.digest(key.encode(), text.encode(), "sha256")).decode("ascii")


def _ids_and_mobiles(mentions: Iterable[str]) -> tuple[list[str], list[str]]:
    """The mentions that are ids, and those that are mobile numbers.

    >>> _ids_and_mobiles(["13800000000", "+86-13800000000", "manager42"])
    (['manager42'], ['13800000000', '+86-13800000000'])
    """
    mobiles = [each for each in mentions if re.fullmatch(r"(\+\d+-?)?\d{11}", each)]
    return [each for each in mentions if each not in mobiles], mobiles


# ------------------------------------------------------------------ DingTalk

_DINGTALK_REASONS = {
    300001: _NO_TOKEN,
    310000: "the robot's security settings refuse it: the secret, the keyword "
    '(add "Rebalance audit") or the address of this machine',
    40035: _NOT_UNDERSTOOD,
    43004: _NOT_UNDERSTOOD,
    400013: "the group is dissolved",
    400101: _NO_TOKEN,
    400102: "the robot is disabled",
    130101: "more than 20 messages a minute: it takes none for 10 minutes",
    410100: "more than 20 messages a minute",
    90030: "its quota is used up",
}


def _to_dingtalk(message: Message, access: Access, now: datetime) -> Iterable[HttpRequest]:
    body = message.fitted(partial(_dingtalk_body, message.mentions), 19_000, json_size)
    yield HttpRequest(signed(access.url, access.secret, now), body)


def _dingtalk_body(mentions: Sequence[str], lines: Sequence[str]) -> dict[str, Any]:
    # Whom it calls is in the text as well.
    text = "\n".join([*map(inert, lines), *(f"@{each}" for each in mentions)])
    ids, mobiles = _ids_and_mobiles(mentions)
    at = {"isAtAll": False, "atMobiles": mobiles, "atUserIds": ids}
    return {"msgtype": "text", "text": {"content": text}, "at": at}


def signed(url: str, secret: str, now: datetime) -> str:
    """The URL with the signature of DingTalk; without a secret as it is."""
    if not secret:
        return url
    milliseconds = str(int(now.timestamp() * 1000))
    sign = _signature(secret, f"{milliseconds}\n{secret}")
    separator = "&" if "?" in url else "?"
    return f"{url}{separator}{urlencode({'timestamp': milliseconds, 'sign': sign})}"


DINGTALK = Service(
    ("oapi.dingtalk.com", "oapi.dingtalk.io"),
    _to_dingtalk,
    partial(code_refusal, ("errcode",), _DINGTALK_REASONS, (-1, 130101, 410100)),
)

# ------------------------------------------------------------------ Feishu

_FEISHU_REASONS = {
    9499: _NOT_UNDERSTOOD,
    11232: "too many messages in a short time",
    19001: _NO_TOKEN,
    19002: _NOT_UNDERSTOOD,
    19021: "the signature does not match: the secret is another one, or this machine's clock is "
    "wrong by more than an hour",
    19022: "the bot's security settings refuse the address of this machine",
    19024: 'the bot\'s security settings need a keyword: add "Rebalance audit"',
    99991400: "too many messages in a short time",
}
#: Feishu's names of the languages.
_LANGUAGES = {"en": "en_us", "zh": "zh_cn"}


def _to_feishu(message: Message, access: Access, now: datetime) -> Iterable[HttpRequest]:
    body = message.fitted(partial(_feishu_body, message), 19_000, json_size)
    if access.secret:
        seconds = str(int(now.timestamp()))
        sign = _signature(f"{seconds}\n{access.secret}", "")
        body = {"timestamp": seconds, "sign": sign, **body}
    yield HttpRequest(access.url, body)


def _feishu_body(message: Message, lines: Sequence[str]) -> dict[str, Any]:
    heading, *others = lines
    paragraphs = [[_feishu_element(line)] for line in others]
    if message.mentions:
        paragraphs.append([{"tag": "at", "user_id": each} for each in message.mentions])
    text = {"title": heading, "content": paragraphs or [[{"tag": "text", "text": " "}]]}
    return {"msg_type": "post", "content": {"post": {_LANGUAGES[message.language.code]: text}}}


def _feishu_element(line: str) -> dict[str, str]:
    if isinstance(line, Link):
        return {"tag": "a", "text": line, "href": line.url}
    return {"tag": "text", "text": inert(line)}


FEISHU = Service(
    ("open.feishu.cn", "open.larksuite.com"),
    _to_feishu,
    partial(code_refusal, ("code", "StatusCode"), _FEISHU_REASONS, (11232, 99991400)),
)

# ------------------------------------------------------------------ WeCom

_WECOM_REASONS = {
    40008: _NOT_UNDERSTOOD,
    40058: _NOT_UNDERSTOOD,
    44004: "the message is empty",
    45002: "the message is too long",
    45009: "more than 20 messages a minute",
    45033: "too many messages at a time",
    93000: "the key in the URL does not exist, or the robot was removed",
    93008: "the robot is not in the group any more",
}


def _to_wecom(message: Message, access: Access, _now: datetime) -> Iterable[HttpRequest]:
    text = message.fitted(_wecom_text, 2048, lambda text: len(text.encode(errors="replace")))
    ids, mobiles = _ids_and_mobiles(message.mentions)
    content = {"content": text, "mentioned_list": ids, "mentioned_mobile_list": mobiles}
    yield HttpRequest(access.url, {"msgtype": "text", "text": content})


def _wecom_text(lines: Sequence[str]) -> str:
    return "\n".join(map(inert, lines))


WECOM = Service(
    ("qyapi.weixin.qq.com",),
    _to_wecom,
    partial(code_refusal, ("errcode",), _WECOM_REASONS, (-1, 45009, 45033)),
)

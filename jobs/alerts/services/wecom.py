"""WeCom (WeChat Work): a robot of a group.

https://developer.work.weixin.qq.com/document/path/91770: text of up to 2,048 bytes, Markdown of up
to 4,096, 20 messages a minute; the answer is 200 with ``errcode``, 0 where the message was taken.

The message is ``text``: its Markdown has no escape, so that names could be links or mentions.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from ..delivery import Refusal
from ..message import Message
from ..webhook import Answer, Request
from .service import Access, Service, code_refusal, inert, is_mobile

_LONGEST = 2048
_REASONS = {
    40008: "it does not understand the message",
    40058: "it does not understand the message",
    44004: "the message is empty",
    45002: "the message is too long",
    45009: "more than 20 messages a minute",
    45033: "too many messages at a time",
    93000: "the key in the URL does not exist, or the robot was removed",
    93008: "the robot is not in the group any more",
}
_PASSING = (-1, 45009, 45033)


def _requests(message: Message, access: Access, _now: datetime) -> Iterable[Request]:
    lines = message.fitted(lambda lines: len(_text(lines).encode(errors="replace")) <= _LONGEST)
    text = {
        "content": _text(lines),
        "mentioned_list": [each for each in message.mentions if not is_mobile(each)],
        "mentioned_mobile_list": [each for each in message.mentions if is_mobile(each)],
    }
    yield Request(access.url, {"msgtype": "text", "text": text})


def _text(lines: Sequence[str]) -> str:
    return "\n".join(inert(line) for line in lines)


def _refusal(answer: Answer) -> Refusal | None:
    return code_refusal(answer, ("errcode",), _REASONS, _PASSING)


WECOM = Service(("qyapi.weixin.qq.com",), _requests, _refusal)

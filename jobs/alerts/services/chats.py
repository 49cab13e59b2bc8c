"""The chats of groups, each behind a webhook: DingTalk, Feishu, WeCom, Slack and Microsoft Teams.

The first three answer 200, with the code of an error: 0 where the message was taken. All are sent
text that none of them makes anything of.

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

**Slack**, https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks: the answer to
a message that was taken is 200 with the text "ok"; errors are 4xx with a word.
https://docs.slack.dev/reference/block-kit/blocks/rich-text-block: the text elements of such a
block are shown as they are: no link, mention or style but by an element of its kind. That is why
the names are in one, and not in ``mrkdwn``.

**Microsoft Teams**, a workflow "when a Teams webhook request is received",
https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/add-incoming-webhook:
an Adaptive Card in a message of up to 28 KB; a workflow answers 202.
https://learn.microsoft.com/adaptive-cards/authoring-cards/text-features: a ``RichTextBlock`` does
not read Markdown, so that names in it stay text.
"""

import hmac
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import urlencode

from ...texts.shown import iso
from .service import (
    NOT_ITS,
    Access,
    HttpRequest,
    Refusal,
    Reply,
    Service,
    code_refusal,
    inert,
    json_size,
    status_refusal,
)
from .text_message import Item, Link, Message

_NOT_UNDERSTOOD = "it does not understand the message"
_NO_TOKEN = "the token in the URL does not exist"  # noqa: S105 - a reason


def _signature(key: str, text: str) -> str:
    return b64encode(hmac.digest(key.encode(), text.encode(), "sha256")).decode("ascii")


def _ids_and_mobiles(mentions: Iterable[str]) -> tuple[list[str], list[str]]:
    """The mentions that are ids, and those that are mobile numbers.

    >>> _ids_and_mobiles(["13800000000", "+86-13800000000", "manager42"])
    (['manager42'], ['13800000000', '+86-13800000000'])
    """
    mobiles = [mention for mention in mentions if re.fullmatch(r"(\+\d+-?)?\d{11}", mention)]
    return [mention for mention in mentions if mention not in mobiles], mobiles


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
    text = "\n".join([*map(inert, lines), *(f"@{mention}" for mention in mentions)])
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
        paragraphs.append([{"tag": "at", "user_id": mention} for mention in message.mentions])
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


# ------------------------------------------------------------------ Slack

#: Messages whose blocks have more than some 13,000 characters are refused (msg_blocks_too_long).
_LONGEST_OF_SLACK = 12_000
_SLACK_REASONS = {
    "invalid_payload": _NOT_UNDERSTOOD,
    "invalid_blocks": _NOT_UNDERSTOOD,
    "msg_blocks_too_long": "the message is too long",
    "invalid_token": "the webhook's URL is not valid",
    "no_service": "the webhook was removed or is disabled",
    "no_team": "the workspace is gone",
    "channel_not_found": "the channel is gone",
    "channel_is_archived": "the channel is archived",
    "action_prohibited": "an administrator does not allow it",
    "posting_to_general_channel_denied": "an administrator does not allow it in this channel",
}


def _to_slack(message: Message, access: Access, _now: datetime) -> Iterable[HttpRequest]:
    block = message.fitted(partial(_slack_block, message.mentions), _LONGEST_OF_SLACK, json_size)
    # The text is what a notification shows: no name is in it.
    yield HttpRequest(
        access.url, {"text": message.heading, "blocks": [block], "unfurl_links": False}
    )


def _slack_block(mentions: Iterable[str], lines: Sequence[str]) -> dict[str, Any]:
    heading, *others = lines
    texts: list[dict[str, Any]] = [{"type": "text", "text": heading, "style": {"bold": True}}]
    for line in others:
        if isinstance(line, Link):
            texts.append({"type": "text", "text": f"\n{line.removesuffix(line.url)}"})
            texts.append({"type": "link", "url": line.url})
        else:
            texts.append({"type": "text", "text": f"\n{inert(line)}"})
    for mention in mentions:
        kind = "usergroup" if mention.startswith("S") else "user"
        texts += [{"type": "text", "text": "\n"}, {"type": kind, f"{kind}_id": mention}]
    return {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": texts}]}


def _refused_by_slack(answer: Reply) -> Refusal | None:
    word = answer.text.strip()
    if answer.status == 200 and word == "ok":
        return None
    if word in _SLACK_REASONS:
        return Refusal(f"{word}: {_SLACK_REASONS[word]}")
    return status_refusal(answer) or NOT_ITS


SLACK = Service(("hooks.slack.com", "hooks.slack-gov.com"), _to_slack, _refused_by_slack)


# ------------------------------------------------------------------ Teams

_LONGEST_OF_TEAMS = 25_000


def _to_teams(message: Message, access: Access, _now: datetime) -> Iterable[HttpRequest]:
    yield HttpRequest(access.url, message.fitted(_teams_body, _LONGEST_OF_TEAMS, json_size))


def _teams_body(lines: Sequence[str]) -> dict[str, Any]:
    heading, *others = lines
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "msteams": {"width": "Full"},
        "body": [_teams_line(heading, {"weight": "Bolder"}), *map(_teams_line, others)],
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return {"type": "message", "attachments": [attachment]}


def _teams_line(text: str, style: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A line of the card; the heading has a style of its own, and no line before it."""
    # {{DATE(...)}} would be computed; blanks at the beginning of a line are lost.
    literal = inert(text).replace("{{", "{\u200b{").replace("    ", "\u00a0\u00a0\u00a0\u00a0")
    run: dict[str, Any] = {"type": "TextRun", "text": literal, **(style or {})}
    if isinstance(text, Link):
        run["selectAction"] = {"type": "Action.OpenUrl", "url": text.url}
    spacing = {} if style else {"spacing": "Small"}
    return {"type": "RichTextBlock", "inlines": [run], **spacing}


def _refused_by_teams(answer: Reply) -> Refusal | None:
    if answer.status == 202:
        return None
    return status_refusal(answer) or Refusal("Teams did not take the message")


_TEAMS_HOSTS = ("api.powerplatform.com", "logic.azure.com", "logic.azure.us", "logic.azure.cn")
TEAMS = Service(_TEAMS_HOSTS, _to_teams, _refused_by_teams)


#: Rocket.Chat shows 5,000 characters, Mattermost 16,383.
_LONGEST = 4_800
_FENCE = "```"


def _requests(message: Message, access: Access, _now: datetime) -> Iterable[HttpRequest]:
    yield HttpRequest(access.url, document(message))


def document(message: Message) -> dict[str, Any]:
    """The message as a JSON object: its text, and each problem with its findings."""
    return {
        "text": message.fitted(_text, _LONGEST, len),
        "language": message.language.code,
        "heading": message.heading,
        "date": message.date,
        "run_id": message.run_id,
        "state": message.state,
        "missing": message.missing or None,
        "problems": [_problem(item) for item in message.items],
        "problems_left_out": message.left_out,
        "report_url": message.url or None,
    }


def _text(lines: Sequence[str]) -> str:
    heading, *others = lines
    if not others:
        return heading
    literal = [inert(line).replace(_FENCE, "`\u200b``") for line in others]
    return "\n".join([heading, _FENCE, *literal, _FENCE])


def _problem(item: Item) -> dict[str, Any]:
    return {
        **item.place._asdict(),
        "severity": item.severity,
        "ongoing": item.is_ongoing,
        "summary": item.summary,
        "explanations": list(item.explanations),
        "report_url": item.url or None,
        "owner": item.owner or None,
        "findings": [
            {
                "finding_id": finding_id,
                "kind": finding.kind,
                "topic": finding.place.topic,
                "broker_name": queue and queue[0],
                "queue_id": queue and queue[1],
                "severity": finding.severity,
                "status": finding.status,
                "ongoing": finding.ongoing,
                "causes": list(finding.causes),
                "first_seen": iso(finding.first_seen),
                "last_seen": iso(finding.last_seen),
                "share_of_time": finding.share_of_time,
                "open_since": finding.open_since and iso(finding.open_since),
                "nights_open": finding.nights_open,
            }
            for finding in item.findings
            for finding_id, queue in finding.rows
        ],
    }


def _refusal(answer: Reply) -> Refusal | None:
    """An error in a 200: a program may say it as the chats do."""
    values = answer.values
    if any(values.get(name) is False for name in ("ok", "success")):
        return Refusal("the answer says that it failed")
    if any(name in values for name in ("errcode", "StatusCode")):
        return code_refusal(("errcode", "StatusCode"), {}, (), answer)
    return status_refusal(answer)


JSON = Service((), _requests, _refusal)

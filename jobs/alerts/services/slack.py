"""Slack: an incoming webhook.

https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks: the answer to a message
that was taken is 200 with the text "ok"; errors are 4xx with a word.
https://docs.slack.dev/reference/block-kit/blocks/rich-text-block: the text elements of such a
block are shown as they are: no link, mention or style but by an element of its kind. That is why
the names are in one, and not in ``mrkdwn``.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from ..delivery import Refusal
from ..message import Link, Message
from ..webhook import HttpRequest, Reply, json_size
from .service import NOT_ITS, Access, Service, inert, status_refusal

#: Messages whose blocks have more than some 13,000 characters are refused (msg_blocks_too_long).
_LONGEST = 12_000
_REASONS = {
    "invalid_payload": "it does not understand the message",
    "invalid_blocks": "it does not understand the message",
    "msg_blocks_too_long": "the message is too long",
    "invalid_token": "the webhook's URL is not valid",
    "no_service": "the webhook was removed or is disabled",
    "no_team": "the workspace is gone",
    "channel_not_found": "the channel is gone",
    "channel_is_archived": "the channel is archived",
    "action_prohibited": "an administrator does not allow it",
    "posting_to_general_channel_denied": "an administrator does not allow it in this channel",
}


def _requests(message: Message, access: Access, _now: datetime) -> Iterable[HttpRequest]:
    block = message.fitted(partial(_block, message.mentions), _LONGEST, json_size)
    # The text is what a notification shows: no name is in it.
    yield HttpRequest(
        access.url, {"text": message.heading, "blocks": [block], "unfurl_links": False}
    )


def _block(mentions: Iterable[str], lines: Sequence[str]) -> dict[str, Any]:
    heading, *others = lines
    texts: list[dict[str, Any]] = [{"type": "text", "text": heading, "style": {"bold": True}}]
    for line in others:
        if isinstance(line, Link):
            texts.append({"type": "text", "text": f"\n{line.removesuffix(line.url)}"})
            texts.append({"type": "link", "url": line.url})
        else:
            texts.append({"type": "text", "text": f"\n{inert(line)}"})
    for each in mentions:
        kind = "usergroup" if each.startswith("S") else "user"
        texts += [{"type": "text", "text": "\n"}, {"type": kind, f"{kind}_id": each}]
    return {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": texts}]}


def _refusal(answer: Reply) -> Refusal | None:
    word = answer.text.strip()
    if answer.status == 200 and word == "ok":
        return None
    if word in _REASONS:
        return Refusal(f"{word}: {_REASONS[word]}")
    return status_refusal(answer) or NOT_ITS


SLACK = Service(("hooks.slack.com", "hooks.slack-gov.com"), _requests, _refusal)

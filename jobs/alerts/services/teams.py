"""Microsoft Teams: a workflow "when a Teams webhook request is received".

https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/add-incoming-webhook:
an Adaptive Card in a message of up to 28 KB; a workflow answers 202. The connectors of Office 365,
which are being retired, answer 200 with "1", and with the text of an error where a message was not
taken.
https://learn.microsoft.com/adaptive-cards/authoring-cards/text-features: a ``RichTextBlock`` does
not read Markdown, so that names in it stay text.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from ..delivery import LONGEST_PAUSE, Refusal
from ..message import Message
from ..webhook import Answer, Request, json_bytes
from .service import Access, Service, inert, status_refusal

_LONGEST = 25_000
_ACCEPTED = 202


def _requests(message: Message, access: Access, _now: datetime) -> Iterable[Request]:
    lines = message.fitted(lambda lines: len(json_bytes(_body(lines))) <= _LONGEST)
    yield Request(access.url, _body(lines))


def _body(lines: Sequence[str]) -> dict[str, Any]:
    heading, *others = lines
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "msteams": {"width": "Full"},
        "body": [_line(heading, is_heading=True), *(_line(line) for line in others)],
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return {"type": "message", "attachments": [attachment]}


def _line(text: str, *, is_heading: bool = False) -> dict[str, Any]:
    # {{DATE(...)}} would be computed; blanks at the beginning of a line are lost.
    literal = inert(text).replace("{{", "{\u200b{").replace("    ", "\u00a0\u00a0\u00a0\u00a0")
    weight = {"weight": "Bolder"} if is_heading else {}
    block: dict[str, Any] = {
        "type": "RichTextBlock",
        "inlines": [{"type": "TextRun", "text": literal, **weight}],
    }
    return block if is_heading else {**block, "spacing": "Small"}


def _refusal(answer: Answer) -> Refusal | None:
    if answer.status == _ACCEPTED or (answer.status == 200 and answer.text.strip() in ("", "1")):
        return None
    if answer.status == 200 and "429" in answer.text:
        return Refusal("too many messages in a short time", LONGEST_PAUSE)
    return status_refusal(answer) or Refusal("Teams did not take the message")


TEAMS = Service(
    (
        "logic.azure.com",
        "api.powerplatform.com",
        "webhook.office.com",
        "logic.azure.us",
        "logic.azure.cn",
    ),
    _requests,
    _refusal,
)

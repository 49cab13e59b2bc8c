"""Microsoft Teams: a workflow "when a Teams webhook request is received".

https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/add-incoming-webhook:
an Adaptive Card in a message of up to 28 KB; a workflow answers 202.
https://learn.microsoft.com/adaptive-cards/authoring-cards/text-features: a ``RichTextBlock`` does
not read Markdown, so that names in it stay text.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from ..delivery import Refusal
from ..message import Link, Message
from ..webhook import HttpRequest, Reply, json_size
from .service import Access, Service, inert, status_refusal

_LONGEST = 25_000


def _requests(message: Message, access: Access, _now: datetime) -> Iterable[HttpRequest]:
    yield HttpRequest(access.url, message.fitted(_body, _LONGEST, json_size))


def _body(lines: Sequence[str]) -> dict[str, Any]:
    heading, *others = lines
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "msteams": {"width": "Full"},
        "body": [_line(heading, {"weight": "Bolder"}), *(_line(each) for each in others)],
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return {"type": "message", "attachments": [attachment]}


def _line(text: str, style: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A line of the card; the heading has a style of its own, and no line before it."""
    # {{DATE(...)}} would be computed; blanks at the beginning of a line are lost.
    literal = inert(text).replace("{{", "{\u200b{").replace("    ", "\u00a0\u00a0\u00a0\u00a0")
    run: dict[str, Any] = {"type": "TextRun", "text": literal, **(style or {})}
    if isinstance(text, Link):
        run["selectAction"] = {"type": "Action.OpenUrl", "url": text.url}
    spacing = {} if style else {"spacing": "Small"}
    return {"type": "RichTextBlock", "inlines": [run], **spacing}


def _refusal(answer: Reply) -> Refusal | None:
    if answer.status == 202:
        return None
    return status_refusal(answer) or Refusal("Teams did not take the message")


_HOSTS = ("api.powerplatform.com", "logic.azure.com", "logic.azure.us", "logic.azure.cn")
TEAMS = Service(_HOSTS, _requests, _refusal)

"""Base of the services: a message becomes requests, an answer becomes a verdict.

The service says what was delivered, and not the HTTP status: some answer 200 with an error code.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from ..delivery import LONGEST_PAUSE, Refusal
from ..message import Link, Message
from ..webhook import HttpRequest, Reply

#: Beginnings of a call to everybody, which some chats see even in plain text.
_CALL = re.compile(r"@(?=(?:all|channel|everyone|here|所有人)(?!\w))", re.IGNORECASE)
#: Parts of which chats make a link in plain text, the beginning of an address, or a mention: <@U1>.
_LINK = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)|(?<=mailto)(?=:)|(?<=<)(?=[!@#])", re.IGNORECASE)
_ZERO_WIDTH_SPACE = "\u200b"
#: The refusal for a 2xx with a body that the service does not give.
NOT_ITS = Refusal("an answer that the service does not give")


@dataclass(frozen=True)
class Access:
    """The address of a service, and the secret for it; neither is shown."""

    url: str = field(repr=False)
    secret: str = field(default="", repr=False)


@dataclass(frozen=True)
class Service:
    """A service behind a webhook.

    ``hosts``: the hosts whose URLs are its, also those that end so. ``requests``: what is posted,
    one after the other. ``refusal``: what is wrong with an answer that is neither 5xx nor 429.
    """

    hosts: tuple[str, ...]
    requests: Callable[[Message, Access, datetime], Iterable[HttpRequest]]
    refusal: Callable[[Reply], Refusal | None]
    #: The URL where none is given; whether it needs a secret; whether it has incidents that end.
    url: str = ""
    needs_secret: bool = False
    has_incidents: bool = False

    def is_at(self, host: str) -> bool:
        """True if a URL with this host is the service's."""
        return any(host == each or host.endswith(f".{each}") for each in self.hosts)


def inert(line: str) -> str:
    """A line for whoever shows plain text: no address in it becomes a link, nobody is called.

    >>> inert("https://evil.example @all").replace("\u200b", "|")
    'https:|//evil.example @|all'
    """
    if isinstance(line, Link):
        return line
    return _CALL.sub(f"@{_ZERO_WIDTH_SPACE}", _LINK.sub(_ZERO_WIDTH_SPACE, line))


def status_refusal(answer: Reply) -> Refusal | None:
    """The refusal by an HTTP status: 2xx is taken; nobody follows a redirect."""
    if 200 <= answer.status < 300:
        return None
    redirect = ": a redirect, which is not followed" if 300 <= answer.status < 400 else ""
    return Refusal(f"HTTP status {answer.status}{redirect}")


def code_refusal(
    names: Iterable[str], reasons: Mapping[int, str], passing: Iterable[int], answer: Reply
) -> Refusal | None:
    """The refusal by a code in the answer: 0 is taken; ``passing`` are codes that may pass.

    ``names`` are the names of the code, the first that is there counts. An answer without a code
    is not the service's.
    """
    code = next((answer.values[name] for name in names if name in answer.values), None)
    if isinstance(code, bool) or not isinstance(code, int):
        return status_refusal(answer) or NOT_ITS
    if code == 0:
        return None
    reason = f": {reasons[code]}" if code in reasons else ""
    return Refusal(f"error code {code}{reason}", LONGEST_PAUSE if code in passing else None)

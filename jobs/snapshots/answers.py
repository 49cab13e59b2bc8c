"""What became of a poll: an answer, nobody there, or no answer.

A dump may hold the same poll twice: a collector that retried, two overlapping files. Counting it
twice would turn every member into two. Of each witness, subject and round the poll collected last
counts.
"""

import re

from ..dumps.statement import Source
from ..schemas import ANSWERED, NO_ANSWER, NOT_ONLINE

#: ``ResponseCode.CONSUMER_NOT_ONLINE``: the broker knows no member of the group.
CONSUMER_NOT_ONLINE = 206
#: ``ResponseCode.TOPIC_NOT_EXIST``: the nameserver answered, and knows no such topic.
TOPIC_NOT_EXIST = 17

# The dashboard passes a code on only within its message: "CODE: 206  DESC: ...".
_NOT_ONLINE_MESSAGE = re.compile(rf"CODE: *{CONSUMER_NOT_ONLINE}\b|not online", re.ASCII)
_NO_ROUTE_MESSAGE = re.compile(rf"CODE: *{TOPIC_NOT_EXIST}\b|No topic route info", re.ASCII)


def outcome_of_poll(source: Source) -> str:
    """ANSWERED, NOT_ONLINE or NO_ANSWER, of a broker that was asked for a group's list.

    >>> [outcome_of_poll(Source(code=code)) for code in (None, 206, -1)]
    ['ANSWERED', 'NOT_ONLINE', 'NO_ANSWER']
    """
    if source.code is None:
        return ANSWERED
    if source.code == CONSUMER_NOT_ONLINE or _NOT_ONLINE_MESSAGE.search(source.message or ""):
        return NOT_ONLINE
    return NO_ANSWER


def has_answered_route(source: Source) -> bool:
    """Whether a nameserver answered; that it knows no such topic is an answer too.

    >>> has_answered_route(Source(code=17)), has_answered_route(Source(code=-1))
    (True, False)
    """
    return (
        source.code is None
        or source.code == TOPIC_NOT_EXIST
        or _NO_ROUTE_MESSAGE.search(source.message or "") is not None
    )

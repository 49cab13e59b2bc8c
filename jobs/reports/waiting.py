"""The messages that wait in topics: how many, how fast they pile up, and since when."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from rebalance_core.english import agreeing, count
from rebalance_core.texts import Text

from ..texts.shown import day_and_time

#: The columns of ``group_health`` that a ``WaitingMessages`` is made of.
COLUMNS = ("backlog", "backlog_per_minute", "waiting_since")


class WaitingMessages(NamedTuple):
    """Messages that were not consumed at the last offsets; None: not known, for no offsets came.

    ``since``: by when the oldest of them had come; None where all are as new as the last offsets.
    """

    messages: int | None = None
    per_minute: float = 0.0
    since: datetime | None = None

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> "WaitingMessages":
        """The waiting messages of a topic, from its row of ``group_health``."""
        messages, per_minute, since = (row[name] for name in COLUMNS)
        is_new = since is not None and since >= row["last_seen"]
        return cls(messages, per_minute or 0.0, None if is_new else since)

    @classmethod
    def of_all(cls, every: Iterable["WaitingMessages"]) -> "WaitingMessages":
        """The waiting messages of several topics together, where known.

        >>> WaitingMessages.of_all([WaitingMessages(0), WaitingMessages()]).messages
        0
        """
        every = list(every)
        known = [each.messages for each in every if each.messages is not None]
        since = min((each.since for each in every if each.since is not None), default=None)
        growth = sum(each.per_minute for each in every)
        return cls(sum(known) if known else None, growth, since)

    @property
    def text(self) -> str:
        """The sentence; empty where nothing waits, or it is not known.

        >>> WaitingMessages(2_000, 61.5, datetime(2026, 11, 20, 10, 3)).text
        '2,000 messages wait, 62 more a minute, the oldest since 2026-11-20 10:03:00'
        >>> WaitingMessages(1, -0.2).text, WaitingMessages().text
        ('1 message waits', '')
        """
        if not self.messages:
            return ""
        messages = count(self.messages, "message")
        text = agreeing(self.messages, "{messages} [waits|wait]", messages=messages)
        if number := round(abs(self.per_minute)):
            template = "{waiting}, {number:,} fewer a minute"
            if self.per_minute > 0:
                template = "{waiting}, {number:,} more a minute"
            text = Text(template, waiting=text, number=number)
        if self.since is not None:
            since = day_and_time(self.since)
            text = Text("{waiting}, the oldest since {time}", waiting=text, time=since)
        return text


NOTHING = WaitingMessages()

"""The messages that wait in topics: how many, how fast they pile up, and since when."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from rebalance_core.english import agreeing, count
from rebalance_core.message_queue import is_own_retry_topic
from rebalance_core.texts import Text

from .shown import day_and_time

#: The columns that hold a ``WaitingMessages``, in its order.
COLUMNS = ("backlog", "backlog_per_minute", "waiting_since", "queues", "queues_without_offsets")


class WaitingMessages(NamedTuple):
    """Messages that were not consumed at the last offsets; None: not known, for no offsets came.

    ``first_seen``: by when the oldest of them had come; None where all are as new as the last
    offsets. ``queues``: how many there are; of so many of them ``without_offsets`` nothing is
    known, so that at least so much waits.
    """

    messages: int | None = None
    per_minute: float = 0.0
    first_seen: datetime | None = None
    queues: int = 0
    without_offsets: int = 0

    @classmethod
    def of_columns(cls, row: Mapping[str, Any]) -> "WaitingMessages":
        """The waiting messages that the columns of a row hold."""
        messages, per_minute, first_seen, queues, without_offsets = (row[name] for name in COLUMNS)
        return cls(messages, per_minute or 0.0, first_seen, queues or 0, without_offsets or 0)

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> "WaitingMessages":
        """The waiting messages of a topic, from its row of ``group_health``.

        A broker gives offsets of topics alone of which the group has committed any
        (``ConsumerOffsetManager.whichTopicByConsumer``), and most retry topics have none: of these
        nothing is missing.
        """
        found = cls.of_columns(row)
        if found.messages is None and is_own_retry_topic(row["topic"], row["consumer_group"]):
            return NOTHING
        is_new = found.first_seen is not None and found.first_seen >= row["last_seen"]
        return found._replace(first_seen=None) if is_new else found

    @property
    def columns(self) -> dict[str, Any]:
        """The same as columns of a row."""
        return dict(zip(COLUMNS, self, strict=True))

    @classmethod
    def of_all(cls, every: Iterable["WaitingMessages"]) -> "WaitingMessages":
        """The waiting messages of several topics together, where known.

        >>> WaitingMessages.of_all([WaitingMessages(0), WaitingMessages()]).messages
        0
        """
        every = list(every)
        known = [waiting.messages for waiting in every if waiting.messages is not None]
        first_seen = min(
            (waiting.first_seen for waiting in every if waiting.first_seen is not None),
            default=None,
        )
        return cls(
            sum(known) if known else None,
            sum(waiting.per_minute for waiting in every),
            first_seen,
            sum(waiting.queues for waiting in every),
            sum(waiting.without_offsets for waiting in every),
        )

    @property
    def text(self) -> str:
        """The sentence; empty where it is not known.

        >>> WaitingMessages(2_000, 61.5, datetime(2026, 11, 20, 10, 3)).text
        '2,000 messages wait, 62 more a minute, the oldest from 2026-11-20 10:03:00'
        >>> WaitingMessages(1, -0.2).text, WaitingMessages(0).text, WaitingMessages().text
        ('1 message waits', 'no message waits', '')
        >>> WaitingMessages(12_300, queues=8, without_offsets=2).text
        'at least 12,300 messages wait (no offsets of 2 of 8 queues)'
        >>> WaitingMessages(0, queues=8, without_offsets=2).text
        'no message is known to wait (no offsets of 2 of 8 queues)'
        """
        return self.text_of_times(day_and_time)

    def text_of_times(self, shown: Callable[[datetime], str]) -> str:
        """The same with times as ``shown`` has them."""
        if self.messages is None:
            return ""
        text: str = Text("no message waits")
        if self.messages:
            messages = count(self.messages, "message")
            text = agreeing(self.messages, "{messages} [waits|wait]", messages=messages)
        elif self.without_offsets:
            text = Text("no message is known to wait")
        if number := round(abs(self.per_minute)):
            template = "{waiting}, {number:,} fewer a minute"
            if self.per_minute > 0:
                template = "{waiting}, {number:,} more a minute"
            text = Text(template, waiting=text, number=number)
        if self.first_seen is not None:
            text = Text(
                "{waiting}, the oldest from {time}", waiting=text, time=shown(self.first_seen)
            )
        if not self.without_offsets:
            return text
        template = "at least {waiting} (no offsets of {number:,} of {queues})"
        if not self.messages:
            template = "{waiting} (no offsets of {number:,} of {queues})"
        queues = count(self.queues, "queue")
        return Text(template, waiting=text, number=self.without_offsets, queues=queues)

    @property
    def number(self) -> str:
        """The number, for a cell of a table.

        >>> WaitingMessages().number, WaitingMessages(1_200).number
        ('not known', '1,200')
        >>> WaitingMessages(1_200, queues=8, without_offsets=2).number
        'at least 1,200'
        """
        if self.messages is None or (self.without_offsets and not self.messages):
            return Text("not known")
        number = f"{self.messages:,}"
        return Text("at least {number}", number=number) if self.without_offsets else number


NOTHING = WaitingMessages()

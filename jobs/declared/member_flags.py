"""Two facts about a member that follow from its row: whether it is expired, and whether it chooses
its queues itself. Ingest asks for one member at a time, the fold for columns of them.
"""

from bisect import bisect_left

from rebalance_core.state import GROUP_TABLE

from .client_intervals import HEARTBEAT_INTERVAL
from .instants import SECOND, Instant

#: The ``consume_type`` of who pulls: a lite pull consumer, or a pull consumer.
PULLS = "CONSUME_ACTIVELY"
#: A connection is heard while its last heartbeat is no older than three of them: two may be lost.
#: Less than a broker keeps a silent connection (120 s), so that where the collector stops to listen
#: all are unheard before the first is expired.
HEARD_SECONDS = 3 * HEARTBEAT_INTERVAL // SECOND

#: The flag by the number of bounds that a silence exceeds.
EXPIRED_BEYOND = (False, None, True)


def silence_bounds(heartbeat_expiry_seconds: int) -> tuple[Instant, Instant]:
    """The longest silence of a member that is heard, and the one from which on it is expired."""
    expiry = heartbeat_expiry_seconds * SECOND
    return min(HEARD_SECONDS * SECOND, expiry), expiry


def is_expired(
    silence: Instant | None, bounds: tuple[Instant, Instant], *, is_silent: bool
) -> bool | None:
    """True: it stopped, or is silent for longer than a broker keeps a connection. False: it was
    heard lately. None: neither, or no heartbeat over the connection was collected.

    ``bounds``: see ``silence_bounds``. A flag and not an age, so that a list does not become
    another one with every poll.

    >>> bounds = silence_bounds(130)
    >>> [is_expired(each * SECOND, bounds, is_silent=False) for each in (90, 91, 131)]
    [False, None, True]
    """
    if is_silent:
        return True
    if silence is None:
        return None
    return EXPIRED_BEYOND[bisect_left(bounds, silence)]


def chooses_queues(
    pull_consumer: bool | None,
    consume_type: str | None,
    subscription_source: str | None,
    subscriptions: int | None,
) -> bool:
    """True if a member takes its queues by itself, so that no strategy gives it any.

    A ``DefaultMQPullConsumer``, whose application pulls what it likes, or one that pulls and itself
    reports that it subscribes to nothing (``subscriptions``: how many): it takes its queues by
    ``assign()`` (``DefaultLitePullConsumerImpl`` 5.3.3). What the group's table has does not count:
    the last heartbeat of any member wrote it.
    """
    assigns = (
        consume_type == PULLS
        and subscriptions == 0
        and subscription_source is not None
        and subscription_source != GROUP_TABLE
    )
    return bool(pull_consumer) or assigns

"""dossier -> a group that was deleted: brokers have its offsets, and no configuration of it.

``deleteSubGroup`` leaves the offsets, unless it is asked to remove them
(``AdminBrokerProcessor.deleteSubscriptionGroup`` 5.3.3, ``cleanOffset``): messages wait by the
numbers, and nobody is missing. A broker that creates groups by itself
(``autoCreateSubscriptionGroup``, the default) has it again as soon as a client of it sends a
heartbeat or pulls (``SubscriptionGroupManager.findSubscriptionGroupConfig`` 4.9.4 to 5.3.3).
Another one refuses each pull (SUBSCRIPTION_GROUP_NOT_EXIST, ``PullMessageProcessor``), and 5.x
leaves such a group out of each heartbeat (``ClientManageProcessor.heartBeat`` 5.1.4 and 5.3.3, not
4.9.8): its list drops members that live.
"""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from rebalance_core.english import MOST_NAMES, agreeing, list_of
from rebalance_core.texts import Text

from ...declared.dossier import Dossier
from ...declared.instants import Instant
from ...schemas import NO_ANSWER
from .answers import BRIDGED_AT_LEAST, longest_bridge
from .in_words import zoned_clock


class NoConfig(NamedTuple):
    """The time since which brokers have no configuration of a group.

    ``since``: the first round from which on none of them had one. ``until``: the last round in
    which one of them had one; None: none ever had. ``unknown``: the other brokers of the group,
    which did not say, or do not answer any more. ``has_members``: the group had members when it
    was deleted, or after it.
    """

    since: Instant
    until: Instant | None
    broker_names: Collection[str]
    unknown: Collection[str]
    has_members: bool

    @property
    def is_left_over(self) -> bool:
        """True if the group was deleted everywhere, and nobody consumed for it."""
        return not self.unknown and not self.has_members

    @property
    def what(self) -> Text:
        """The answers of the brokers, in words."""
        values = {
            "brokers": list_of(sorted(self.broker_names), MOST_NAMES),
            "since": zoned_clock(self.since),
        }
        if self.until is None:
            what = agreeing(
                len(self.broker_names),
                "{brokers} [has|have] no subscription group of this name, and had none since "
                "{since}",
                **values,
            )
        else:
            what = agreeing(
                len(self.broker_names),
                "{brokers} [has|have] no subscription group of this name since {since}, and had it "
                "until {until}: it was deleted",
                **values,
                until=zoned_clock(self.until),
            )
        if not self.unknown:
            return what
        unknown = list_of(sorted(self.unknown), MOST_NAMES)
        return Text("{what}; of {unknown} it is not known", what=what, unknown=unknown)


def no_config(dossier: Dossier) -> NoConfig | None:
    """The time since which no broker has a configuration of the group, as their last answers say;
    None: one has, or none was asked.

    A broker that answers no more says nothing; one that no route gives any more, either, is gone.

    Worked example: broker-a has it up to 10:02 and not at 10:03, broker-b up to 10:03 and not at
    10:04. It was deleted at 10:04.
    """
    rounds = np.unique([time for answers in dossier.configured.values() for time in answers])
    if not rounds.size:
        return None
    present = rounds[-1] - max(BRIDGED_AT_LEAST, longest_bridge(rounds))
    said = {name: of for name, of in dossier.configured.items() if max(of) >= present}
    if any(answers[max(answers)] for answers in said.values()):
        return None
    had = [time for answers in said.values() for time, has in answers.items() if has]
    lacked = [
        min(time for time in answers if time > max((t for t in answers if answers[t]), default=-1))
        for answers in said.values()
    ]
    since, until, last = max(lacked), max(had, default=None), dossier.last_listed
    # Members that a broker lists no more are gone at once where they stopped. Of rounds that are
    # further apart than it keeps a silent one nobody knows.
    is_seen = until is None or since - until <= BRIDGED_AT_LEAST
    has_members = last is not None and last.time >= (since if is_seen else until or since)
    polled = {run.broker[0] for run in dossier.polls if run.answer != NO_ANSWER}
    stored = {offsets.broker_name for of_topic in dossier.offsets.values() for offsets in of_topic}
    # Brokers of other groups never had it.
    names = [name for name, answers in said.items() if any(answers.values())] or said.keys()
    routes = [run for runs in dossier.routes.values() for run in runs]
    routed = {b.broker_name for run in routes if run.times[-1] >= present for b in run.brokers}
    gone = dossier.configured.keys() - routed if routes else set()
    return NoConfig(since, until, names, (polled | stored) - said.keys() - gone, has_members)

"""Coverages that leave a group's topic without an audit, each with who is to act and how.

``rebalance_core.findings`` declares the coverages and their reasons.
"""

from collections.abc import Mapping
from typing import Any

from rebalance_core import findings
from rebalance_core.texts import Text

from ..declared.kinds import NO_GROUP

#: Nothing is missing with these: the topic was audited, or there is nothing to audit. Members read
#: all queues, choose their queues themselves, let the broker divide them, or do not subscribe.
COMPLETE = frozenset(
    {
        findings.AUDITED,
        findings.BROADCASTING_GROUP,
        findings.NOT_SUBSCRIBED,
        findings.QUEUES_CHOSEN,
        findings.SHARED_BY_BROKER,
        NO_GROUP,
    }
)

#: Actions by coverage: with each of these, and with any other, the topic was not audited.
ACTIONS: Mapping[str, Text] = {
    findings.NO_BROKER_ANSWERED: Text(
        "whoever runs the collector: check that it reaches the brokers and collects their "
        "lists (consumer_connection)"
    ),
    findings.ROUTE_NOT_KNOWN: Text(
        "whoever runs the collector: collect the topic's route (topic_route); the group's owner, "
        "where the topic does not exist: correct its name"
    ),
    findings.NO_READABLE_QUEUE: Text(
        "the topic's owner: let consumers read the topic (mqadmin updateTopicPerm, or a read queue "
        "number above 0)"
    ),
    findings.NO_TOPIC: Text(
        "the group's owner: start its consumers, or remove the group (mqadmin deleteSubGroup); "
        "whoever runs the collector: collect subscriptions and offsets (consume_stats)"
    ),
    findings.TOO_MANY_QUEUES: Text(
        "the topic's owner: correct the queue numbers of the topic; where they are meant, raise "
        "bounds.topic_queues in the settings"
    ),
    findings.STRATEGY_NOT_KNOWN: Text(
        "whoever runs the audit: name the group's strategy and its parameters under "
        "[[strategies]] in the settings"
    ),
    findings.ALLOCATION_FAILS: Text(
        "the group's owner: correct the strategy; each client fails at every rebalance"
    ),
}
#: The action on a coverage that this version does not know.
ASK = Text("whoever runs the audit: see the reason in the table group_health")


def is_complete(coverage: str) -> bool:
    """True if a topic with this coverage was audited as far as it can be.

    >>> is_complete("BROADCASTING"), is_complete("NO_TOPIC"), is_complete("A_LATER_ONE")
    (True, False, False)
    """
    return coverage in COMPLETE


def was_audited(row: Mapping[str, Any]) -> bool:
    """True if the topic of a row of ``group_health`` was audited at all times that count."""
    return is_complete(row["coverage"]) and row["unaudited_coverage"] is None


def action_of(coverage: str) -> Text:
    """The action that a coverage calls for, and who is to take it."""
    return ACTIONS.get(coverage, ASK)

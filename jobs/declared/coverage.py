"""Coverages that leave a group's topic without an audit, each with who is to act and how.

``rebalance_core.findings`` declares the coverages of the core, with their reasons.
"""

from collections.abc import Mapping
from typing import Any

from rebalance_core import findings
from rebalance_core.texts import Text

from .kinds import AUDIT_FAILED, NO_GROUP

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
        "check that the collector reaches the brokers, and collects lists of theirs that can be "
        "read (consumer_connection)"
    ),
    findings.ROUTE_NOT_KNOWN: Text(
        "let the collector collect the topic's route (topic_route); if the topic does not exist, "
        "the group's owner has to correct its name"
    ),
    findings.NO_READABLE_QUEUE: Text(
        "ask the topic's owner to let consumers read it (mqadmin updateTopicPerm, or a read queue "
        "number above 0)"
    ),
    findings.NO_TOPIC: Text(
        "ask the group's owner to start its consumers or to remove the group (mqadmin "
        "deleteSubGroup), and let the collector collect subscriptions and offsets (consume_stats)"
    ),
    findings.TOO_MANY_QUEUES: Text(
        "ask the topic's owner to correct its queue numbers; if they are meant, raise "
        "bounds.topic_queues in the settings"
    ),
    findings.STRATEGY_NOT_KNOWN: Text(
        "name the group's strategy and its parameters under [[strategies]] in the settings"
    ),
    findings.ALLOCATION_FAILS: Text(
        "ask the group's owner to correct the strategy: each client fails at every rebalance"
    ),
    AUDIT_FAILED: Text(
        "report it: it is a defect of the audit, not of the group; the log of the run says where "
        "the stack is"
    ),
}
#: The action on a coverage that this version does not know.
ASK = Text("see the reason in the table group_health")


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
    """The action that a coverage calls for."""
    return ACTIONS.get(coverage, ASK)

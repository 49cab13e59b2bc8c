"""A group on which the audit itself fails -> its rows: it was not audited, and nothing of it ended.

That is a defect of the audit, and costs this group alone.
"""

import traceback
from itertools import chain
from typing import NamedTuple

from rebalance_core.texts import Text

from ..console.failures import is_of_the_machine, sentence_of
from ..declared.kinds import AUDIT_FAILED
from .arrow_tables import Row
from .dossier import Dossier
from .health import topic_without_audit
from .matching_issues import known_coverage
from .statuses import former_findings
from .terms import Terms


class Failure(NamedTuple):
    """The error of a group in one sentence, and its stack."""

    cluster: str
    consumer_group: str
    sentence: str
    stack: str

    @classmethod
    def of(cls, cluster: str, consumer_group: str, error: Exception) -> "Failure":
        """The failure, while the error is handled; what is the machine's is raised again."""
        if is_of_the_machine(error):
            raise error
        return cls(cluster, consumer_group, sentence_of(error), traceback.format_exc())


def rows_of_failed(dossier: Dossier, failure: Failure, terms: Terms) -> dict[str, list[Row]]:
    """The rows of the group in every report table: why it was not audited, and what stays open."""
    reason = Text("the audit failed on this group: {error}", error=failure.sentence)
    polled = {time for run in dossier.polls for time in run.times}
    routed = (run.times for runs in dossier.routes.values() for run in runs)
    times = sorted(polled or set(chain.from_iterable(routed)))
    topics = sorted({topic for each in dossier.list_topics.values() for topic in each}) or [""]
    tables = {
        "group_health": [
            topic_without_audit(topic, AUDIT_FAILED, reason, times)
            | {"known_issue": known_coverage(topic, AUDIT_FAILED, terms.known_issues)}
            for topic in (topics if times else ())
        ],
        "former_findings": former_findings(dossier.earlier, (), (), ()),
    }
    group = {"cluster": dossier.cluster, "consumer_group": dossier.consumer_group}
    return {table: [group | row for row in rows] for table, rows in tables.items()}

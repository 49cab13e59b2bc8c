"""A group on which the audit itself fails -> its rows: it was not audited, and nothing of it ended.

That is a defect of the audit, and costs this group alone.
"""

from itertools import chain

from rebalance_core.texts import Text

from ...declared.dossier import Dossier
from ...declared.kinds import AUDIT_FAILED
from ..arrow_tables import Row
from ..observe.evaluation import Failure
from ..rules.found import known_coverage
from ..terms import Terms
from .health import topic_without_audit
from .statuses import former_findings


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

"""client runs -> questions of the collector that may have stopped the client.

A Java client of 5.2.0 and later completes the answers of its brokers in the threads that also make
its running info (``NettyRemotingAbstract.invokeSyncImpl``), as many as it has processors. With one
it waits for itself: 5 s for each queue of which it has no offset yet, and for as long no pull, no
heartbeat and no list gets through. Further questions wait behind the first one, and stop it anew.
"""

from collections.abc import Iterable, Mapping, Sequence

from rebalance_core.english import joined
from rebalance_core.texts import Text

from ...declared.dossier import ClientRun
from ...declared.instants import SECOND, Instant
from ..observe.answers import asked_of
from .found import FaultEpisode

#: The first version that may stop (``MQVersion.V5_2_0_SNAPSHOT``), and its language.
_FIRST_VERSION, _LANGUAGE = 452, "JAVA"
#: The time for which a question without an answer may be under way: 5 s for each of 60 queues.
UNDER_WAY: Instant = 300 * SECOND

_MAY_BE_THE_CAUSE = Text(
    "the collector's own questions may be the cause: a Java client of 5.2.0 or later with one CPU "
    "that is asked for its running info does nothing for 5 s for each queue of which it has no "
    "offset yet, and questions pile up"
)
_LET_IT_BE = Text(
    "first collect for a while with --without running-infos, and with one collector: if it ends, "
    "the client does what it should, and two CPUs, or clientCallbackExecutorThreads = 2, let it "
    "answer"
)


def unanswered_questions(clients: Iterable[ClientRun]) -> Mapping[str, Sequence[Instant]]:
    """The times of the questions without an answer to each client that may stop by them."""
    runs = [*clients]
    may_stop = {
        run.client_id
        for run in runs
        if run.language == _LANGUAGE and (run.version or 0) >= _FIRST_VERSION
    }
    return {
        client_id: [question.moment for question in questions if not question.answered]
        for client_id, questions in asked_of(runs).items()
        if client_id in may_stop
    }


def may_be_ours(fault: FaultEpisode) -> FaultEpisode:
    """The fault that the questions may have caused, with what to do first."""
    remedy = joined([_LET_IT_BE, fault.remedy])
    return fault.saying([_MAY_BE_THE_CAUSE], remedy=remedy, may_be_ours=True)

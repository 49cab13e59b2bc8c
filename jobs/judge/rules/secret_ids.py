"""dossier -> SECRET_IN_CLIENT_ID: the client ids of the group that hold a secret.

A secret in a list of members can be read by whoever may list them, and is in the logs of brokers
and clients. That does not pass when the client leaves: the fault lasts, however short it was seen.
"""

from rebalance_core.client_id import without_secret
from rebalance_core.english import MOST_NAMES, agreeing, joined, list_of
from rebalance_core.texts import Text

from ...declared.kinds import PERSISTENT, SECRET_IN_CLIENT_ID
from ..times.extents import Extent
from .case import Case
from .found import FaultEpisode, GroupFindings

_REPLACE_IT = Text("then replace the secret, for the logs have it")


def secrets(case: Case, found: GroupFindings) -> GroupFindings:
    """The fault, once for the group: it is with the group's first topic, and about all of them.

    ``client_ids`` are shown masked in all that leaves the judgement; here they are the true ones.
    """
    masking, every, lists = case.terms.masking, case.snapshots, case.dossier.list_members
    # Nearly no group has one: then each of its ids is looked at once, and no list a second time.
    ids = {each for members in lists.values() for each in members().client_ids}
    secret = set(masking.with_secret(ids))
    shown = [
        (client_id, run.times)
        for run in (case.dossier.polls if secret else ())
        if run.answer in lists
        for client_id in secret.intersection(lists[run.answer]().client_ids)
    ]
    topics = sorted(topic for topic in case.dossier.topics() if topic)
    if not shown or not topics:
        return found
    times = sorted({time for _, of_run in shown for time in of_run})
    client_ids = tuple(sorted({client_id for client_id, _ in shown}))
    between = [time for time in every if times[0] <= time <= times[-1]]
    share, ongoing = len(times) / len(between), times[-1] == every[-1]
    topic = next((each for each in topics if not each.startswith("%")), topics[0])
    extent = Extent(times[0], times[-1], len(times), PERSISTENT, ongoing, share)
    evidence = agreeing(
        len(client_ids),
        "the client [id|ids] {clients} [holds|hold] a secret, which is masked here: whoever lists "
        "the members of the group, or reads a log of a broker or of a client, can read it",
        clients=list_of(map(masking.mask, client_ids), MOST_NAMES),
    )
    remedy = joined([without_secret(client_ids), _REPLACE_IT])
    fault = FaultEpisode(topic, extent, SECRET_IN_CLIENT_ID, evidence, remedy, client_ids)
    return found.plus([fault])

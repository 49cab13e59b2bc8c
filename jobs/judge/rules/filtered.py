"""lists, running infos -> whether what waits may be what a filter leaves out.

A broker does not give messages that a filter leaves out, and a client commits over them where it
has none in its cache (``correctTagsOffset`` of ``DefaultMQPushConsumerImpl`` 4.9.4 to 5.3.3).
Native Go clients do so from 2.1.1 on; before, the method was empty
(``consumer/push_consumer.go``): the offset stays until a message comes that the filter lets pass,
although all is read.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from operator import itemgetter
from typing import NamedTuple

from rebalance_core.descriptions import normalise_expression
from rebalance_core.english import MOST_NAMES, agreeing, list_of
from rebalance_core.state import NO_FILTER
from rebalance_core.texts import Text

from ...declared.contents import MEMBER_FACTS
from ...declared.kinds import INFO, WARNING
from ..observe.holdings import Holding
from ..observe.in_words import clients_in_words
from ..times.extents import Extent
from .case import Case

UPDATE_GO = Text(
    "nothing, if its listener gets the messages that pass the filter; with client-go 2.1.1 or "
    "later the offset moves over what the filter leaves out"
)

_GO_VERSION = re.compile(r"v([0-9]+)\.([0-9]+)\.([0-9]+)", re.ASCII)
#: The first version by its own word that commits over what a filter leaves out: 2.1.1 still says of
#: itself that it is v2.1.0, and 2.1.2 that it is v2.1.1 (``internal/client.go``).
_COMMITS_SURELY = (2, 1, 1)


class MayBeRead(NamedTuple):
    """Words for what may be, and the worst severity of what nothing else shows."""

    what: Text
    at_most: str


def left_out_by_filter(
    case: Case, topic: str, client_ids: Collection[str], time: Extent, answers: Sequence[Holding]
) -> MayBeRead | None:
    """Words for offsets of a topic that stay, where all may be read; None: it is not read.

    ``client_ids``: who has it; empty: any of those that subscribe. All of these are native Go
    clients that filter the topic, and none is known to commit over what the filter leaves out.
    ``answers``: what they hold of it, in that time. Where one of these lacks an activity it is not
    read: nobody asks for messages, or some wait. Without answers it is in doubt.
    """
    filters = _filters(case, topic, time)
    who = client_ids or filters.keys()
    found = [filters.get(each, _NO_GO) for each in who]
    versions = _versions(case, who)
    if not found or any(each == _NO_GO for each in found) or any(map(_commits_surely, versions)):
        return None
    if any(activity for answer in answers for activity in answer.activities.values()):
        return None
    template = (
        "{clients} [filters|filter] the topic by {filter}: native Go clients before 2.1.1 commit "
        "nothing over what the filter leaves out, so that the offset may stay although all is read"
    )
    named = {"clients": clients_in_words(who, {}), "filter": list_of(sorted({*found}), MOST_NAMES)}
    what = agreeing(len(who), template, **named)
    if versions:
        named = {"what": what, "versions": list_of(sorted(versions), MOST_NAMES)}
        what = agreeing(
            len(who), "{what} ([it says that it is|they say that they are] {versions})", **named
        )
    if not answers:
        return MayBeRead(what, WARNING)
    shown = "{what}; [it asks|they ask] for messages, and [has|have] none that waits"
    return MayBeRead(agreeing(len(who), shown, what=what), INFO)


_of_member = itemgetter(
    *map([fact.name for fact in MEMBER_FACTS].index, ("client_id", "language", "subscriptions"))
)
#: The filter of who is no native Go client, or does not filter.
_NO_GO = ""


def _filters(case: Case, topic: str, time: Extent) -> dict[str, str]:
    """The filter on the topic of each client that subscribes to it, by the lists of that time."""
    found: dict[str, set[str]] = defaultdict(set)
    for list_id in case.dossier.lists_between(time.first_seen, time.last_seen):
        members = map(_of_member, case.dossier.list_records[list_id])
        for client_id, language, subscriptions in members:
            for subscribed, kind, expression in subscriptions or ():
                if subscribed == topic:
                    used = normalise_expression(kind, expression)
                    is_go = (language or "").upper() == "GO" and used != NO_FILTER
                    found[client_id].add(used if is_go else _NO_GO)
    return {client_id: min(of_client) for client_id, of_client in found.items()}


def _versions(case: Case, client_ids: Collection[str]) -> set[str]:
    """The versions that these clients say they are."""
    said = (run for run in case.dossier.clients if run.client_id in client_ids)
    return {each.client_version for each in said if each.client_version}


def _commits_surely(version: str) -> bool:
    """True if a client of that version commits over what a filter leaves out.

    >>> [_commits_surely(each) for each in ("v2.1.0", "v2.1.1", "v3.0.0", "V4_9_4")]
    [False, True, True, False]
    """
    found = _GO_VERSION.match(version)
    return found is not None and tuple(map(int, found.groups())) >= _COMMITS_SURELY

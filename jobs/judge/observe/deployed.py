"""lists, running infos -> what a group's members changed with a deploy.

Another version, another strategy, other topics: the fault that begins there has its reason there.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from rebalance_core.english import list_of
from rebalance_core.grouping import grouped
from rebalance_core.message_queue import is_own_retry_topic
from rebalance_core.texts import Text

from ...declared.contents import MEMBER_FACTS
from ...declared.dossier import Dossier
from ...declared.instants import Instant
from ...schemas import RUNNING_INFO

#: The number of values of one fact that are named.
_MOST_VALUES = 3
#: ``MQVersion.V4_0_0``; from there on each version has a number for its snapshot and one for its
#: release, ten patches a minor and ten minors a major version (4.0.0 to 5.9.9, in 5.3.3).
_VERSION_4_0_0, _OF_A_MINOR, _OF_A_MAJOR = 213, 20, 200

#: The templates of what changed, by fact, in their order.
_CHANGED = {
    "language": "the client's language from {before} to {now}",
    "version": "the client's version from {before} to {now}",
    "consume_type": "its consume type from {before} to {now}",
    "chooses_queues": "who chooses its queues from {before} to {now}",
    "client_rebalance": "who divides the queues from {before} to {now}",
    "message_model": "its message model from {before} to {now}",
    "strategy": "its strategy from {before} to {now}",
    "consume_orderly": "whether it consumes in order from {before} to {now}",
    "subscriptions": "its subscription from {before} to {now}",
}
_WORDS: Mapping[tuple[str, Any], Text] = {
    ("chooses_queues", True): Text("the client itself (assign)"),
    ("chooses_queues", False): Text("the rebalance"),
    ("client_rebalance", True): Text("the clients"),
    ("client_rebalance", False): Text("the broker (POP)"),
    ("consume_orderly", True): Text("yes"),
    ("consume_orderly", False): Text("no"),
}
#: The values of facts that come without one: nearly all clients do so.
_USUAL = {"chooses_queues": False, "client_rebalance": True, "message_model": "CLUSTERING"}
_NAMES = [fact.name for fact in MEMBER_FACTS]
_client_id = itemgetter(_NAMES.index("client_id"))


class Replaced(NamedTuple):
    """The client ids that a deploy replaced, those that came, and when it began and ended."""

    old: Collection[str]
    new: Collection[str]
    begins: Instant
    ends: Instant


def changed_with(dossier: Dossier, deploy: Replaced) -> list[Text]:
    """The facts in which the members that came differ from those that a deploy replaced.

    A fact of which nothing is known on one side says nothing, nor does a subscription that one
    side has from another source.
    """
    before = _values(dossier, deploy.old, None, deploy.begins)
    now = _values(dossier, deploy.new, deploy.ends, None)
    found: list[Text] = []
    for fact, template in _CHANGED.items():
        was, is_ = before.get(fact, ()), now.get(fact, ())
        if was and is_ and not set(is_) <= set(was):
            found.append(Text(template, before=_in_words(fact, was), now=_in_words(fact, is_)))
    return found


def _values(
    dossier: Dossier, client_ids: Collection[str], since: Instant | None, until: Instant | None
) -> dict[str, list[Any]]:
    """The values of each fact that is known of these members, as the latest of each broker's last
    list before ``until``, or first one from ``since`` on, has them, and their running infos of that
    time: a list that came before a running info has the strategy that was.
    """

    def is_within(time: Instant) -> bool:
        return (since is None or time >= since) and (until is None or time < until)

    found: dict[str, set[Any]] = {}
    brokers = grouped(
        (run.broker, (time, run.answer))
        for run in dossier.polls
        if run.answer in dossier.list_records
        for time in _nearest(run.times, since, until)
    )
    sources: set[str | None] = set()
    lists = sorted(max(each) if since is None else min(each) for each in brokers.values())
    latest = {
        _client_id(record): list_id
        for _, list_id in lists
        for record in dossier.list_records[list_id]
    }
    for list_id in {*latest.values()}:
        for record in dossier.list_records[list_id]:
            if _client_id(record) in client_ids and latest[_client_id(record)] == list_id:
                facts = dict(zip(_NAMES, record, strict=True))
                sources.add(facts["subscription_source"])
                topics = _topics(facts["subscriptions"], dossier.consumer_group)
                facts |= {"subscriptions": (facts["subscription_source"], topics)}
                _add(found, facts.items())
    for run in dossier.clients:
        times = (time for time, _ in run.times if time is not None)
        is_asked = run.source == RUNNING_INFO and run.client_id in client_ids
        if is_asked and any(map(is_within, times)):
            _add(found, [("consume_type", run.consume_type)])
            _add(found, [("consume_orderly", run.consume_orderly)])
    if len(sources) != 1:
        found.pop("subscriptions", None)
    return {fact: sorted(values, key=repr) for fact, values in found.items()}


def _nearest(
    times: Sequence[Instant], since: Instant | None, until: Instant | None
) -> Sequence[Instant]:
    """The first of these times from ``since`` on; without it the last one before ``until``."""
    if since is not None:
        return times[(place := bisect_left(times, since)) : place + 1]
    end = len(times) if until is None else bisect_left(times, until)
    return times[max(end - 1, 0) : end]


def _add(found: dict[str, set[Any]], facts: Iterable[tuple[str, Any]]) -> None:
    for fact, value in facts:
        known = _USUAL.get(fact) if value is None else value
        if fact in _CHANGED and known not in (None, -1):
            found.setdefault(fact, set()).add(known)


def _topics(subscriptions: Iterable[Any] | None, group: str) -> tuple[tuple[str, str], ...]:
    """The topics, each with its filter, but for the group's own retry topic."""
    return tuple(
        sorted(
            (topic, expression or "*")
            for topic, _, expression in subscriptions or ()
            if not is_own_retry_topic(topic, group)
        )
    )


def _in_words(fact: str, values: Iterable[Any]) -> str:
    return list_of(list(_each_in_words(fact, values)), _MOST_VALUES)


def _each_in_words(fact: str, values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if fact == "version":
            yield version_name(value)
        elif fact == "subscriptions":
            topics = (
                t if tags == "*" else Text("{t} ({tags})", t=t, tags=tags) for t, tags in value[1]
            )
            # A member that has all its queues by assign() subscribes to none.
            yield list_of(list(topics), _MOST_VALUES) or Text("no topic")
        else:
            yield _WORDS.get((fact, value), value)


def version_name(ordinal: int) -> str:
    """The version of an ordinal of ``MQVersion``; the number where that has none.

    >>> version_name(401), version_name(479), version_name(402), version_name(4)
    ('4.9.4', '5.3.3', '4.9.5-SNAPSHOT', '4')
    """
    number = ordinal - _VERSION_4_0_0
    if not 0 <= number < 2 * _OF_A_MAJOR:
        return str(ordinal)
    # The snapshot of a version comes before its release.
    is_snapshot, number = number % 2, number + number % 2
    major, minor = 4 + number // _OF_A_MAJOR, number % _OF_A_MAJOR // _OF_A_MINOR
    name = f"{major}.{minor}.{number % _OF_A_MINOR // 2}"
    return f"{name}-SNAPSHOT" if is_snapshot else name

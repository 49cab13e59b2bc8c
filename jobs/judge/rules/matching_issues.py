"""findings, against the known issues -> the reasons of those that match one."""

from collections.abc import Iterable, Mapping, Sequence

from ...config.masking import Masking
from ...declared.dossier import Dossier
from ..terms import KnownIssueTerms
from .found import FaultEpisode, Graded, QueueFinding, StackedEpisode, Stall


def entries_of(dossier: Dossier, entries: Iterable[KnownIssueTerms]) -> list[KnownIssueTerms]:
    """The entries that may be about a group: few are about any one."""
    place = {"clusters": [dossier.cluster], "groups": [dossier.consumer_group]}
    return [entry for entry in entries if _is_about(entry, place)]


def known_issue(
    finding: Graded | StackedEpisode, entries: Sequence[KnownIssueTerms], masking: Masking
) -> str | None:
    """The reason of the first entry that a finding matches; None: it matches none.

    All that an entry says has to fit. Where several names are concerned (the clients of a fault,
    the topics of a client id), a pattern has to match each; a finding that has no such name is not
    matched by a pattern for it. A client may be named by its true id, or as reports show it.
    """
    if not entries:
        return None
    queue_id = finding.queue[1] if isinstance(finding, QueueFinding | Stall) else None
    of_queue = (each for each in entries if each.queues is None or queue_id in each.queues)
    fitting = [each for each in of_queue if each.kinds is None or finding.kind in each.kinds]
    for names in (names_of(finding), masking.mask_all(names_of(finding))):
        for entry in fitting:
            if _is_about(entry, names):
                return entry.reason
    return None


def known_coverage(topic: str, coverage: str, entries: Iterable[KnownIssueTerms]) -> str | None:
    """The reason of the first entry whose kinds name the coverage of a topic; None: there is none.

    A coverage is on no queue, broker or client. An entry without kinds is about findings alone.
    """
    names = {"topics": [topic], "brokers": (), "clients": ()}
    naming = (entry for entry in entries if entry.kinds and coverage in entry.kinds)
    about = (each for each in naming if not each.queues and _is_about(each, names))
    return next((each.reason for each in about), None)


def names_of(finding: Graded | StackedEpisode) -> Mapping[str, Sequence[str]]:
    """The names that a finding is about, by the keys of the patterns."""
    match finding:
        case StackedEpisode():
            # It is on no broker in particular.
            client_id = finding.stacked.client_id
            return {"topics": finding.topics, "brokers": (), "clients": [client_id]}
        case FaultEpisode():
            brokers, clients = finding.broker_names, finding.client_ids
        case Stall():
            brokers, clients = (finding.queue[0],), finding.owners
        case QueueFinding():
            brokers = (finding.queue[0],)
            clients = tuple(claimant.client_id for claimant in finding.claimants)
    return {"topics": [finding.topic], "brokers": brokers, "clients": clients}


def _is_about(entry: KnownIssueTerms, names: Mapping[str, Sequence[str]]) -> bool:
    """True if there are names for each of the entry's patterns of these keys, and all fit."""
    return all(
        bool(names[key]) and all(pattern.fullmatch(name) for name in names[key])
        for key, pattern in entry.patterns
        if key in names
    )

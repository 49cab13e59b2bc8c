"""The kinds of what is found, each declared once: what it is called, what it means, how bad it is.

The page of a run, the chat message, the metrics, the known issues and the index of docs/findings
all follow from here; every kind has a page in that folder. A new kind is in ``KINDS``, has a
page, and is made by one rule.

The ids of findings are the same from run to run and from version to version: users keep them in
tickets and silences. The id of an orphaned or duplicate queue is that of version 0.1, of a stalled
queue and of a fault that of the first alerts: so there are two digests.
"""

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from rebalance_core.descriptions import EXPRESSION_MISMATCH
from rebalance_core.faults import FAULTS as FAULTS_OF_A_STATE
from rebalance_core.findings import DUPLICATE, ORPHANED
from rebalance_core.repairs import DUPLICATE_CLIENT_ID, STALE_CHANNEL
from rebalance_core.texts import Text

#: The kind of a queue that has an owner who does not move it.
STALLED = "STALLED"
#: The kind of a client id that several processes have; the other verdict is STALE_CHANNEL.
STACKED = "STACKED"
#: The kind of a queue that is written and that no consumer can read.
UNREADABLE = "UNREADABLE"

#: The faults that no single state shows: they follow from how states and offsets change.
FROZEN_PROCESS = "FROZEN_PROCESS"
ROUTE_CHANGED = "ROUTE_CHANGED"
RECONNECTING = "RECONNECTING"
FLAPPING = "FLAPPING"
QUEUE_NOT_HELD = "QUEUE_NOT_HELD"
ALLOCATES_OTHERWISE = "ALLOCATES_OTHERWISE"
UNLISTED_CONSUMER = "UNLISTED_CONSUMER"
QUEUES_LEFT_ROUTE = "QUEUES_LEFT_ROUTE"
CLIENT_NOT_ANSWERING = "CLIENT_NOT_ANSWERING"
GROUP_NOT_CONSUMING = "GROUP_NOT_CONSUMING"
OFFSETS_WENT_BACK = "OFFSETS_WENT_BACK"
OFFSETS_GONE = "OFFSETS_GONE"
READ_TWICE = "READ_TWICE"
MESSAGES_FAIL = "MESSAGES_FAIL"
DUPLICATE_BROKER_NAME = "DUPLICATE_BROKER_NAME"
SECRET_IN_CLIENT_ID = "SECRET_IN_CLIENT_ID"  # noqa: S105 - the name of a fault

HELD_NOT_COMPUTED = "HELD_NOT_COMPUTED"
COMPUTED_NOT_HELD = "COMPUTED_NOT_HELD"

INFO, WARNING, CRITICAL = "INFO", "WARNING", "CRITICAL"
#: The mildest first.
SEVERITIES = (INFO, WARNING, CRITICAL)
#: The columns that have a severity; a table has one of them at most.
SEVERITY_COLUMNS = ("severity", "worst_severity")
#: Levels of a group: it has no findings, or some topic of it could not be judged.
OK, NOT_AUDITED = "OK", "NOT_AUDITED"
#: The coverage of a topic that has a route and that no group subscribes to.
NO_GROUP = "NO_GROUP"
#: The coverage of a group on which the audit itself failed.
AUDIT_FAILED = "AUDIT_FAILED"
#: Levels of a group in one night, the mildest first.
LEVELS = (OK, INFO, NOT_AUDITED, WARNING, CRITICAL)
PERSISTENT, TRANSIENT = "PERSISTENT", "TRANSIENT"


@dataclass(frozen=True)
class Kind:
    """A kind of finding or fault: its name in the tables, and what it is in words.

    ``title`` and ``meaning`` are ``Text``s, for other languages; ``name`` is the same in all.
    ``passes``: it passes by itself, however long it is seen.
    """

    name: str
    title: str
    meaning: str
    passes: bool = False

    @property
    def page(self) -> str:
        """The page on it: what it means, how to confirm it, how to repair it.

        >>> KINDS["ORPHANED"].page, KINDS["STACKED"].page
        ('orphaned.md', 'duplicate_client_id.md#stacked')
        """
        name = self.name.lower()
        return f"{_PAGES[self.name].lower()}.md#{name}" if self.name in _PAGES else f"{name}.md"


#: The kind on whose page a kind is: kinds with one cause or one remedy share a page.
_PAGES = {
    STACKED: DUPLICATE_CLIENT_ID,
    STALE_CHANNEL: RECONNECTING,
    CLIENT_NOT_ANSWERING: FROZEN_PROCESS,
    "GHOST_MEMBER": FROZEN_PROCESS,
    ALLOCATES_OTHERWISE: "STRATEGY_MISMATCH",
    "CONFIG_OVERLAP": "CONFIG_GAP",
    "ROOM_NOT_SERVED": "CONFIG_GAP",
    EXPRESSION_MISMATCH: "SUBSCRIPTION_MISMATCH",
    OFFSETS_GONE: OFFSETS_WENT_BACK,
    "MIXED_MESSAGE_MODEL": "MANUAL_ASSIGNMENT",
    "MIXED_REQUEST_MODE": READ_TWICE,
    ROUTE_CHANGED: "ROUTE_DIVERGENCE",
    UNREADABLE: QUEUES_LEFT_ROUTE,
    COMPUTED_NOT_HELD: QUEUE_NOT_HELD,
    HELD_NOT_COMPUTED: QUEUE_NOT_HELD,
}
#: Kinds that pass by themselves, however long they are seen.
_PASSING = (STALE_CHANNEL, ROUTE_CHANGED)
_FINDINGS = """
ORPHANED: Orphaned queue. Nobody consumes the queue: its messages wait until somebody does.
DUPLICATE: Duplicate queue. Several processes consume the queue: every message is handled more than
    once.
STALLED: Stalled queue. The queue has an owner and does not move, while other queues of the topic
    do.
STACKED: Shared client id. Several processes use the client id: a broker lists it more than once.
UNREADABLE: Unreadable queue. Producers write the queue and no consumer can read it: the read queue
    number is lower than the write queue number, or the broker may not be read.
HELD_NOT_COMPUTED: A queue is held and not computed. A client holds a queue that is not in its
    share.
COMPUTED_NOT_HELD: A queue is computed and not held. A client does not hold a queue of its share.
"""
_FAULTS = """
DUPLICATE_CLIENT_ID: Several processes share one client id. All of them compute the share of the
    first; the shares of the others have no owner.
STALE_CHANNEL: An old connection is still listed. One process reconnected and its old connection
    holds a slot until the broker drops it, within about 130 s.
GHOST_MEMBER: A member is listed and gone. A broker still lists a member long after its last
    heartbeat; nobody consumes its share.
STRATEGY_MISMATCH: Members allocate by different strategies. Each divides the queues differently, so
    that shares overlap and leave gaps.
SUBSCRIPTION_MISMATCH: A member does not subscribe to the topic. Members are listed by group, not by
    topic: such a member takes a slot of the topic and consumes nothing of it.
MANUAL_ASSIGNMENT: A member chooses its queues itself. By assign() or as a pull consumer it still
    takes a slot, and nobody consumes that share.
MIXED_MESSAGE_MODEL: Broadcasting members in a clustering group. They read every queue and take
    slots of the others.
BROKER_VIEW_DIVERGENCE: Brokers list different members. A client asks a random broker at each
    rebalance, so that the shares change from one to the next.
ROUTE_DIVERGENCE: Nameservers give different routes. Clients of different nameservers divide
    different lists of queues.
MASTER_AWAY: A broker's master is away. Clients that do not read from slaves, such as client-go,
    consume nothing of it.
UNKNOWN_TOPIC: A subscribed topic does not exist. No nameserver knows it: its name may be written
    wrongly.
MIXED_REQUEST_MODE: A member pulls beside members that use POP. POP serves every queue: those that
    the member holds are read twice.
ROOM_NOT_SERVED: No member serves a broker's room. The queues of a machine room that is in nobody's
    consumeridcs have no owner.
CONFIG_OVERLAP: Several CONFIG lists have the same queue. All that list it consume it.
CONFIG_GAP: A queue is in no CONFIG list. Nobody consumes it.
EXPRESSION_MISMATCH: Members filter the topic differently. Messages that an owner's filter drops are
    gone for the group: no orphan and no backlog shows it.
ROUTE_CHANGED: The readable queues changed. For up to 50 s clients work from different lists; it
    passes by itself.
FROZEN_PROCESS: A process is frozen. None of a client's queues moves while those of others do.
GROUP_OFFLINE: The group has no member. No broker knows any member: nobody consumes the topic.
GROUP_NOT_ON_BROKER: A broker does not know the group. It answers that the group has no member while
    other brokers list members: nobody consumes its queues.
RECONNECTING: A client keeps reconnecting. Its old connections stay listed for a time and take slots
    that nobody serves.
FLAPPING: Members keep joining and leaving. Each time all queues are divided again.
QUEUE_NOT_HELD: A queue is computed and held by nobody. The client that should consume it does not
    hold it.
ALLOCATES_OTHERWISE: A client holds queues other than its share. It divides the queues differently
    from the other members.
UNLISTED_CONSUMER: Somebody reads the queues but no broker lists them. The offsets move although the
    lists show no consumer.
QUEUES_LEFT_ROUTE: Queues left the route with unread messages. No client reads them until the queues
    are back.
CLIENT_NOT_ANSWERING: A listed client does not answer. It sends heartbeats but does not answer
    questions about its state.
GROUP_NOT_CONSUMING: The group consumes nothing. It has members, messages come, and no offset of the
    topic moves.
OFFSETS_WENT_BACK: Offsets went back. The group consumes again what it has already consumed.
OFFSETS_GONE: Offsets are gone. A broker has none of the group's offsets any more: at its next start
    the group begins anew.
READ_TWICE: Messages are read twice. Brokers give the group more messages than its offsets move by,
    and no list shows who reads them a second time.
MESSAGES_FAIL: Nearly all messages fail. The listener fails on nearly every message: messages come
    again, and are given up in the end.
DUPLICATE_BROKER_NAME: Several brokers have one name. Each takes the place of the other in the route
    when it registers: clients ask and read now one and now the other.
SECRET_IN_CLIENT_ID: A client id holds a secret. It is masked here, but everybody who lists the
    members can read it.
UNEXPLAINED: Unexplained. None of the other faults, repaired alone or together, clears the finding.
"""


#: Events, those first that touch most: in this order they are shown, and explain findings.
_EVENTS = """
MEMBERS_LEFT: Groups lost all their members. Several did in one moment: look for what they share,
    such as a network, a namespace or a node pool.
MASTER_LEFT: A broker's master left. Until it is back nobody writes to its queues, and clients that
    do not read from slaves read none of them.
NAMESERVERS_DIFFER: Nameservers differ. One of them gives different routes: its clients divide
    different queues.
BROKER_ADDRESS_CHANGED: A broker's address changed. Clients hold the old one until they ask for the
    route again.
COLLECTOR_AWAY: The collector was away. Nobody saw what happened meanwhile.
TOPIC_RESIZED: A topic got more or fewer queues. They are divided again.
GROUP_SCALED: A group was scaled. It has more or fewer members than before, and its queues are
    divided again.
GROUP_DEPLOYED: A group was deployed. Members were replaced or restarted, and its queues are divided
    again each time.
"""


def _kinds(declared: str) -> dict[str, Kind]:
    """Declared as ``name: title. meaning``; what is indented goes on with the line before."""
    lines = re.sub(r"\n +", " ", declared).strip().splitlines()
    parts = (re.split(r": |\. ", line, maxsplit=2) for line in lines)
    return {
        name: Kind(name, Text(title), Text(meaning), name in _PASSING)
        for name, title, meaning in parts
    }


#: All there is a page on, findings before faults, in the order in which they are listed.
KINDS = _kinds(_FINDINGS) | _kinds(_FAULTS)
#: The kinds of events; docs/reading.md is about all of them.
EVENT_KINDS = _kinds(_EVENTS)

#: The kind of the findings in each table of queues.
QUEUE_FINDINGS = {
    "orphaned_queues": ORPHANED,
    "duplicate_queues": DUPLICATE,
    "stalled_queues": STALLED,
}
#: The faults that stalls show, which name no cause.
SHOWN_BY_STALLS = frozenset({FROZEN_PROCESS, EXPRESSION_MISMATCH})
#: The tables of what has a severity and an id.
GRADED_TABLES = (*QUEUE_FINDINGS, "group_faults")
VERDICTS = (STACKED, STALE_CHANNEL)
#: The kinds of events, in their order: what happened, whatever was found of it.
MEMBERS_LEFT, MASTER_LEFT, NAMESERVERS_DIFFER, BROKER_ADDRESS_CHANGED, *_later = EVENT_KINDS
COLLECTOR_AWAY, TOPIC_RESIZED, GROUP_SCALED, GROUP_DEPLOYED = _later
#: Events about one group, which touch no other.
OF_ONE_GROUP = (GROUP_SCALED, GROUP_DEPLOYED)

#: Faults; those of a state first, in the core's order.
FAULTS = tuple(dict.fromkeys((*FAULTS_OF_A_STATE, *_kinds(_FAULTS))))
#: The faults of which a row is about one client id: the page and the alerts keep them apart.
OF_ONE_CLIENT = frozenset(
    {DUPLICATE_CLIENT_ID, STALE_CHANNEL, FROZEN_PROCESS, RECONNECTING, CLIENT_NOT_ANSWERING}
)

#: Kinds of findings that can be marked as a known issue.
FINDING_KINDS = tuple(dict.fromkeys((*QUEUE_FINDINGS.values(), *VERDICTS, *FAULTS)))


def kind_of(name: str) -> Kind:
    """The kind of a name; one that this version does not know is called by its name.

    >>> kind_of("A_LATER_ONE").title
    'A later one'
    """
    return KINDS.get(name) or Kind(name, name.replace("_", " ").capitalize(), "")


def lasts(fault: str, persistence: str) -> bool:
    """True if a fault is more than a deploy or a restart.

    >>> lasts("GHOST_MEMBER", "PERSISTENT"), lasts("ROUTE_CHANGED", "PERSISTENT")
    (True, False)
    """
    return persistence == PERSISTENT and not kind_of(fault).passes


def worst(severities: Iterable[str], otherwise: str = INFO) -> str:
    """The worst of some severities.

    >>> worst(["WARNING", "CRITICAL", "INFO"]), worst([])
    ('CRITICAL', 'INFO')
    """
    return max(severities, key=SEVERITIES.index, default=otherwise)


def badness(
    severity: str,
    *,
    certain: bool,
    ongoing: bool,
    backlog: int,
    queue_minutes: float,
    queues: int,
) -> tuple[bool, bool, int, bool, int, float, int]:
    """The key that sorts problems by how bad they are: the worst is the least.

    What counts before INFO; then what is still there, then its severity, whether it is certain, how
    many messages wait, then minutes times queues without one owner, and how many queues there are.
    Page, ticket, messages, metrics, console and ``show`` all sort by it.

    >>> idle = {"certain": True, "ongoing": True, "queue_minutes": 900.0, "queues": 24}
    >>> waits = badness("CRITICAL", **{**idle, "queue_minutes": 3.0, "queues": 3}, backlog=2_000)
    >>> waits < badness("CRITICAL", **idle, backlog=0) < badness("WARNING", **idle, backlog=9_000)
    True
    >>> over = badness("CRITICAL", **{**idle, "ongoing": False}, backlog=9_000)
    >>> badness("WARNING", **idle, backlog=0) < over < badness("INFO", **idle, backlog=0)
    True
    """
    first = severity == INFO, not ongoing, -SEVERITIES.index(severity), not certain
    return *first, -backlog, -queue_minutes, -queues


def finding_id(
    cluster: str, consumer_group: str, topic: str, broker_name: str, queue_id: int, kind: str
) -> str:
    """The id of an orphaned or duplicate queue.

    >>> finding_id("c1", "G", "T", "broker-a", 0, "ORPHANED")
    '451f726011011044'
    """
    group = f'"cluster":{_quoted(cluster)},"consumer_group":{_quoted(consumer_group)}'
    queue = f'"topic":{_quoted(topic)},"broker_name":{_quoted(broker_name)},"queue_id":{queue_id}'
    identity = f'{{{group},{queue},"kind":{_quoted(kind)}}}'
    return hashlib.md5(identity.encode(), usedforsecurity=False).hexdigest()[:16]


def stall_id(cluster: str, consumer_group: str, topic: str, broker_name: str, queue_id: int) -> str:
    """The id of a stalled queue.

    >>> stall_id("c1", "G", "T", "broker-a", 0)
    '06ff266b4276c46b'
    """
    return _hash(cluster, consumer_group, topic, broker_name, queue_id, STALLED)


def fault_id(
    cluster: str, consumer_group: str, topic: str, fault: str, client_ids: Iterable[str]
) -> str:
    """The id of a fault; the client ids count where a row is about one client.

    Client ids are given as they are published, masked: nobody can guess a secret from an id.

    >>> fault_id("c1", "G", "T", "GHOST_MEMBER", ["a"])
    '736ec512325e6cfb'
    >>> fault_id("c1", "G", "T", "GHOST_MEMBER", ["b"])
    '736ec512325e6cfb'
    """
    ids_of_one = sorted(client_ids) if fault in OF_ONE_CLIENT else ()
    return _hash(cluster, consumer_group, topic, fault, *ids_of_one)


def event_id(cluster: str, kind: str, subject: str) -> str:
    """The id of an event: what happens to the same subject again has it again.

    >>> event_id("c1", "MASTER_LEFT", "broker-a")
    '6bc0739a1e9033c8'
    """
    return _hash(cluster, kind, subject)


def _hash(*identity: str | int) -> str:
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:16]


# As Jackson writes a text, byte by byte: ``json`` has control characters in lower case.
_ESCAPES = {
    **{code: f"\\u{code:04X}" for code in range(32)},
    **{ord(raw): f"\\{letter}" for raw, letter in zip('\b\t\n\f\r"\\', 'btnfr"\\', strict=True)},
}


def _quoted(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'

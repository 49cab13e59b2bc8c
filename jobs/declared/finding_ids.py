"""The ids of findings: the same from run to run and from version to version.

Users keep them in tickets and silences. The id of an orphaned or duplicate queue is that of version
0.1, of a stalled queue and of a fault that of the first alerts: so there are two digests.
"""

import hashlib
import json
from collections.abc import Iterable

from .kinds import OF_ONE_CLIENT, STALLED


def finding_id(
    cluster: str, consumer_group: str, topic: str, broker_name: str, queue_id: int, kind: str
) -> str:
    """The id of an orphaned or duplicate queue.

    >>> finding_id("c1", "G", "T", "broker-a", 0, "ORPHANED")
    '451f726011011044'
    """
    identity = (
        f'{{"cluster":{_quoted(cluster)},"consumer_group":{_quoted(consumer_group)},'
        f'"topic":{_quoted(topic)},"broker_name":{_quoted(broker_name)},'
        f'"queue_id":{queue_id},"kind":{_quoted(kind)}}}'
    )
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
    of_one = sorted(client_ids) if fault in OF_ONE_CLIENT else ()
    return _hash(cluster, consumer_group, topic, fault, *of_one)


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

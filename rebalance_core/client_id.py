"""Facts that a client id shows of its client, and whether two processes can have the same one.

A client id is ``address@instance[@unit][@STREAM]`` (``ClientConfig.buildMQClientId``, RocketMQ
5.3.3), and nothing makes it unique. An instance name of "DEFAULT" becomes the process id: alone
before 4.9.0, with a nanosecond time since. In containers the process id is often 1 everywhere.
"""

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache


class ClientIdFormat(Enum):
    """The way a client id was made, as far as its text shows it.

    Where it is made of the address and the process id alone, containers that see the same address
    and run as the same process id (often 1) share it.
    """

    #: ``10.0.0.11@1#123456789012345``: Java from 4.9.0, with a nanosecond time. Seen twice, it is
    #: almost always one process with a stale connection.
    JAVA_PID_NANO = "JAVA_PID_NANO"
    #: ``172.17.0.1@1``: Java before 4.9.0, Go; of a later Java a name that was set by hand.
    JAVA_PID = "JAVA_PID"
    #: ``10.0.0.11@1#DEFAULT``: C++ and what is built on it.
    CPP = "CPP"
    #: ``10.0.0.11@DEFAULT``: broadcasting consumers, whose instance name is not replaced. All with
    #: that address share it, which is harmless among broadcasting consumers only.
    DEFAULT = "DEFAULT"
    #: ``10.0.0.1@10.0.0.9:9876;10.0.0.10:9876@1``, with or without a time: rocketmq-spring.
    SPRING = "SPRING"
    #: ``10.0.0.1@ns1:9876;ns2:9876#10.0.0.1@1``, ``10.0.0.1@1#-1204#7781#123456789012345``: the ONS
    #: and cloud clients, the newer ones with a nanosecond time.
    ONS_CLOUD = "ONS_CLOUD"
    #: ``10.0.0.1@accessKey|group|1|17r9k3h8x``: the spring-cloud-alibaba binder from 2021.0.5.0 on,
    #: with a nanosecond time; before without it, with the secret key behind the access key. Also
    #: ``accessKey|secretKey|group`` of rocketmq-spring before 2.2.0, with a cloud's access key.
    SPRING_CLOUD = "SPRING_CLOUD"
    #: ``macbook-pro@90009@0@2dyeb8lep``, ``host@1#3_1726738800000``: the 5.x gRPC clients.
    GRPC = "GRPC"
    #: ``10.0.0.11@order-service-0``: an instance name that the application or a framework chose.
    CUSTOM = "CUSTOM"
    #: No ``@`` in it: no client that the audit has a rule for makes such an id, and nothing in it
    #: distinguishes two processes.
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class ClientId:
    """A client id taken apart.

    ``address`` is what comes before the ``@`` that ends it, brackets of IPv6 kept, "" where
    there is no ``@``; ``instance_name`` is all the rest. ``can_collide`` says whether two
    processes can have this very id.
    """

    format: ClientIdFormat
    address: str
    instance_name: str
    can_collide: bool


_GRPC_JAVA = re.compile(r"[0-9]+@[0-9]+@-?[0-9a-z]+")
_HOST_AND_PORT = re.compile(r"(?:^|;)[^;@#]*:[0-9]+(?=[;@#]|$)")
_PID_HASHES_NANO = re.compile(r"-?[0-9]+(?:#-?[0-9]+){2,}")
#: ``group|pid``, ``accessKey|secretKey|topic|pid``, ``accessKey|secretKey|group``; with a time in
#: base 36: ``group|pid|time`` (``RocketMQUtils.getInstanceName``).
_KEYS_AND_PID = re.compile(r"[^|]+(?:\|[^|]+)*\|-?[0-9]+|(?:LTAI|AKID|AKIA)[^|]*\|[^|]+\|[^|]+")
_PID_AND_TIME_36 = re.compile(r"(?:[^|]+\|)+-?[0-9]+\|-?[0-9a-z]{6,}")
#: The first that matches the whole instance name shows how it was made.
_WHOLE_NAMES = (
    (re.compile("DEFAULT"), ClientIdFormat.DEFAULT),
    (re.compile(r"[0-9]+#[0-9]+_[0-9]+"), ClientIdFormat.GRPC),  # process id, sequence, time
    (re.compile(r"-?[0-9]+#-?[0-9]+"), ClientIdFormat.JAVA_PID_NANO),
    (re.compile(r"-?[0-9]+"), ClientIdFormat.JAVA_PID),
    (_PID_HASHES_NANO, ClientIdFormat.ONS_CLOUD),
    (re.compile(r"[0-9]+#[^#@]+"), ClientIdFormat.CPP),
    (_PID_AND_TIME_36, ClientIdFormat.SPRING_CLOUD),
    (_KEYS_AND_PID, ClientIdFormat.SPRING_CLOUD),
)
_ENDS_WITH_PID = re.compile(r".*@-?[0-9]+", re.DOTALL)
_ENDS_WITH_PID_TIME = re.compile(r".*@-?[0-9]+(?:@|#)-?[0-9]{6,}", re.DOTALL)


# Each id of a group comes again with every broker, topic and state; some 10 MB when full.
@lru_cache(maxsize=16_384)
def parse_client_id(client_id: str, language: str | None = None) -> ClientId:
    """Takes a client id apart and decides whether two processes can share it.

    ``language`` is that of the connection (``JAVA``), and settles what the text leaves open.
    Raises nothing, whatever the text.

    Source: ``ClientConfig``, ``UtilAll.getPid``, ``NetworkUtil`` of RocketMQ 5.3.3, and the ids
    of the other clients. A unit name or a custom name with ``@`` in it may be taken for one
    another; both leave ``address`` right.

    >>> parsed = parse_client_id("[fe80::1%eth0]@1#123456789012345")
    >>> parsed.format.value, parsed.address, parsed.instance_name, parsed.can_collide
    ('JAVA_PID_NANO', '[fe80::1%eth0]', '1#123456789012345', False)
    >>> parse_client_id("172.17.0.1@170").can_collide
    True
    """
    address, instance_name = _split(client_id)
    if instance_name is None:
        return ClientId(ClientIdFormat.UNKNOWN, "", client_id, True)
    spoken = (language or "").upper()
    found = _format(instance_name, spoken)
    return ClientId(found, address, instance_name, _can_collide(found, instance_name, spoken))


def _split(client_id: str) -> tuple[str, str | None]:
    if client_id.startswith("["):  # IPv6, as Java writes it
        address, bracket, rest = client_id.partition("]@")
        if bracket:
            return address + "]", rest
    # No address holds an "@", but instance names do: the first one ends the address.
    address, at, rest = client_id.partition("@")
    return (address, rest) if at else ("", None)


def _format(instance_name: str, language: str) -> ClientIdFormat:
    if _GRPC_JAVA.fullmatch(instance_name):
        return ClientIdFormat.GRPC
    name = instance_name.removesuffix("@STREAM")
    found = _format_of_name(name, language)
    if found is not ClientIdFormat.CUSTOM:
        return found
    without_unit, unit_separator, _ = name.rpartition("@")
    return _format_of_name(without_unit, language) if unit_separator else found


def _format_of_name(name: str, language: str) -> ClientIdFormat:
    found = next((made for whole, made in _WHOLE_NAMES if whole.fullmatch(name)), None)
    if found is ClientIdFormat.JAVA_PID_NANO and language == "RUST":
        # The Rust client counts from 0 where Java puts the time; the texts look alike.
        return ClientIdFormat.GRPC
    if found is None and _HOST_AND_PORT.search(name):
        if "#" in name.partition("@")[0] and _ENDS_WITH_PID.fullmatch(name):
            return ClientIdFormat.ONS_CLOUD
        if _ENDS_WITH_PID.fullmatch(name) or _ENDS_WITH_PID_TIME.fullmatch(name):
            return ClientIdFormat.SPRING
    return found or ClientIdFormat.CUSTOM


def _can_collide(found: ClientIdFormat, instance_name: str, language: str) -> bool:
    if found is ClientIdFormat.SPRING:
        return not _ENDS_WITH_PID_TIME.fullmatch(instance_name.removesuffix("@STREAM"))
    if found is ClientIdFormat.SPRING_CLOUD:
        return not _PID_AND_TIME_36.fullmatch(instance_name.partition("@")[0])
    if found is ClientIdFormat.ONS_CLOUD:
        return not _PID_HASHES_NANO.fullmatch(instance_name.partition("@")[0])
    if found is ClientIdFormat.GRPC and language == "RUST" and "_" not in instance_name:
        # The process id and a counter that starts anew in every process.
        return not _GRPC_JAVA.fullmatch(instance_name)
    return found not in (ClientIdFormat.JAVA_PID_NANO, ClientIdFormat.GRPC)

"""What a client id tells about its client, and whether two processes can have the same one.

A client id is ``address@instance[@unit][@STREAM]`` (``ClientConfig.buildMQClientId``, RocketMQ
5.3.3), and nothing makes it unique. An instance name of "DEFAULT" becomes the process id: alone
before 4.9.0, with a nanosecond time since. In containers the process id is often 1 everywhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

__all__ = ["ClientId", "ClientIdFormat", "parse_client_id"]


class ClientIdFormat(Enum):
    """How a client id was made, told from its text."""

    #: ``10.0.0.11@1#123456789012345``: Java from 4.9.0.
    JAVA_PID_NANO = "JAVA_PID_NANO"
    #: ``172.17.0.1@1``: Java before 4.9.0, Go.
    JAVA_PID = "JAVA_PID"
    #: ``10.0.0.11@1#DEFAULT``: C++ and what is built on it.
    CPP = "CPP"
    #: ``10.0.0.11@DEFAULT``: broadcasting consumers, whose instance name is not replaced.
    DEFAULT = "DEFAULT"
    #: ``10.0.0.1@10.0.0.9:9876;10.0.0.10:9876@1``, with or without a time: rocketmq-spring.
    SPRING = "SPRING"
    #: ``10.0.0.1@ns1:9876;ns2:9876#10.0.0.1@1``: the ONS and cloud clients.
    ONS_CLOUD = "ONS_CLOUD"
    #: ``macbook-pro@90009@0@2dyeb8lep``, ``host@1#3_1726738800000``: the 5.x gRPC clients.
    GRPC = "GRPC"
    #: ``10.0.0.11@order-service-0``: an instance name that the application chose.
    CUSTOM = "CUSTOM"
    #: No ``@`` in it: none of the clients that are known made it so.
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class ClientId:
    """A client id taken apart.

    ``address`` is what stands before the ``@`` that ends it, brackets of IPv6 kept, "" where
    there is no ``@``; ``instance_name`` is all the rest. ``can_collide`` says whether two
    processes can have this very id; ``explanation`` says why, in a sentence for an operator.
    """

    format: ClientIdFormat
    address: str
    instance_name: str
    can_collide: bool
    explanation: str


#: MQVersion of the first release whose instance name has a time (4.9.0).
_VERSION_4_9_0 = 393

_PID = re.compile(r"-?[0-9]+")
_PID_NANO = re.compile(r"-?[0-9]+#-?[0-9]+")
_PID_SEQUENCE_MILLIS = re.compile(r"[0-9]+#[0-9]+_[0-9]+")
_PID_NAME = re.compile(r"[0-9]+#[^#@]+")
_GRPC_JAVA = re.compile(r"[0-9]+@[0-9]+@-?[0-9a-z]+")
_HOST_AND_PORT = re.compile(r"(?:^|;)[^;@#]*:[0-9]+(?=[;@#]|$)")
_ENDS_WITH_PID = re.compile(r".*@-?[0-9]+", re.DOTALL)
_ENDS_WITH_PID_TIME = re.compile(r".*@-?[0-9]+(?:@|#)-?[0-9]{6,}", re.DOTALL)

_EXPLANATIONS = {
    ClientIdFormat.JAVA_PID_NANO: (
        "It has the process id and a nanosecond time, so two processes practically never share "
        "it; seen twice, it is almost always one process with a stale connection."
    ),
    ClientIdFormat.JAVA_PID: (
        "It has only the address and the process id, so containers that see the same address "
        "and run as the same process id (often 1) share it."
    ),
    ClientIdFormat.CPP: (
        "It has only the address, the process id and a fixed name, so containers that see the "
        "same address and run as the same process id (often 1) share it."
    ),
    ClientIdFormat.DEFAULT: (
        "It has only the address and the default instance name, so all processes with that "
        "address share it; this is harmless among broadcasting consumers only."
    ),
    ClientIdFormat.SPRING: (
        "Its instance name is the name server list and the process id, so containers that see "
        "the same address and run as the same process id (often 1) share it."
    ),
    ClientIdFormat.ONS_CLOUD: (
        "It has the name server list, an address and a process id, so containers that see the "
        "same address and run as the same process id (often 1) share it."
    ),
    ClientIdFormat.GRPC: (
        "It has the host, the process id, a counter and a time, so two processes practically "
        "never share it."
    ),
    ClientIdFormat.CUSTOM: (
        "Its instance name was set by the application or a framework, so every process with "
        "the same address and the same setting shares it."
    ),
    ClientIdFormat.UNKNOWN: (
        "It is not of the form address@instance that RocketMQ clients make, so nothing in it "
        "can be relied on to tell two processes apart."
    ),
}

_JAVA_NUMBER_AS_NAME = (
    "Its instance name is a bare number although this client's version adds a time of its own "
    "to the process id, so the name was set by hand and every process with that setting shares it."
)
_SPRING_WITH_TIME = (
    "Its instance name is the name server list, the process id and a time, so two processes "
    "practically never share it."
)
_GRPC_COUNTER = (
    "It has the host, the process id and a counter that starts anew in every process, so "
    "containers with the same host name and process id share it."
)


# Each id of a group comes again with every broker, topic and state; some 10 MB when full.
@lru_cache(maxsize=16_384)
def parse_client_id(
    client_id: str, language: str | None = None, version: int | None = None
) -> ClientId:
    """Take a client id apart and say whether two processes can share it.

    ``language`` and ``version`` are those of the connection (``JAVA``, an MQVersion ordinal);
    they settle what the text leaves open. Raises nothing, whatever the text.

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
        found = ClientIdFormat.UNKNOWN
        return ClientId(found, "", client_id, True, _EXPLANATIONS[found])
    found = _format(instance_name, (language or "").upper())
    can_collide, explanation = _collision(found, instance_name, (language or "").upper(), version)
    return ClientId(found, address, instance_name, can_collide, explanation)


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
    found = ClientIdFormat.CUSTOM
    if name == "DEFAULT":
        found = ClientIdFormat.DEFAULT
    elif _PID_SEQUENCE_MILLIS.fullmatch(name):
        found = ClientIdFormat.GRPC
    elif _PID_NANO.fullmatch(name):
        # The Rust client counts from 0 where Java puts the time; the texts look alike.
        found = ClientIdFormat.GRPC if language == "RUST" else ClientIdFormat.JAVA_PID_NANO
    elif _PID.fullmatch(name):
        found = ClientIdFormat.JAVA_PID
    elif _PID_NAME.fullmatch(name):
        found = ClientIdFormat.CPP
    elif _HOST_AND_PORT.search(name):
        if "#" in name.partition("@")[0] and _ENDS_WITH_PID.fullmatch(name):
            found = ClientIdFormat.ONS_CLOUD
        elif _ENDS_WITH_PID.fullmatch(name) or _ENDS_WITH_PID_TIME.fullmatch(name):
            found = ClientIdFormat.SPRING
    return found


def _collision(
    found: ClientIdFormat, instance_name: str, language: str, version: int | None
) -> tuple[bool, str]:
    if found is ClientIdFormat.SPRING and _has_spring_time(instance_name):
        return False, _SPRING_WITH_TIME
    if found is ClientIdFormat.GRPC and language == "RUST" and "_" not in instance_name:
        return not _GRPC_JAVA.fullmatch(instance_name), (
            _EXPLANATIONS[found] if _GRPC_JAVA.fullmatch(instance_name) else _GRPC_COUNTER
        )
    is_current_java = language == "JAVA" and version is not None and version >= _VERSION_4_9_0
    if found is ClientIdFormat.JAVA_PID and is_current_java:
        return True, _JAVA_NUMBER_AS_NAME
    never_twice = found in (ClientIdFormat.JAVA_PID_NANO, ClientIdFormat.GRPC)
    return not never_twice, _EXPLANATIONS[found]


def _has_spring_time(instance_name: str) -> bool:
    return _ENDS_WITH_PID_TIME.fullmatch(instance_name.removesuffix("@STREAM")) is not None

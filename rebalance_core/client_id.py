"""Client ids: what they show of their client, whether two processes can have the same one, and the
remedy that makes them distinct, in one wording for every text.

A client id is ``address@instance[@unit][@STREAM]`` (``ClientConfig.buildMQClientId``, RocketMQ
5.3.3), and nothing makes it unique. An instance name of "DEFAULT" becomes the process id: alone
before 4.9.0, with a nanosecond time since. In containers the process id is often 1 everywhere.

A remedy that names another client's setting is no remedy. What made an id follows from its text,
from the language of the connection and from its ``MQVersion`` ordinal; where these do not show it,
the remedy is the general one.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from .english import agreeing, joined, list_of
from .texts import Text, for_slots


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


class ClientKind(Enum):
    """The maker of a client id; the value is the template of the remedy that makes ids distinct."""

    #: A placeholder that was not expanded.
    PLACEHOLDER = (
        "{placeholder} in the id is a placeholder that nothing replaced: give it a value where the "
        "client's {setting} is set, or leave {setting} out, so that the client chooses it"
    )
    #: Java before 4.9.0.
    JAVA_BEFORE_4_9_0 = (
        "{give_name}, or update the client to 4.9.0 or later, which appends the start time to "
        "the process id (in containers the process id is often 1 everywhere)"
    )
    # An id with a start time: who sees it twice sees a copy of a running machine, or one process.
    JAVA = (
        "give each process its own instanceName; an id with a start time is the same in two "
        "processes only where a running machine was copied: restart one of them"
    )
    #: Java with its own instanceName.
    JAVA_NAMED = (
        "{give_name} in place of {name}, which was set, or set none: Java 4.9.0 and later then "
        "makes one of process id and start time"
    )
    BROADCASTING = (
        "let only broadcasting consumers keep the instanceName DEFAULT: they share it without "
        "harm, and a clustering member of the group needs its own instanceName"
    )
    #: rocketmq-spring 2.2.0: nameservers and process id.
    ROCKETMQ_SPRING = (
        "update rocketmq-spring-boot-starter to 2.2.1 or later, which appends the start time; "
        "until then give each process its own instanceName in a "
        "RocketMQPushConsumerLifecycleListener (consumer.setInstanceName)"
    )
    #: rocketmq-spring 2.0.3: the name of a bean, which all processes have.
    ROCKETMQ_SPRING_BEAN = (
        "update rocketmq-spring-boot-starter, whose 2.0.3 gives every process the name of a bean "
        "as instanceName, to 2.2.1 or later; from 2.2.3 on @RocketMQMessageListener(instanceName) "
        "is what a process sets itself"
    )
    #: The spring-cloud-alibaba binder before 2021.0.5.0.
    SPRING_CLOUD_ALIBABA = (
        "update what makes this id: the binder spring-cloud-starter-stream-rocketmq to 2021.0.5.0, "
        "2022.0.0.0 or later, which appends the start time and leaves the secret key out; or "
        "rocketmq-spring-boot-starter to 2.2.1 or later; until then only another IP address or "
        "process id distinguishes two containers"
    )
    ONS = (
        "give each process its own instance name (the property InstanceName), or update the ONS "
        "client, which appends the start time"
    )
    GO = (
        "give each process its own instance name, such as the pod name: "
        "consumer.WithInstance(NAME) in client-go"
    )
    CPP = (
        "give each process its own instance name with a NAME such as the pod name: "
        "setInstanceName(NAME) in C++, SetPushConsumerInstanceName in C and in what is built on it"
    )
    PYTHON = (
        "give each process its own instance_name, such as the pod name: "
        "consumer.set_instance_name(NAME) in the Python client"
    )
    #: ali-ons for Node.js, which calls itself Java and gives the version of 3.4.9.
    NODE = (
        "give each process its own instanceName, such as the pod name: an option of the consumer "
        "in ali-ons for Node.js, which else takes the process id (in containers often 1 "
        "everywhere); in Java 3.4.9, which gives the same version, setInstanceName"
    )
    #: A .NET client.
    DOTNET = (
        "give each process its own InstanceName before it starts, such as the pod name: the .NET "
        "client's ClientId is ClientIP@InstanceName, of which the latter is the process id, in "
        "containers often 1 everywhere"
    )
    #: A 5.x gRPC client.
    GRPC = "restart one of the processes: a gRPC client makes its id of host, process id and time"
    #: Another client.
    OTHER = "{give_name}, or let the client choose it (Java 4.9.0 and later appends the start time)"


#: ``MQVersion.V4_9_0``: from then on Java appends the start time to the process id.
_VERSION_4_9_0 = 393
#: ``MQVersion.V3_4_9``: what ali-ons gives.
_VERSION_3_4_9 = 121

#: ``${clientIP}``, ``#{...}``, ``$(hostname)``, ``{{ .Name }}``, ``%HOSTNAME%``. A name of Alibaba
#: Cloud has one "%" in a word (``MQ_INST_1_BXY%GID_pay``), a retry topic starts with ``%RETRY%``.
_PLACEHOLDER = re.compile(
    r"[$#]\{[^{}]*\}|\$\([^()]*\)|\{\{[^{}]*\}\}|(?<!\w)%(?!RETRY%|DLQ%)[A-Za-z_][\w.]*%"
)

#: ``10.0.0.1@org.apache.rocketmq.spring.support.DefaultRocketMQListenerContainer_1``
_SPRING_BEAN = re.compile(r"\.DefaultRocketMQListenerContainer_[0-9]+\Z")

#: ``8-10.2.2.82@DEFAULT``: client-cpp before it put the process id into the instance name.
_OLD_CPP_ADDRESS = re.compile(r"[0-9]+-.*", re.DOTALL)


def kind_of(client_id: str, language: str | None = None, version: int | None = None) -> ClientKind:
    """The kind of client that made the id; ``language`` and ``version`` are the connection's.

    Sources: ``ClientConfig`` (RocketMQ 4.8.0, 4.9.0), ``RocketMQUtils`` (spring-cloud-alibaba
    2021.0.4.0, 2021.0.5.0), ``internal/client.go`` and ``consumer.WithInstance`` (client-go 2.1),
    ``MQClientConfig::setInstanceName``, ``CPushConsumer.h`` (client-cpp 2.2), ``PushConsumer`` of
    ``rocketmq/client.py`` (client-python 2.0), ``MqBase`` (NewLife.RocketMQ), and
    ``remoting_command.js``, ``client_config.js`` (ali-ons).

    rocketmq-spring (``DefaultRocketMQListenerContainer.initRocketMQPushConsumer``,
    ``RocketMQUtil.getInstanceName``): with 2.0.2 and an account ``accessKey|secretKey|group``, with
    2.0.3 the bean's name, from 2.0.4 to 2.1.1 and an account ``accessKey|secretKey|group|pid``,
    with 2.2.0 ``nameservers@pid``: equal in containers. With 2.2.1 and 2.2.2
    ``nameservers@pid@time``; from 2.2.3 on what ``instanceName`` says, by default Java's choice.

    >>> kind_of("172.17.0.1@1", "JAVA", 373).name, kind_of("172.17.0.1@1", "GO", 317).name
    ('JAVA_BEFORE_4_9_0', 'GO')
    >>> kind_of("10.0.0.1@GID_pay|1", "JAVA", 399).name, kind_of("${ip}@1#55", "JAVA", 399).name
    ('SPRING_CLOUD_ALIBABA', 'PLACEHOLDER')
    """
    if _PLACEHOLDER.search(client_id):
        return ClientKind.PLACEHOLDER
    if _SPRING_BEAN.search(client_id):
        return ClientKind.ROCKETMQ_SPRING_BEAN
    spoken = (language or "").upper()
    parsed = parse_client_id(client_id, language)
    by_format = _OF_FORMAT.get(parsed.format)
    if by_format is ClientKind.CPP and spoken == "PYTHON":
        return ClientKind.PYTHON
    if by_format is not None:
        return by_format
    if spoken in _LANGUAGES:
        return ClientKind[spoken]
    if parsed.format is ClientIdFormat.DEFAULT:
        old_cpp = _OLD_CPP_ADDRESS.fullmatch(parsed.address)
        return ClientKind.CPP if old_cpp else ClientKind.BROADCASTING
    return _java(parsed, version) if spoken in ("", "JAVA") else ClientKind.OTHER


_OF_FORMAT = {
    ClientIdFormat.SPRING: ClientKind.ROCKETMQ_SPRING,
    ClientIdFormat.SPRING_CLOUD: ClientKind.SPRING_CLOUD_ALIBABA,
    ClientIdFormat.ONS_CLOUD: ClientKind.ONS,
    ClientIdFormat.GRPC: ClientKind.GRPC,
    ClientIdFormat.CPP: ClientKind.CPP,
}
#: Languages of which a connection shows the kind, by its name.
_LANGUAGES = ("GO", "CPP", "PYTHON", "DOTNET")


def _java(parsed: ClientId, version: int | None) -> ClientKind:
    if version == _VERSION_3_4_9:
        return ClientKind.NODE
    if parsed.format is ClientIdFormat.CUSTOM:
        return ClientKind.JAVA_NAMED if parsed.instance_name else ClientKind.OTHER
    if parsed.format is ClientIdFormat.JAVA_PID:
        if version is None or version < _VERSION_4_9_0:
            return ClientKind.JAVA_BEFORE_4_9_0
        return ClientKind.JAVA_NAMED
    return ClientKind.JAVA if parsed.format is ClientIdFormat.JAVA_PID_NANO else ClientKind.OTHER


def remedy_of(client_id: str, language: str | None = None, version: int | None = None) -> Text:
    """The remedy that gives each process that uses the id its own, for the client that made it.

    ``language`` and ``version`` are those of the connection.

    >>> remedy_of("172.17.0.1@1", "GO", 317)
    'give each process its own instance name, such as the pod name: \
consumer.WithInstance(NAME) in client-go'
    """
    kind = kind_of(client_id, language, version)
    parsed = parse_client_id(client_id, language)
    found = _PLACEHOLDER.search(client_id)
    placeholder = found.group() if found else ""
    values = {
        "give_name": _JAVA_NAME,
        "name": parsed.instance_name,
        "placeholder": placeholder,
        "setting": "clientIP" if placeholder in parsed.address else "instanceName",
    }
    return Text(kind.value, **for_slots(kind.value, values))


_JAVA_NAME = Text(
    "give each process its own instanceName (setInstanceName or -Drocketmq.client.name=NAME, "
    "with a NAME such as the pod name)"
)


def placeholders_in(client_ids: Iterable[str]) -> list[str]:
    """The placeholders that nothing replaced in these ids, each once.

    >>> placeholders_in(["${clientIP}@1", "10.0.0.1@1", "${clientIP}@2"])
    ['${clientIP}']
    """
    found = (each.group() for id_ in client_ids if (each := _PLACEHOLDER.search(id_)))
    return sorted(set(found))


def without_secret(client_ids: Iterable[str]) -> str:
    """The remedy that keeps a secret out of the ids of the clients that made these.

    >>> without_secret(["10.0.0.1@ak|sk|GID_pay|1"])[:56]
    'update the binder spring-cloud-starter-stream-rocketmq t'
    """
    kinds = {kind_of(client_id) for client_id in client_ids}
    ways = []
    if ClientKind.SPRING_CLOUD_ALIBABA in kinds:
        ways.append(
            Text(
                "update the binder spring-cloud-starter-stream-rocketmq to 2021.0.5.0, 2022.0.0.0 "
                "or later, or rocketmq-spring-boot-starter to 2.2.1 or later, which leave the "
                "secret key out of the id"
            )
        )
    if kinds - {ClientKind.SPRING_CLOUD_ALIBABA}:
        ways.append(Text("take it out of the client's instanceName or clientIP"))
    return joined(ways)


#: The remedy for one process that reconnected.
STALE_CHANNEL_REMEDY = Text(
    "none: the broker drops a silent channel within about 130 s; if it comes again, look for "
    "heartbeats that time out"
)

#: The most clients that a restart names: whoever restarts them needs the whole list.
_MOST_RESTARTED = 20

#: The update that makes a restart last. client-go: issue 1056, fixed in 2.1.2. Its connections give
#: the same version whatever the release, so that only the language shows it.
_UPDATE_GO = Text(
    "update client-go to 2.1.2 or later: older versions do not take queues that are added to a "
    "route"
)


def restart_of(client_ids: Iterable[str], language: str | None = None) -> str:
    """The restart that repairs it: of which clients, and what keeps it from coming again.

    ``language`` is that of their connections, where an update may keep it from coming again: GO
    where it is that of any, and they lack queues that a route gained.

    >>> restart_of(["b", "a", "c"])
    'restart these 3 clients, a, b and c: at its start a client takes its share'
    >>> restart_of(["10.0.0.1@7"], "GO")
    'restart 10.0.0.1@7: at its start a client takes its share; update client-go to 2.1.2 or \
later: older versions do not take queues that are added to a route'
    """
    every = sorted(set(client_ids))
    if not every:
        return Text("restart the group's clients")
    restart = agreeing(
        len(every),
        "restart [|these {number} clients, ]{clients}: at its start a client takes its share",
        number=len(every),
        clients=list_of(every, _MOST_RESTARTED),
    )
    return joined([restart, _UPDATE_GO]) if (language or "").upper() == "GO" else restart

"""Options from the command line and a file of clusters, checked whole.

The file is for several clusters, and for what the command line has no option for;
docs/collect/collect.toml shows every key with its default.
"""

import re
import ssl
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, IPvAnyNetwork, field_validator

from rebalance_core.errors import near_names

from ..config.toml_files import (
    NamePattern,
    Number,
    Section,
    WholeNumber,
    checked,
    parse_toml,
    read_text,
    that,
)
from ..errors import SettingsError

#: A secret, which belongs into no file of settings and into no message; its name.
_SECRET = re.compile(
    r"(?im)^[^#\n]*?\b((?:access|secret)_?key|security_token|password)\b[\"']?\s*="
)

#: The part of a round's period in which questions are asked; the rest is for writing.
_SHARE_OF_ASKING = 0.9

#: The port of nameservers if nobody says otherwise.
_NAMESRV_PORT = 9876

#: Questions that need not be asked, by the word that leaves them out.
Omission = Literal["routes", "running-infos", "offsets", "request-modes"]
ROUTES, RUNNING_INFOS, OFFSETS, REQUEST_MODES = get_args(Omission)

#: The groups that RocketMQ keeps for itself (``MixAll.isSysConsumerGroup``, ``TopicValidator``).
_SYSTEM_GROUPS = re.compile(
    r"CID_RMQ_SYS_.*|CID_ONS.*|%SYS%.*|TOOLS_CONSUMER|FILTERSRV_CONSUMER|SELF_TEST_C_GROUP|"
    r"CID_DefaultHeartBeatSyncerTopic|__MONITOR_CONSUMER"
)
#: A pattern without anything special in it is a name.
_NAME = re.compile(r"[A-Za-z0-9_%-]+")


def split_address(address: str) -> tuple[str, int]:
    """Host and port; ValueError where it is not an address.

    >>> split_address("10.0.0.1:9876"), split_address("[::1]:9876")
    (('10.0.0.1', 9876), ('::1', 9876))
    """
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise ValueError(f"expected host:port, came {address!r}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def namesrvs_of(text: str) -> list[str]:
    """The addresses of a text as operators have them; without a port they get the usual one.

    >>> namesrvs_of("10.0.0.1:9876;10.0.0.2, [::1]")
    ['10.0.0.1:9876', '10.0.0.2:9876', '[::1]:9876']
    """
    if "://" in text:
        raise ValueError(
            f"expected host:port of a nameserver, came {text!r}: it is asked over RocketMQ's own "
            "protocol, without http://"
        )
    found = []
    for part in re.split(r"[;,\s]+", text.strip(";, \t")):
        if part.count(":") > 1 and not part.startswith("["):
            raise ValueError(f"expected an IPv6 address in brackets, as [::1]:9876, came {part!r}")
        has_port = ":" in part.rpartition("]")[2]
        found.append(part if has_port or not part else f"{part}:{_NAMESRV_PORT}")
        split_address(found[-1])
    return found


def given_namesrvs(texts: Iterable[str]) -> list[str]:
    """The addresses of all ``--namesrv``; SettingsError where one is none."""
    try:
        return [each for text in texts for each in namesrvs_of(text)]
    except ValueError as error:
        raise SettingsError(f"--namesrv: {error}") from error


Address = Annotated[str, that(split_address)]


class Tls(Section):
    """Encryption of the connections.

    ``verify``: full, the certificate and its name; chain, the certificate alone (brokers are asked
    by their IP addresses, which few certificates name); none.
    """

    verify: Literal["full", "chain", "none"] = "full"
    authorities: str | None = None
    certificate: str | None = None
    key: str | None = None

    def to_context(self) -> ssl.SSLContext:
        """The context of the connections; SettingsError where a file is none of those."""
        try:
            for file in filter(None, (self.authorities, self.certificate, self.key)):
                Path(file).open("rb").close()  # OpenSSL does not say which file is not there
            context = ssl.create_default_context(cafile=self.authorities)
            if self.certificate is not None:
                context.load_cert_chain(self.certificate, self.key)
        except (OSError, ValueError) as error:
            raise SettingsError(f"tls: a file cannot be read as a certificate: {error}") from error
        context.check_hostname = self.verify == "full"
        if self.verify == "none":
            context.verify_mode = ssl.CERT_NONE
        return context


class Cluster(Section):
    """A list of nameservers: what it gives, and how it is asked.

    ``name``: the cluster's name in the dump; empty: the one that RocketMQ gives it. The patterns
    are regular expressions over whole names. ``connect_to``: where an address is reached, if not by
    itself. ``brokers``: the networks in which brokers may lie, for a nameserver names what it
    likes; without it anywhere but on this machine or its link, unless a nameserver lies there.
    """

    namesrv: tuple[Address, ...] = Field(min_length=1)
    name: str = ""
    clusters: NamePattern = ".*"
    groups: tuple[NamePattern, ...] = Field(default=(".*",), min_length=1)
    topics: NamePattern = ".*"
    without: frozenset[Omission] = frozenset()
    account_file: str | None = None
    tls: Tls | None = None
    connect_to: dict[Address, Address] = Field(default_factory=dict)
    brokers: tuple[IPvAnyNetwork, ...] = ()

    @field_validator("namesrv", mode="before")
    @classmethod
    def _are_namesrvs(cls, given: Any) -> Any:
        texts = [given] if isinstance(given, str) else given
        if not isinstance(texts, list | tuple) or not all(isinstance(it, str) for it in texts):
            return given
        return list(dict.fromkeys(address for text in texts for address in namesrvs_of(text)))

    def takes_group(self, group: str) -> bool:
        """True if the group is collected."""
        if group in self.groups:
            return True
        is_named = any(re.fullmatch(pattern, group) for pattern in self.groups)
        return is_named and not _SYSTEM_GROUPS.fullmatch(group)

    @property
    def named_groups(self) -> tuple[str, ...]:
        """The groups that are asked even where no broker names them."""
        return tuple(group for group in self.groups if _NAME.fullmatch(group))


class CollectOptions(Section):
    """All options of ``collect``.

    ``timeout_seconds`` for an answer, connecting and asking again included; ``parallel`` questions
    at a time at one address, ``rate`` questions a second (None: as they come). Running infos of a
    group whose lists do not change are asked every ``running_infos_seconds``, of one broker that
    lists the member or of each; of no member before it is ``running_infos_after_seconds`` there
    without a change: a client looks at a route each 30 s, divides its queues each 20 s, and has the
    first answer about a queue after 20 s (``pollNameServerInterval``, ``REBALANCE_INTERVAL``; a
    long poll of 15 s, looked at each 5 s).
    ``most_...``: how many a round asks of.
    """

    dumps: str
    metrics: str | None = None
    every_seconds: Number | None = Field(default=None, ge=0.1)
    for_seconds: Number | None = Field(default=None, gt=0)
    timeout_seconds: Number = Field(default=5.0, gt=0, le=120)
    parallel: WholeNumber = Field(default=4, ge=1, le=32)
    parallel_in_all: WholeNumber = Field(default=64, ge=1, le=1024)
    rate: Number | None = Field(default=None, gt=0)
    running_infos_seconds: WholeNumber = Field(default=300, ge=0)
    running_infos_after_seconds: WholeNumber = Field(default=75, ge=0)
    running_infos_of_each_broker: bool = False
    round_seconds: Number | None = Field(default=None, gt=0)
    most_bytes: WholeNumber = Field(default=8 << 20, ge=1 << 16)
    most_brokers: WholeNumber = Field(default=1_000, ge=1)
    most_groups: WholeNumber = Field(default=10_000, ge=1)
    most_topics: WholeNumber = Field(default=20_000, ge=1)
    most_members: WholeNumber = Field(default=20_000, ge=1)
    clusters: tuple[Cluster, ...] = Field(min_length=1)

    @field_validator("clusters")
    @classmethod
    def _have_names(cls, clusters: tuple[Cluster, ...]) -> tuple[Cluster, ...]:
        names = [cluster.name for cluster in clusters]
        if len(names) > 1 and (len(set(names)) < len(names) or "" in names):
            raise ValueError("expected a name for each of several clusters, each another")
        return clusters

    def only(self, cluster: str, group: str) -> "CollectOptions":
        """The same of one group alone, in a cluster of this name."""
        pattern = group if _NAME.fullmatch(group) else re.escape(group)
        named = [
            one.model_copy(
                update={
                    "groups": (pattern,),
                    "clusters": one.clusters if one.name else re.escape(cluster),
                }
            )
            for one in self.clusters
            if one.name in ("", cluster)
        ]
        if not named:
            there = near_names(cluster, {one.name for one in self.clusters})
            raise SettingsError(f"no cluster {cluster!r} among those to collect: {there}")
        return self.model_copy(update={"clusters": tuple(named)})

    @property
    def settling_seconds(self) -> int:
        """The time after which a running info is asked for that a first round leaves out."""
        is_asked = any(RUNNING_INFOS not in cluster.without for cluster in self.clusters)
        return self.running_infos_after_seconds if is_asked else 0

    @property
    def longest_seconds(self) -> float:
        """The longest time for a round: after it nothing more is asked."""
        every = _SHARE_OF_ASKING * (self.every_seconds or 300)
        return self.round_seconds or max(every, 3 * self.timeout_seconds)


def load_options(
    path: str | None, given: Mapping[str, Any], cluster: Mapping[str, Any]
) -> CollectOptions:
    """The options of a file with those that were ``given``, or of one ``cluster`` without a file.

    Raises SettingsError with every error that was found.
    """
    if path is None:
        if not cluster.get("namesrv"):
            raise SettingsError(
                "expected --namesrv HOST:PORT, or --config FILE, came neither: give a nameserver "
                "of the cluster, as 10.0.0.1:9876; its brokers have it as namesrvAddr"
            )
        namesrvs = given_namesrvs(cluster["namesrv"])
        values: dict[str, Any] = {"clusters": [{**cluster, "namesrv": namesrvs}]}
    elif cluster:
        options = ", ".join(sorted(cluster))
        raise SettingsError(f"expected clusters from --config {path} alone, came also {options}")
    else:
        text = read_text(path)
        if secret := _SECRET.search(text):
            raise SettingsError(
                f"{path}: {secret[1]} is a secret; put it into a file that account_file "
                "names, which only the collector can read (tools.yml has its form)"
            )
        values = parse_toml(path, text)
    values |= given
    if "dumps" not in values:
        raise SettingsError("expected --dumps DIR, or dumps in the file, came neither")
    return checked(CollectOptions, path or "of the command line", values)

"""Real RocketMQ on this machine: nameservers, brokers and consumers of an installation.

Everything listens on loopback, keeps its files below one folder, and ends with the block.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

#: RocketMQ's example: it consumes TopicTest in this group, and shows what it got.
CONSUMER = "org.apache.rocketmq.example.quickstart.Consumer"
GROUP, TOPIC = "please_rename_unique_group_name_4", "TopicTest"

#: What Java 9 and later do not give it without being asked. Java 8 does not read this variable.
_OPENED = " ".join(
    f"--add-{what}=java.base/{package}=ALL-UNNAMED"
    for what, package in (
        ("exports", "sun.nio.ch"),
        ("exports", "jdk.internal.ref"),
        ("opens", "java.nio"),
        ("opens", "sun.nio.ch"),
        ("opens", "java.lang"),
        ("opens", "java.util"),
    )
)
_STARTS_WITHIN = 60.0


@dataclass
class Installation:
    """What of it runs; by name, its processes."""

    home: Path
    folder: Path
    namesrvs: list[str] = field(default_factory=list)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)

    def start_namesrv(self) -> None:
        name, port = f"namesrv-{len(self.namesrvs)}", _free_port()
        config = self._config(name, listenPort=port, bindAddress="127.0.0.1")
        self._start(name, "org.apache.rocketmq.namesrv.NamesrvStartup", "-c", config)
        self.namesrvs.append(f"127.0.0.1:{port}")
        _wait_for(port)

    def start_broker(self, name: str) -> None:
        port = _free_port()
        config = self._config(
            name,
            brokerName=name,
            brokerClusterName="DefaultCluster",
            brokerId=0,
            brokerIP1="127.0.0.1",
            brokerIP2="127.0.0.1",
            listenPort=port,
            haListenPort=_free_port(),
            namesrvAddr=";".join(self.namesrvs),
            storePathRootDir=self.folder / name / "store",
            storePathCommitLog=self.folder / name / "store" / "commitlog",
            mappedFileSizeCommitLog=16 << 20,
            autoCreateTopicEnable="true",
            # A disk that is nearly full is no matter here.
            diskMaxUsedSpaceRatio=99,
        )
        self._start(name, "org.apache.rocketmq.broker.BrokerStartup", "-c", config)
        self.addresses[name] = f"127.0.0.1:{port}"
        _wait_for(port)

    def start_consumer(self, name: str, client_name: str) -> None:
        """A process of ``GROUP``, whose client id ends with ``@client_name``."""
        self._start(name, CONSUMER, system={"rocketmq.client.name": client_name})

    def create_topic(self, queues: int) -> None:
        """``TOPIC`` on every broker."""
        arguments = ("-n", ";".join(self.namesrvs), "-c", "DefaultCluster", "-t", TOPIC)
        amounts = ("-r", str(queues), "-w", str(queues))
        command = ("org.apache.rocketmq.tools.command.MQAdminStartup", "updateTopic")
        ended = self._start("admin", *command, *arguments, *amounts).wait(_STARTS_WITHIN)
        assert ended == 0, self.log("admin")

    def stop(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        process = self.processes.pop(name)
        process.send_signal(number)
        process.wait(30)

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.out").read_text(errors="replace")[-2000:]

    def _config(self, name: str, **values: object) -> str:
        path = self.folder / f"{name}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        return str(path)

    def _start(
        self, name: str, main: str, *arguments: str, system: dict[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        properties = {"user.home": str(self.folder / name), **(system or {})}
        (self.folder / name).mkdir(exist_ok=True)
        environment = {
            **os.environ,
            "ROCKETMQ_HOME": str(self.home),
            "NAMESRV_ADDR": ";".join(self.namesrvs),
            "JDK_JAVA_OPTIONS": _OPENED,
        }
        with (self.folder / f"{name}.out").open("wb") as out:
            self.processes[name] = subprocess.Popen(
                [
                    *(_java(), "-Xms64m", "-Xmx256m", "-XX:MaxDirectMemorySize=256m"),
                    *(f"-D{key}={value}" for key, value in properties.items()),
                    *("-cp", f"{self.home / 'conf'}{os.pathsep}{self.home / 'lib'}/*"),
                    *(main, *arguments),
                ],
                env=environment,
                stdout=out,
                stderr=out,
            )
        return self.processes[name]


@contextmanager
def running(home: Path, folder: Path) -> Iterator[Installation]:
    """The installation, of which nothing runs yet; what is started ends with the block."""
    installation = Installation(home, folder)
    try:
        yield installation
    finally:
        for process in installation.processes.values():
            # A stopped process takes no other signal.
            process.kill()
        for process in installation.processes.values():
            process.wait(30)


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else "java"


def _free_port() -> int:
    """A free port; a broker takes the one two below as well (``fastListenPort``)."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port: int = first.getsockname()[1]
            try:
                second.bind(("127.0.0.1", port - 2))
            except OSError:
                continue
            return port


def _wait_for(port: int) -> None:
    ends = time.monotonic() + _STARTS_WITHIN
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert time.monotonic() < ends, f"nothing listens on {port}"
            time.sleep(0.2)
        else:
            return

"""An S3 server on this machine (moto) whose connections can die, and commands that use it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import Any

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

KEY, SECRET = "AKIAEXAMPLE", "not-to-be-shown"
BUCKET = "lake"
#: The answer of S3 to one request too many.
SLOW_DOWN = (
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code><Message>Please reduce '
    b"your request rate.</Message><Resource>/lake</Resource><RequestId>656c7669</RequestId></Error>"
)

#: Whether a request (its method and path) meets a dead connection.
Dies = Callable[[str, str], bool]


def never(_method: str, _path: str) -> bool:
    return False


class Silent(WSGIRequestHandler):
    def log(self, *_: Any, **__: Any) -> None:
        """Nothing: the tests' output is about faults."""


class ObjectStore:
    """A bucket; ``dies`` and ``refuses`` (503 SlowDown) may be set at any time."""

    def __init__(self) -> None:
        self.dies: Dies = never
        self.refuses: Dies = never
        self.requests: list[tuple[str, str]] = []
        # moto looks for the object, then writes it: a store does both in one step.
        conditional = threading.Lock()
        moto = DomainDispatcherApplication(create_backend_app)

        def application(environ: dict[str, Any], start: Any) -> Any:
            request = environ["REQUEST_METHOD"], environ["PATH_INFO"]
            self.requests.append(request)
            if self.dies(*request):
                environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
                return []
            if self.refuses(*request):
                start("503 Slow Down", [("Content-Type", "application/xml")])
                return [SLOW_DOWN]
            with conditional if "HTTP_IF_NONE_MATCH" in environ else nullcontext():
                return moto(environ, start)

        self._server = make_server(
            "127.0.0.1", 0, application, threaded=True, request_handler=Silent
        )
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.port = self._server.server_port

    def uri(self, path: str = "") -> str:
        options = f"endpoint_override=127.0.0.1:{self.port}&scheme=http&region=us-east-1"
        options += "&allow_bucket_creation=true"
        return f"s3://{KEY}:{SECRET}@{BUCKET}/{path}?{options}"

    def __enter__(self) -> ObjectStore:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    with ObjectStore() as store:
        yield store


def command(
    *arguments: str, place: Path, variables: Mapping[str, str] = MappingProxyType({})
) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, which knows no credentials but those of the URI and of
    the variables.
    """
    environment = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
    return subprocess.run(
        [sys.executable, "-m", "jobs.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=place,
        env={**environment, "PYTHONPATH": str(Path(__file__).parents[2]), **variables},
    )

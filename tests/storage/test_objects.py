"""Creation that only one writer wins, asked of servers on this machine that answer as stores do."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import pyarrow.fs as pafs
import pytest

from jobs.storage import Location, location
from jobs.storage import stores as module
from jobs.storage.stores import Objects
from tests.support.services import serving

HERE = pafs.LocalFileSystem()
#: One that is never asked: PyArrow's S3 says its region.
ASIDE = SimpleNamespace(region="eu-west-1")


def put_if_absent(uri: str, path: str, data: bytes) -> bool:
    return Objects(uri, ASIDE).create(path, data)


class Store(ThreadingHTTPServer):
    """A store that answers every write with ``status``, and keeps what it was asked."""

    status = 200

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str], bytes]] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def s3(self, key: str) -> str:
        return f"s3://key:a%2Fb@lake/{key}?endpoint_override={self.url}"


class _Handler(BaseHTTPRequestHandler):
    server: Store

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append((self.path, dict(self.headers), body))
        self.send_response(self.server.status)
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of the machine's AWS, and no line was said yet."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    module._warn.cache_clear()


@pytest.fixture
def store() -> Iterator[Store]:
    server = Store()
    with serving(server):
        yield server


def test_an_object_of_s3_is_written_where_it_is_not_there(store: Store) -> None:
    assert put_if_absent(store.s3("a/b.json"), "lake/a/b.json", b"text")
    ((path, headers, body),) = store.asked
    assert path == "/lake/a/b.json"
    assert headers["if-none-match"] == "*"
    assert "key/" in headers["authorization"]
    assert "/eu-west-1/" in headers["authorization"]
    assert body == b"text"


def test_an_object_that_is_there_is_not_written(store: Store) -> None:
    store.status = 412
    with pytest.raises(FileExistsError, match=r"lake/a/b\.json"):
        put_if_absent(store.s3("a/b.json"), "lake/a/b.json", b"text")
    assert len(store.asked) == 1


@pytest.mark.parametrize("alias", ["s3a", "s3n"])
def test_sparks_names_of_s3_are_s3(store: Store, alias: str) -> None:
    assert put_if_absent(store.s3("a").replace("s3", alias, 1), "lake/a", b"text")


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"])
@pytest.mark.parametrize("of_profile", [False, True])
def test_the_condition_is_used_where_environment_and_profile_name_the_server(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, of_profile: bool
) -> None:
    monkeypatch.setenv(name, store.url)
    if of_profile:
        keys = "aws_access_key_id = key\naws_secret_access_key = secret\n"
        (tmp_path / "config").write_text(f"[profile night]\n{keys}")
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
        monkeypatch.setenv("AWS_PROFILE", "night")
    else:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert put_if_absent("s3://lake/a/b.json", "lake/a/b.json", b"text")
    ((path, headers, _body),) = store.asked
    assert path == "/lake/a/b.json"
    assert headers["if-none-match"] == "*"
    assert "Credential=key/" in headers["authorization"]


@pytest.mark.parametrize("status", [403, 404])
def test_what_a_store_refuses_is_left_to_pyarrow_and_said_once(
    store: Store, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    store.status = status
    objects = Objects(store.s3("a"), ASIDE)
    assert not objects.create("lake/a", b"text")
    asked = len(store.asked)
    assert asked
    assert not objects.create("lake/b", b"text")
    assert len(store.asked) == asked
    (line,) = caplog.messages
    assert line.startswith("two runs that publish at one moment to s3://lake may both believe")
    assert str(status) in line or status == 404
    assert "key" not in line.partition("for obstore says")[2]


def test_where_obstore_would_ask_another_server_it_is_not_asked(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
    assert not put_if_absent(store.s3("a"), "lake/a", b"text")
    assert not store.asked
    assert "the server of AWS_ENDPOINT_URL_S3, and not that of the URI" in caplog.text


def test_of_a_profile_with_a_sign_on_the_line_says_what_is_lacking(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "config").write_text("[profile night]\nsso_session = us\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_PROFILE", "night")
    monkeypatch.setitem(sys.modules, "boto3", None)
    assert not put_if_absent("s3://lake/a", "lake/a", b"text")
    assert "the profile night come by sso_session, which needs: pip install boto3" in caplog.text


def test_a_store_that_is_away_is_left_to_pyarrow(store: Store) -> None:
    uri = "s3://key:secret@lake/a?endpoint_override=http://127.0.0.1:1"
    assert not put_if_absent(uri, "lake/a", b"text")


ACCOUNT = {"disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}


@pytest.mark.parametrize(
    ("uri", "path", "condition"),
    [
        ("gs://lake/a/b", "/lake/a/b", ("x-goog-if-generation-match", "0")),
        ("gcs://lake/a/b", "/lake/a/b", ("x-goog-if-generation-match", "0")),
        ("abfs://lake@account.dfs.core.windows.net/a/b", "/lake/a/b", ("if-none-match", "*")),
    ],
)
def test_google_and_azure_have_the_condition_in_their_words(
    store: Store, uri: str, path: str, condition: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    account = ACCOUNT | {"gcs_base_url": store.url}
    for name, value in (
        ("GOOGLE_SERVICE_ACCOUNT_KEY", json.dumps(account)),
        ("AZURE_STORAGE_ACCOUNT_KEY", "a2V5"),
        ("AZURE_STORAGE_ENDPOINT", store.url),
        ("AZURE_ALLOW_HTTP", "true"),
    ):
        monkeypatch.setenv(name, value)
    assert put_if_absent(uri, "lake/a/b", b"text")
    ((asked, headers, body),) = store.asked
    name, value = condition
    assert (unquote(asked), headers[name], body) == (path, value, b"text")
    store.status = 412
    with pytest.raises(FileExistsError):
        put_if_absent(uri, "lake/a/b", b"text")


@pytest.mark.parametrize(
    "uri",
    [
        "gs://lake/a/b?endpoint_override=127.0.0.1:1&scheme=http",
        "gs://anonymous@lake/a/b",
        "abfs://lake@account.dfs.core.windows.net/a/b?enable_tls=false",
    ],
)
def test_an_option_of_pyarrow_that_obstore_has_not_leaves_all_to_pyarrow(
    store: Store, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With these it would ask another server than PyArrow.
    account = json.dumps(ACCOUNT | {"gcs_base_url": store.url})
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT_KEY", account)
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", store.url)
    assert not put_if_absent(uri, "lake/a/b", b"text")
    assert not store.asked


def test_what_pyarrow_does_not_find_afterwards_is_an_error(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def file_system_of(_uri: str, _scheme: str) -> tuple[pafs.FileSystem, str]:
        return pafs.SubTreeFileSystem(str(tmp_path), HERE), "lake/a.json"

    monkeypatch.setattr(location, "file_system_of", file_system_of)
    with pytest.raises(OSError, match=r"a\.json was created by obstore, and PyArrow does not find"):
        Location(store.s3("a.json")).create_text("text")
    assert store.asked


@pytest.mark.parametrize("uri", ["hdfs://name/a", "abfs://container/a", "gs://lake/a"])
def test_a_store_that_obstore_has_not_is_left_to_pyarrow(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT_KEY", "no key")
    assert not put_if_absent(uri, "lake/a", b"text")


def test_without_obstore_all_is_left_to_pyarrow(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    assert not put_if_absent(store.s3("a"), "lake/a", b"text")
    assert not store.asked

"""Stores of objects: server, region and keys of S3, and what obstore does there beside PyArrow.

By obstore (the extra ``[stores]``) an object is created, or it is there; it is written or read by
one request, and many go by one. In PyArrow a deletion makes a marker of the folder, and a read asks
for the size first.

PyArrow takes the keys of a profile, and not its endpoint; obstore takes nothing of a profile, and
an endpoint with http only where it is allowed. Both have to reach the same server as the same user:
so it is found out here, by the order of the AWS SDKs: the URI, the environment, the profile.
"""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from configparser import Error, RawConfigParser
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import pyarrow as pa

from ..texts.failures import one_line

_LOGGER = logging.getLogger(__name__)
#: The schemes of the stores, in obstore's words.
_SCHEMES = {
    **{"s3": "s3", "s3a": "s3", "s3n": "s3"},
    **{"gs": "gs", "gcs": "gs", "abfs": "abfs", "abfss": "abfss"},
}
#: A store that is busy (503 SlowDown) or away is asked again for about as long as PyArrow's S3 asks
#: it. Then PyArrow is asked, which says what is wrong.
_RETRIES = {"max_retries": 10, "retry_timeout": timedelta(seconds=6)}
#: obstore 0.12 lets it count before the endpoint that it is given.
_COUNTS_FIRST = "AWS_ENDPOINT_URL_S3"
#: The PyArrow from which on a URI may have the option (apache/arrow#46078).
_HAS_DELAYED_OPEN = 21
#: Entries of a profile in place of keys: another program, or another server, gives them.
_GIVEN_BY = ("credential_process", "sso_session", "sso_start_url", "role_arn", "credential_source")

_Done = TypeVar("_Done")


class Keys(NamedTuple):
    """A key id, its secret and, of keys for a time, the token."""

    key_id: str
    secret: str
    token: str | None = None


@dataclass(frozen=True)
class S3Access:
    """The way to a bucket: the ``endpoint`` (None: AWS) and the ``keys`` that are named.

    ``profile``: the name of the profile whose keys come from elsewhere, by ``given_by``. Where
    neither is there each library asks the machine: a web identity, the container, the instance.
    """

    endpoint: str | None
    keys: Keys | None
    profile: str = ""
    given_by: str = ""

    @classmethod
    def of(cls, uri: str, environment: Mapping[str, str] = os.environ) -> "S3Access":
        """Finds the way of a URI, which may have options as PyArrow reads them.

        >>> S3Access.of("s3://key:a%2Fb@bucket/x?endpoint_override=localhost:9000&scheme=http", {})
        S3Access(endpoint='http://localhost:9000', keys=Keys(key_id='key', secret='a/b', \
token=None), profile='', given_by='')
        """
        address, _, options = uri.partition("?")
        parts, query = urlsplit(address, allow_fragments=False), dict(parse_qsl(options))
        files = _Files(environment)
        endpoint = query.get("endpoint_override") or _endpoint(environment, files)
        if endpoint and "://" not in endpoint:
            endpoint = f"{query.get('scheme', 'https')}://{endpoint}"
        if parts.username:
            keys = Keys(unquote(parts.username), unquote(parts.password or ""))
            return cls(endpoint, keys)
        named = {key.lower(): value for key, value in environment.items()}
        for values in (named, files.credentials, files.config):
            if key_id := values.get("aws_access_key_id"):
                secret = values.get("aws_secret_access_key", "")
                return cls(endpoint, Keys(key_id, secret, values.get("aws_session_token")))
        given_by = next((name for name in _GIVEN_BY if name in files.config), "")
        return cls(endpoint, None, files.profile if given_by else "", given_by)


def with_endpoint(uri: str) -> str:
    """The URI with the options that PyArrow needs: the endpoint of a profile, which it does not
    read, and that a small object is written in one request.
    """
    address, _, options = uri.partition("?")
    query = dict(parse_qsl(options, keep_blank_values=True))
    if int(pa.__version__.partition(".")[0]) >= _HAS_DELAYED_OPEN:
        query.setdefault("allow_delayed_open", "true")
    if "endpoint_override" not in query and (endpoint := S3Access.of(uri).endpoint):
        scheme, _, server = endpoint.partition("://")
        query |= {"endpoint_override": server.rstrip("/"), "scheme": scheme}
    return f"{address}?{urlencode(query)}"


def _endpoint(environment: Mapping[str, str], files: "_Files") -> str | None:
    """The endpoint that the environment names, else the profile: that of S3 before that of all."""
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
        if environment.get(name):
            return environment[name]
    if environment.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() == "true":
        return None
    return files.of_service("s3").get("endpoint_url") or files.config.get("endpoint_url")


class _Files:
    """The entries of the profile that counts, in the two files of AWS."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.profile = environment.get("AWS_PROFILE") or "default"
        home = f"{environment.get('HOME') or '~'}/.aws"
        credentials = _read(environment.get("AWS_SHARED_CREDENTIALS_FILE") or f"{home}/credentials")
        self._config = _read(environment.get("AWS_CONFIG_FILE") or f"{home}/config")
        self.credentials = credentials.get(self.profile, {})
        # The name of the default profile alone needs no word before it.
        short = self._config.get("default", {}) if self.profile == "default" else {}
        self.config = self._config.get(f"profile {self.profile}") or short

    def of_service(self, name: str) -> dict[str, str]:
        """The entries of a service in the section that the profile names: lines below its name."""
        section = self._config.get(f"services {self.config.get('services')}", {})
        lines = (line.partition("=") for line in section.get(name, "").splitlines())
        return {key.strip(): value.strip() for key, _, value in lines}


def _read(path: str) -> dict[str, dict[str, str]]:
    """The sections of a file; none where it cannot be read, for PyArrow reads none then either.

    A container may run as a user who has no home.
    """
    parser = RawConfigParser(default_section="", strict=False)
    try:
        parser.read(Path(path).expanduser(), encoding="utf-8")
    except (Error, OSError, RuntimeError, UnicodeDecodeError):
        return {}
    return {" ".join(name.split()): dict(parser[name]) for name in parser.sections()}


class Objects:
    """The objects of a store, as far as obstore reaches it; PyArrow does the rest.

    ``uri``: with PyArrow's options; ``file_system``: PyArrow's. A path has the bucket in it. What
    obstore could not do once it is not asked for again. Google and Azure are asked to create alone:
    there nothing shows beforehand that it is the server that PyArrow has.
    """

    def __init__(self, uri: str, file_system: Any) -> None:
        self._uri, self._file_system = uri, file_system
        self._scheme = _SCHEMES.get(uri.partition("://")[0].lower())
        self._store: Any = None
        #: The reasons why obstore does not create objects, and does nothing else; empty: it does.
        self._refused = self._away = ""

    def create(self, path: str, data: bytes) -> bool:
        """Creates an object on the store's own condition; FileExistsError where it is there.

        False where it cannot, and a line says once why: the store has no conditional writes or
        answers with an error, or obstore is not installed, or lacks keys or options that PyArrow
        has.
        """
        if not self._refused:
            try:
                self._call("put", path.partition("/")[2], data, mode="create")
            except FileExistsError:
                raise FileExistsError(path) from None
            except _UnreachedError as error:
                self._refused = str(error)
            else:
                return True
        _warn(
            f"two runs that publish at one moment to {self._scheme or 'this store'}://"
            f"{path.partition('/')[0]} may both believe that they count: the store's own condition "
            f"(If-None-Match) is not used, for {self._refused}"
        )
        return False

    def read(self, path: str) -> bytes | None:
        """The bytes of an object; None where there is none, or PyArrow has to be asked."""
        return self._done(lambda: bytes(self._call("get", path.partition("/")[2]).bytes()))

    def write(self, path: str, data: bytes) -> bool:
        """Writes an object, whole or not at all; False where PyArrow has to do it."""
        return self._done(lambda: self._call("put", path.partition("/")[2], data)) is not None

    def delete(self, paths: Sequence[str]) -> bool:
        """Removes objects, a thousand in a request; False where PyArrow has to do it."""
        keys = [path.partition("/")[2] for path in paths]
        return self._done(lambda: self._call("delete", keys) or keys) is not None

    def _done(self, work: Callable[[], _Done]) -> _Done | None:
        if self._scheme != "s3" or self._away:
            return None
        try:
            return work()
        except FileNotFoundError:
            return None
        except _UnreachedError as error:
            self._away = str(error)
            return None

    def _call(self, what: str, *arguments: Any, **options: Any) -> Any:
        """Calls a function of obstore; _UnreachedError where it fails but by what is there
        or not.
        """
        try:
            obstore: Any = import_module("obstore")
        except ImportError:
            raise _UnreachedError(
                "the package obstore is not installed: pip install "
                "'rocketmq-rebalance-audit[stores]'"
            ) from None
        errors = obstore.exceptions
        try:
            if self._store is None:
                url, given = self._options()
                from_url = import_module("obstore.store").from_url
                self._store = from_url(url, retry_config=_RETRIES, **given)
            return getattr(obstore, what)(self._store, *arguments, **options)
        except errors.AlreadyExistsError as error:
            raise FileExistsError from error
        except (errors.NotFoundError, FileNotFoundError) as error:
            if what == "put":  # there is no such bucket
                raise _UnreachedError(_reason(error)) from error
            raise FileNotFoundError from error
        except (errors.BaseError, OSError, ValueError) as error:  # some are those of Python
            raise _UnreachedError(_reason(error)) from error

    def _options(self) -> tuple[str, dict[str, Any]]:
        """The URL of the bucket, and the options of obstore."""
        address = urlsplit(self._uri)
        if self._scheme is None:
            raise _UnreachedError(f"obstore has no {address.scheme}://")
        if self._scheme == "s3":
            return f"s3://{address.netloc.rpartition('@')[2]}", s3_options(
                S3Access.of(self._uri), getattr(self._file_system, "region", None)
            )
        if address.query or (self._scheme == "gs" and "@" in address.netloc):
            # They may name another server.
            raise _UnreachedError("obstore has not the options of PyArrow that the URI has")
        return f"{self._scheme}://{address.netloc}", {}


class _UnreachedError(Exception):
    """obstore cannot do it; the message has the reason."""


def s3_options(access: S3Access, region: str | None) -> dict[str, Any]:
    """The options of obstore by which it reaches what PyArrow reaches, in the region that PyArrow
    found.

    >>> s3_options(S3Access("http://localhost:9000", None), "eu-west-1")
    {'endpoint': 'http://localhost:9000', 'region': 'eu-west-1', \
'client_options': {'allow_http': True}}
    """
    if os.environ.get(_COUNTS_FIRST, access.endpoint) != access.endpoint:
        raise _UnreachedError(
            f"obstore would ask the server of {_COUNTS_FIRST}, and not that of the URI"
        )
    is_plain = (access.endpoint or "").startswith("http:")
    values = {
        "endpoint": access.endpoint,
        "region": region,
        "credential_provider": _keys(access),
        "client_options": {"allow_http": True} if is_plain else None,
    }
    return {name: value for name, value in values.items() if value}


def _keys(access: S3Access) -> Any:
    """Function that gives obstore the keys; None where it asks the machine itself."""
    if access.given_by:
        try:
            session = import_module("boto3").Session(profile_name=access.profile)
            return import_module("obstore.auth.boto3").Boto3CredentialProvider(session)
        except ImportError:
            raise _UnreachedError(
                f"the keys of the profile {access.profile} come by {access.given_by}, which "
                "needs: pip install boto3"
            ) from None
        except Exception as error:  # botocore's errors have no one class
            raise _UnreachedError(_reason(error)) from error
    if (keys := access.keys) is None:
        return None
    given = {"access_key_id": keys.key_id, "secret_access_key": keys.secret, "token": keys.token}
    # As a function: else it would put the token of the environment beside the keys of the URI.
    return lambda: {**given, "expires_at": None}


def _reason(error: Exception) -> str:
    """The first sentence of an error; obstore's have the whole answer of the server behind it."""
    return f"obstore says: {one_line(str(error).partition(chr(10))[0])}"


@cache
def _warn(text: str) -> None:
    """Once for each text: a run publishes twice."""
    _LOGGER.warning(text)

"""Objects of a store, by obstore (the extra ``[stores]``), for the things that PyArrow cannot do.

An object is created, or it is there; it is written or read by one request, and many go by one. In
PyArrow a deletion makes a marker of the folder, and a read asks for the size first.
"""

import logging
import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import cache
from importlib import import_module
from typing import Any, TypeVar
from urllib.parse import urlsplit

from ..texts.failures import one_line
from .aws import S3Access

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

_Done = TypeVar("_Done")


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

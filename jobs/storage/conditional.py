"""Conditional write of a store, which PyArrow has not: an object is created, or it is there."""

from importlib import import_module
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

#: The schemes of the stores, in obstore's words.
_SCHEMES = {
    **{"s3": "s3", "s3a": "s3", "s3n": "s3"},
    **{"gs": "gs", "gcs": "gs", "abfs": "abfs", "abfss": "abfss"},
}
#: A store that does not answer is asked by PyArrow afterwards, which says what is wrong.
_RETRIES = {"max_retries": 2}


def put_if_absent(uri: str, file_system: Any, base: str, data: bytes) -> bool:
    """Creates the object, by obstore; False where that is not installed or cannot create it: the
    store has no conditional writes or answers with an error, obstore does not find the credentials
    that PyArrow finds, or has not the options of the URI.

    ``uri``: with PyArrow's options; ``file_system``: PyArrow's; ``base``: bucket and key. Raises
    FileExistsError where it is there.
    """
    address, key = urlsplit(uri), base.partition("/")[2]
    scheme, bucket = _SCHEMES.get(address.scheme), address.netloc
    if scheme == "s3":
        bucket, options = bucket.rpartition("@")[2], s3_options(uri, file_system)
    elif scheme is None or address.query or (scheme == "gs" and "@" in bucket):
        # PyArrow's options may name another server.
        return False
    else:
        options = {}
    try:
        obstore: Any = import_module("obstore")
    except ImportError:
        return False
    from_url = import_module("obstore.store").from_url
    errors = obstore.exceptions
    try:
        store = from_url(f"{scheme}://{bucket}", retry_config=_RETRIES, **options)
        obstore.put(store, key, data, mode="create")
    except errors.AlreadyExistsError:
        raise FileExistsError(base) from None
    except (errors.BaseError, OSError):  # some of them are those of Python
        return False
    return True


def s3_options(uri: str, file_system: Any = None) -> dict[str, Any]:
    """The options of obstore that a URI of S3 has in PyArrow's words, with the region that PyArrow
    found.

    >>> s3_options("s3://key:a%2Fb@bucket/x?endpoint_override=localhost:9000&scheme=http")
    {'endpoint': 'http://localhost:9000', 'access_key_id': 'key', 'secret_access_key': 'a/b', \
'client_options': {'allow_http': True}}
    """
    address, _, options = uri.partition("?")
    parts, query = urlsplit(address, allow_fragments=False), dict(parse_qsl(options))
    endpoint = query.get("endpoint_override")
    if endpoint and "://" not in endpoint:
        endpoint = f"{query.get('scheme', 'https')}://{endpoint}"
    values = {
        "endpoint": endpoint,
        "region": query.get("region") or getattr(file_system, "region", None),
        "access_key_id": unquote(parts.username or ""),
        "secret_access_key": unquote(parts.password or ""),
        "client_options": {"allow_http": True} if (endpoint or "").startswith("http:") else None,
    }
    return {name: value for name, value in values.items() if value}

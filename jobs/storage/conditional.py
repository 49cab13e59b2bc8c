"""S3's conditional write, which PyArrow does not have: an object is created, or it is there."""

from importlib import import_module
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

S3_SCHEMES = ("s3", "s3a", "s3n")
#: Answers of a store where the object is there (412), or is being created (409).
_IS_THERE = {"PreconditionFailed", "ConditionalRequestConflict", "412", "409"}
#: Answers of a store that has no conditional writes.
_UNKNOWN = {"NotImplemented", "501"}


def put_if_absent(uri: str, base: str, data: bytes) -> bool:
    """Creates the object, by boto3; False where that, or the store, cannot do it, or it is no S3.

    ``uri``: with PyArrow's options; ``base``: bucket and key. Raises FileExistsError where it is
    there, OSError for whatever else fails.
    """
    if urlsplit(uri).scheme not in S3_SCHEMES:
        return False
    try:
        boto3: Any = import_module("boto3")
    except ImportError:
        return False
    errors: Any = import_module("botocore.exceptions")
    bucket, _, key = base.partition("/")
    try:
        client = boto3.client("s3", **s3_options(uri))
        client.put_object(Bucket=bucket, Key=key, Body=data, IfNoneMatch="*")
    except errors.ClientError as error:
        code = str(error.response["Error"]["Code"])
        if code in _IS_THERE:
            raise FileExistsError(base) from None
        if code in _UNKNOWN:
            return False
        raise OSError(f"{base} cannot be created: {error}") from None
    except errors.ParamValidationError:  # a boto3 that does not know the condition
        return False
    except errors.BotoCoreError as error:
        raise OSError(f"{base} cannot be created: {type(error).__name__}") from None
    return True


def s3_options(uri: str) -> dict[str, str]:
    """The options of boto3 that a URI of S3 has in PyArrow's words.

    >>> s3_options("s3://key:a%2Fb@bucket/x?endpoint_override=localhost:9000&scheme=http")
    {'endpoint_url': 'http://localhost:9000', 'aws_access_key_id': 'key', \
'aws_secret_access_key': 'a/b'}
    """
    address, _, options = uri.partition("?")
    parts, query = urlsplit(address, allow_fragments=False), dict(parse_qsl(options))
    endpoint = query.get("endpoint_override")
    if endpoint and "://" not in endpoint:
        endpoint = f"{query.get('scheme', 'https')}://{endpoint}"
    values = {
        "endpoint_url": endpoint,
        "region_name": query.get("region"),
        "aws_access_key_id": unquote(parts.username or ""),
        "aws_secret_access_key": unquote(parts.password or ""),
    }
    return {name: value for name, value in values.items() if value}

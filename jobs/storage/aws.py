"""Server, region and keys of S3, as URI, environment and the files of AWS give them.

PyArrow takes the keys of a profile, and not its endpoint; obstore takes nothing of a profile, and
an endpoint with http only where it is allowed. Both have to reach the same server as the same user:
so it is found out here, by the order of the AWS SDKs: the URI, the environment, the profile.
"""

import os
from collections.abc import Mapping
from configparser import Error, RawConfigParser
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import pyarrow as pa

#: The PyArrow from which on a URI may have the option (apache/arrow#46078).
_HAS_DELAYED_OPEN = 21
#: Entries of a profile in place of keys: another program, or another server, gives them.
_GIVEN_BY = ("credential_process", "sso_session", "sso_start_url", "role_arn", "credential_source")


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
        given_by = next((each for each in _GIVEN_BY if each in files.config), "")
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

"""The account of the collector, and how a request is signed by it (ACL 1.0).

The secret key is in no argument, no log and no dump: it comes from the environment or from a file,
and it leaves this module as a signature alone. ACL 2.0 (5.3 and later) reads the same three fields.

Source: ``AclClientRPCHook`` and ``AclUtils`` of 4.9.4 and 5.1.4.
"""

import base64
import hashlib
import hmac
import logging
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import SettingsError

#: The environment variables of the account.
ACCESS_KEY = "REBALANCE_AUDIT_ACCESS_KEY"
SECRET_KEY = "REBALANCE_AUDIT_SECRET_KEY"  # noqa: S105 - the name of a variable
SECURITY_TOKEN = "REBALANCE_AUDIT_SECURITY_TOKEN"  # noqa: S105 - the name of a variable

_LOGGER = logging.getLogger(__name__)
_KEY_LINE = re.compile(r"\s*(accessKey|secretKey|securityToken)\s*[:=]\s*(.*?)\s*")


@dataclass(frozen=True)
class Account:
    """The account; its ``repr`` shows no secret."""

    access_key: str
    secret_key: str = field(repr=False)
    security_token: str | None = field(default=None, repr=False)

    def sign(self, fields: Mapping[str, str]) -> dict[str, str]:
        """The fields with the account and the signature.

        Signed are the values of all fields, in the order of their names; no question has a body.

        >>> signed = Account("rocketmq2", "12345678").sign({"consumerGroup": "G_X"})
        >>> signed["AccessKey"], signed["Signature"]
        ('rocketmq2', '3uHz0TO9SnoDNTGMy/blSDuBuHk=')
        """
        signed = {**fields, "AccessKey": self.access_key}
        if self.security_token is not None:
            signed["SecurityToken"] = self.security_token
        content = "".join(signed[name] for name in sorted(signed)).encode()
        digest = hmac.digest(self.secret_key.encode(), content, hashlib.sha1)
        return {**signed, "Signature": base64.b64encode(digest).decode()}


def find_account(environment: Mapping[str, str], file: str | None) -> Account | None:
    """The account of the file, else of the environment; None where there is none.

    The file has the lines ``accessKey: ...`` and ``secretKey: ...``, as mqadmin's conf/tools.yml.
    Raises SettingsError, without the secret in it, for half an account.
    """
    if file is not None:
        keys, source = _read(file), file
    else:
        names = {"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY, "securityToken": SECURITY_TOKEN}
        keys = {key: environment.get(name, "").strip() for key, name in names.items()}
        source = f"the environment ({ACCESS_KEY}, {SECRET_KEY})"
        if not any(keys.values()):
            return None
    access_key, secret_key = keys.get("accessKey"), keys.get("secretKey")
    if not access_key or not secret_key:
        missing = "accessKey" if not access_key else "secretKey"
        raise SettingsError(
            f"{source}: expected an access key and a secret key, {missing} is empty"
        )
    return Account(access_key, secret_key, keys.get("securityToken") or None)


def _read(file: str) -> dict[str, str]:
    try:
        if Path(file).stat().st_mode & stat.S_IROTH:
            _LOGGER.warning("account file %s: everybody on this machine may read it", file)
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"account file {file}: {type(error).__name__}") from None
    found = (_KEY_LINE.fullmatch(line) for line in lines)
    return {match.group(1): match.group(2).strip("\"'") for match in found if match}

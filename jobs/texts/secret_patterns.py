"""Secrets in a text, and the hash in their place; see ``jobs.config.masking``.

Nothing but the standard library: what a command complains of is masked before it loads any library.
"""

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

#: One part of an id that is put together with "|".
_PART = r"[^\s|\"']"
#: Behind ``|``: the process id and the start time in base 36 of the newer binder, which has no key.
_PID_AND_TIME = r"\|-?[0-9]{1,20}\|-?[0-9a-z]{6,16}(?![\w|#-])"
_PID = r"\|-?[0-9]{1,20}(?![\w|#-])"
#: Texts that were masked before, and placeholders in place of a secret.
_NOT = r"(?!\(secret |\$|#\{|\*|%)"

#: Patterns of secrets, by name, in a client id and in any text: the group ``secret``. All lengths
#: are bounded, for a text may be as long as somebody made it.
DEFAULT_PATTERNS: Mapping[str, str] = {
    # accessKey|secretKey|topic|pid and, of a cloud's access key, accessKey|secretKey|group:
    # RocketMQUtil (rocketmq-spring 2.0), RocketMQUtils (spring-cloud-alibaba 2.2.9)
    "BINDER_KEY": (
        rf"(?<={_PART})\|{_NOT}(?P<secret>{_PART}{{6,256}})\|{_PART}{{1,255}}{_PID}"
        rf"|(?:LTAI|STS\.|AKID|AKIA)[\w.]{{8,64}}\|(?!{_PART}{{1,256}}(?:{_PID_AND_TIME}|{_PID}))"
        rf"{_NOT}(?P<secret_of_cloud>{_PART}{{6,256}})"
    ),
    # secretKey=..., password: ..., "token":"..."; up to five characters behind ":" are a port
    "NAMED_SECRET": (
        r"(?i:secret|passw(?:or)?d|pwd|token|api[_-]?key)(?i:[_-]?(?:access)?[_-]?key)?[\"']?"
        rf"(?:\s?=\s?[\"']?{_NOT}(?P<secret>[^\s\"'|;,&@#)}}\]]{{1,256}})"
        rf"|\s?:\s?[\"']?{_NOT}(?P<secret_behind_colon>[^\s\"'|;,&@#)}}\]]{{6,256}}))"
    ),
    # s3://keyid:secret@bucket, for a key id names the account, scheme://user:password@host, and the
    # parameters of a URI
    "URL_PASSWORD": (
        rf"s3[an]?://{_NOT}(?P<secret_of_store>[^\s/:@\"']{{1,128}}(?::[^\s@\"']{{1,256}})?)@"
        rf"|://[^\s/:@\"']{{0,128}}:{_NOT}(?P<secret>[^\s/@\"']{{1,256}})@"
        r"|[?&](?i:[\w.-]{0,32}access[._-]?key(?:[._-]?id)?|account[._-]?key|x-amz-credential|"
        rf"(?:x-amz-)?sig(?:nature)?)={_NOT}(?P<secret_of_query>[^\s&#\"']{{1,256}})"
    ),
    # a long random text beside "|": see _is_random
    "RANDOM_TOKEN": (
        rf"(?<=\|)(?P<secret>[A-Za-z0-9+/=_-]{{20,256}})(?![A-Za-z0-9+/=_-])(?!{_PID_AND_TIME})"
        r"|(?<![A-Za-z0-9+/=_-])(?P<secret_before>[A-Za-z0-9+/=_-]{20,256})(?=\|)"
        rf"(?!\|{_PART}{{1,255}}{_PID_AND_TIME})"
    ),
}
_RANDOM_TOKEN = "RANDOM_TOKEN"  # noqa: S105 - the name of a pattern
#: The access keys of two clouds: names, and no secrets.
_ACCESS_KEY = re.compile(r"(?:LTAI|AKID|AKIA)\w*")
#: Parts of the names of named secrets, in small letters.
_NAMES = ("secret", "passw", "pwd", "token", "api")


@dataclass(frozen=True)
class Secrets:
    """Patterns of secrets, and the key of the hash that replaces them.

    ``defaults`` names some of ``DEFAULT_PATTERNS``; of ``patterns`` the group ``secret`` is masked,
    or the whole match where a pattern has no such group. Without a ``key`` the hash is a plain one,
    and who guesses a weak secret can see that the guess is right.

    >>> secrets = Secrets()
    >>> secrets.mask("10.0.0.1@RocketMQ|12345678|pay-topic|1")
    '10.0.0.1@RocketMQ|(secret ef797c)|pay-topic|1'
    >>> secrets.mask("10.0.0.1@1#123456789012345")
    '10.0.0.1@1#123456789012345'
    """

    defaults: tuple[str, ...] = tuple(DEFAULT_PATTERNS)
    patterns: tuple[str, ...] = ()
    key: bytes = b""

    def mask(self, text: str) -> str:
        """The text with its secrets replaced by their hashes; the very text where it has none."""
        if not self.patterns and not _may_hold(text):
            return text
        masked = _masked(self, text)
        return text if masked == text else masked


def _may_hold(text: str) -> bool:
    """True if a default pattern may find anything: nearly all texts are done with by this."""
    if "|" in text or "://" in text:
        return True
    if "=" not in text and ":" not in text:
        return False
    small = text.lower()
    return any(name in small for name in _NAMES)


@lru_cache(maxsize=64)
def _compiled(secrets: Secrets) -> tuple[tuple[str, re.Pattern[str]], ...]:
    named = [(name, DEFAULT_PATTERNS[name]) for name in secrets.defaults]
    further = [("", text) for text in secrets.patterns]
    return tuple((name, re.compile(text)) for name, text in [*named, *further])


# An id comes again in many rows and texts; some MB when full.
@lru_cache(maxsize=16_384)
def _masked(secrets: Secrets, text: str) -> str:
    for name, pattern in _compiled(secrets):

        def replaced(match: re.Match[str], name: str = name) -> str:
            start, end = _span_of_secret(match)
            secret = match.string[start:end]
            if not secret or (name == _RANDOM_TOKEN and not _is_random(secret)):
                return match.group()
            before, after = match.string[match.start() : start], match.string[end : match.end()]
            return f"{before}(secret {_digest(secrets.key, secret)}){after}"

        text = pattern.sub(replaced, text)
    return text


def _span_of_secret(match: re.Match[str]) -> tuple[int, int]:
    """The span of the group named ``secret...`` that took part, else of the whole match."""
    groups = [name for name in match.re.groupindex if name.startswith("secret")]
    spans = [match.span(name) for name in groups if match.start(name) >= 0]
    return spans[0] if spans else match.span()


def _digest(key: bytes, secret: str) -> str:
    text = secret.encode("utf-8", "surrogatepass")
    digest = hmac.new(key, text, hashlib.sha256) if key else hashlib.sha256(text)
    return digest.hexdigest()[:6]


_HEXADECIMAL = re.compile(r"[0-9a-f]{32,}|[0-9A-F]{32,}")
#: A UUID without its dashes: of versions 1 to 5, and of the one variant that is in use.
_UUID = re.compile(r"[0-9a-fA-F]{12}[1-5][0-9a-fA-F]{3}[89abAB][0-9a-fA-F]{15}")
_KINDS = (str.islower, str.isupper, str.isdigit)


def _is_random(token: str) -> bool:
    """True if a text of at least 20 characters looks drawn by chance, as keys are.

    Hexadecimal digits: at least 32, which are no UUID. Else small letters, capitals and digits that
    follow each other without order: in 2 of 5 places or more another kind than before. Where words
    are written together (``OrderServiceConsumerV2``) that is so in fewer places.

    >>> _is_random("Xb7Qm2LkP9sTfR4vWz8dYc3N"), _is_random("OrderServiceConsumerV2Prod01")
    (True, False)
    """
    if _ACCESS_KEY.fullmatch(token):
        return False
    if _HEXADECIMAL.fullmatch(token):
        mixed = not token.isdigit() and not token.isalpha()
        return mixed and not _UUID.fullmatch(token)
    kinds = [next((n for n, is_kind in enumerate(_KINDS) if is_kind(c)), 3) for c in token]
    changes = sum(1 for one, other in pairwise(kinds) if one != other)
    return {0, 1, 2} <= set(kinds) and changes >= 0.4 * (len(token) - 1)

"""Lines of real dumps, changed at random: what a bug, a bad disk or a stranger makes of them.

Every change takes its decisions from a ``Random``. Hypothesis gives one that it can replay and
shrink; a plain one with a seed makes whole files.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from random import Random

from hypothesis import strategies as st

from jobs.dumps.statement import KINDS
from tests.dumps.samples import line as sample_line

_CAPTURES = Path(__file__).parent.parent / "data" / "captures"
#: So many recorded lines of each kind, spread over all captures.
_LINES_A_KIND = 40
#: Longer ones are changed no better, only slower.
_LONGEST = 6_000

_QUEUE = '{"brokerName":"b","queueId":0,"topic":"T"}'
#: Texts that stand where a value is expected.
ODD_VALUES = (
    *("null", "true", "false", "0", "-0", "-1", "1.0", "1e3", "1e999", "-1e999", "NaN", "Infinity"),
    *("127", "2147483647", "2147483648", "9223372036854775807", "9223372036854775808"),
    *("18446744073709551616", "-123456789012345678901234567890", "9" * 400, "9" * 5000, "1e-400"),
    *('""', '" "', '"0"', "'x'", "''", '"\\ud83d"', '"\\ud83d\\ude00"', '"\\u0000"', '"\\x41"'),
    *(
        '"\u2028"',
        '"\ufeff"',
        '"\x00"',
        '"\x1b]0;x\x07"',
        '"=1+1"',
        '"<b>"',
        '"../../x"',
        '"\ud83d"',
    ),
    *("[]", "{}", "[null]", "[[]]", '{"a":1,"a":2}', "{0:1,0:2}", "{-1:[]}", "[" * 120 + "]" * 120),
    *('{"$ref":"$"}', '{"$ref":".."}', '{"$ref":"@"}', '{"$ref":"$.data"}', '{"$ref":1}'),
    *(_QUEUE, "{" + _QUEUE + ":{}}", "{" + _QUEUE + ":null,1:2}", '{"status":-1,"data":null}'),
    *('"MessageQueue [topic=T, brokerName=b, queueId=0]"', '{"key":{},"value":{}}'),
    *('"0001-01-01T00:00:00Z"', '"9999-12-31T23:59:59.999999Z"', '"2026-11-21T02:03:04+18:00"'),
    *('"2100-01-01T00:00:00Z"', '"2026-02-30T00:00:00Z"', '"2026-11-21T24:00:00Z"', '"2026-11-21"'),
    *(f'"{kind}"' for kind in KINDS),
)
#: Texts that may come anywhere.
ODD_TEXTS = (
    *(
        "\x00",
        "\ufeff",
        "\r",
        "\n",
        "\r\n",
        "\u2028",
        "\u2029",
        "\x85",
        "\x1b[31m",
        "\u202e",
        "\x07",
    ),
    *("\ud83d", "\udc00", "\U0001f600", "\\", '\\"', '"', "'", "\\ud83d", "\\u12", "\\x", "\\8"),
    *("{", "}", "[", "]", ":", ",", "{{", "}}", ",,", "/*x*/", "//", "-", "01", ".5", "+1", "0x1F"),
    *('"$ref"', '{"$ref":"$.body"}', "NaN", "=", "@", "#", ", group=", ", queueId=", "], "),
    *("rebalanced result changed.", "broker rebalanced result changed.", "[" * 300, "{" * 300),
)
_ODD_BYTES = (
    b"\xff",
    b"\xc0\x80",
    b"\xed\xa0\xbd",
    b"\xf4\x90\x80\x80",
    b"\xe2\x80",
    b"\x00",
    b"\xfe\xff",
)

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?[0-9]+(?:\.[0-9]+)?|[A-Za-z_$%][\w$%]*|\s+|.', re.DOTALL)


@cache
def recorded_lines() -> tuple[bytes, ...]:
    """Lines of every kind, mostly recorded from real servers."""
    by_kind: dict[str, list[bytes]] = {kind: [] for kind in KINDS}
    for path in sorted(_CAPTURES.glob("*/dump.jsonl.gz")):
        for line in gzip.decompress(path.read_bytes()).splitlines():
            if len(line) <= _LONGEST:
                by_kind[json.loads(line)["kind"]].append(line)
    chosen = []
    for kind, lines in by_kind.items():
        chosen.append(sample_line(kind).encode())
        chosen += lines[:: max(1, len(lines) // _LINES_A_KIND)]
    return tuple(chosen)


@cache
def recorded_bodies() -> tuple[str, ...]:
    """The bodies of ``recorded_lines``."""
    return tuple(json.loads(line)["body"] for line in recorded_lines() if b'"body"' in line)


# ------------------------------------------------------------------ changes of a text


def _place(of: Sequence[object], random: Random) -> int:
    return random.randrange(len(of) + 1)


def _span(of: Sequence[object], random: Random) -> tuple[int, int]:
    """Two places; mostly near each other."""
    start = _place(of, random)
    return start, min(len(of), start + random.choice((1, 1, 2, 5, 40, len(of))))


def _insert(text: str, random: Random) -> str:
    place = _place(text, random)
    return text[:place] + random.choice(ODD_TEXTS) + text[place:]


def _cut(text: str, random: Random) -> str:
    start, end = _span(text, random)
    return text[:start] + text[end:]


def _repeat(text: str, random: Random) -> str:
    start, end = _span(text, random)
    return text[:end] + text[start:end] + text[end:]


def _with_tokens(change: Callable[[list[str], int, Random], None]) -> Callable[[str, Random], str]:
    def changed(text: str, random: Random) -> str:
        tokens = _TOKEN.findall(text)
        if tokens:
            change(tokens, random.randrange(len(tokens)), random)
        return "".join(tokens)

    return changed


def _replace(tokens: list[str], at: int, random: Random) -> None:
    tokens[at] = random.choice(ODD_VALUES)


def _exchange(tokens: list[str], at: int, random: Random) -> None:
    other = random.randrange(len(tokens))
    tokens[at], tokens[other] = tokens[other], tokens[at]


def _drop(tokens: list[str], at: int, random: Random) -> None:
    del tokens[at]


def _copy(tokens: list[str], at: int, random: Random) -> None:
    tokens.insert(random.randrange(len(tokens)), tokens[at])


def _unquote(tokens: list[str], at: int, random: Random) -> None:
    quoted = [place for place, token in enumerate(tokens) if token.startswith('"')]
    if quoted:
        place = random.choice(quoted)
        bare = tokens[place].strip('"')
        tokens[place] = random.choice((bare, f"'{bare}'", "7"))


def _blank(tokens: list[str], at: int, random: Random) -> None:
    tokens.insert(at, random.choice((" ", "\t", "\r\n", "\n\t")))


_CHANGES_OF_TEXT = (
    *(_insert, _cut, _repeat),
    *map(_with_tokens, (_replace, _replace, _replace, _exchange, _drop, _copy, _unquote, _blank)),
)


def changed_text(text: str, random: Random) -> str:
    """A text with one to three changes: of characters, of tokens, of values."""
    for _ in range(random.choice((1, 1, 2, 3))):
        text = changed_once(text, random)
    return text


def changed_once(text: str, random: Random) -> str:
    """A text with one change."""
    return random.choice(_CHANGES_OF_TEXT)(text, random)


# ------------------------------------------------------------------ changes of a line


def _to_bytes(text: str) -> bytes:
    # Half a pair becomes bytes that are no UTF-8.
    return text.encode("utf-8", "surrogatepass")


def _to_text(line: bytes) -> str:
    return line.decode("utf-8", "surrogateescape")


def changed_bytes(line: bytes, random: Random) -> bytes:
    """Some bytes with others in their place, or between them."""
    changed = bytearray(line)
    start, end = _span(line, random)
    odd = random.choice((*_ODD_BYTES, bytes([random.randrange(256)])))
    changed[start : random.choice((start, end))] = odd
    return bytes(changed)


def _flip(line: bytes, random: Random) -> bytes:
    changed = bytearray(line)
    if changed:
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def _change_line(line: bytes, random: Random) -> bytes:
    return changed_text(_to_text(line), random).encode("utf-8", "replace")


def _change_fields(line: bytes, random: Random) -> bytes:
    """Leaves out, replaces, repeats or borrows a field of the envelope."""
    fields = [(name, json.dumps(value)) for name, value in json.loads(line).items()]
    at = random.randrange(len(fields))
    name, value = fields[at]
    what = random.randrange(4)
    if what == 0:
        del fields[at]
    elif what == 1:
        fields[at] = (name, random.choice(ODD_VALUES))
    elif what == 2:
        fields.insert(_place(fields, random), (name, random.choice((value, *ODD_VALUES))))
    else:
        fields += [(key, json.dumps(it)) for key, it in json.loads(_any_line(random)).items()]
    return _to_bytes("{" + ", ".join(f'"{key}": {it}' for key, it in fields) + "}")


def _change_body(line: bytes, random: Random) -> bytes:
    """Changes the body within an envelope that is right."""
    envelope = json.loads(line)
    if "body" not in envelope:
        return _change_fields(line, random)
    envelope["body"] = changed_text(envelope["body"], random)
    return _to_bytes(json.dumps(envelope, ensure_ascii=random.choice((True, False))))


def _change_error(line: bytes, random: Random) -> bytes:
    """Puts an error beside or in place of the body."""
    envelope = json.loads(line)
    if random.choice((True, False)):
        envelope.pop("body", None)
    envelope["error_code"] = random.choice((0, 1, -1, 206, "206", 2**31, 1.5, True, None, [], ""))
    envelope["error_message"] = random.choice((None, "", "no", 7, {"a": [1]}, "\ud83d", "\x00"))
    return _to_bytes(json.dumps(envelope))


def _wrap_body(line: bytes, random: Random) -> bytes:
    """Gives the body as the dashboard does."""
    envelope = json.loads(line)
    data = envelope.get("body", "null")
    status = random.choice(("0", "0", "-1", '"0"', "null", "1.0", "9" * 12))
    message = random.choice(("null", '"no"', "7", "{}"))
    envelope["body"] = f'{{"status":{status},"data":{data},"errMsg":{message}}}'
    return _to_bytes(json.dumps(envelope))


_CHANGES_OF_LINES = (
    *(_change_body, _change_body, _change_body, _change_body, _change_fields, _change_fields),
    *(_change_line, changed_bytes, _flip, _change_error, _wrap_body),
)


def _any_line(random: Random) -> bytes:
    return random.choice(recorded_lines())


def changed_line(line: bytes, random: Random) -> bytes:
    """A line of a dump with a change."""
    return random.choice(_CHANGES_OF_LINES)(line, random)


@st.composite
def changed_lines(draw: st.DrawFn) -> bytes:
    """Recorded lines, each with a change."""
    random = draw(st.randoms(use_true_random=False))
    return changed_line(_any_line(random), random)


@st.composite
def changed_bodies(draw: st.DrawFn) -> str:
    """Recorded bodies, each with a few changes."""
    random = draw(st.randoms(use_true_random=False))
    return changed_text(random.choice(recorded_bodies()), random)


@st.composite
def changed_texts(draw: st.DrawFn, texts: Sequence[str]) -> str:
    """One of the texts, with a few changes."""
    random = draw(st.randoms(use_true_random=False))
    return changed_text(random.choice(texts), random)

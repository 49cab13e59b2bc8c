"""Values of the tables as text, times among them: for JSON, for CSV, for whoever reads.

Client ids, topics and groups are chosen by strangers. What they contain must command neither a
terminal, nor a spreadsheet, nor the direction in which a line is read.

A text for a person shows such characters as escapes (``visible``, ``visible_lines``). JSON always
escapes them in its way, and is exact (``json_text``). CSV for a program has them as they are.
"""

import json
import re
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from itertools import accumulate
from typing import Any, TextIO

#: Beginnings of a formula for a spreadsheet, the wide forms of East Asian keyboards among them: at
#: the beginning of a cell, after spaces, too; and after a character that separates cells or rows in
#: a country where the comma does not, for quotes are then no quotes.
_FORMULA = re.compile(
    r"(?:^|(?<=[;\t\r\n])(?![\t\r\n]))(?=[\s\0\ufeff\u200b-\u200f\u2028-\u202f\u2060-\u206f]*"
    r"[=+\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b])|^(?=[\t\r\n])"
)
#: A cell with one of these is quoted, for whichever character a reader takes for the separator.
_QUOTED = re.compile(r'[",;|]|[^\S ]')


def visible(text: str) -> str:
    r"""The text with control, direction and other unprintable characters as escapes.

    >>> visible("order\n\u202eevil")
    'order\\n\\u202eevil'
    """
    if text.isprintable():
        return text
    escaped = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return "".join(escaped)


def visible_lines(text: str) -> str:
    r"""The text with such characters as escapes, but for the line feeds between its lines.

    >>> print(visible_lines("one\r\ntwo\x1b[2J"))
    one\r
    two\x1b[2J
    """
    return "\n".join(map(visible, text.split("\n")))


def shortened(text: str, most: int = 500) -> str:
    r"""The text as it is ``visible``, of a long one the beginning.

    >>> shortened("order\n"), shortened("order", 3)
    ('order\\n', 'ord...')
    """
    shown = visible(text)
    return shown if len(shown) <= most else f"{shown[:most]}..."


def did_you_mean(near: Sequence[str]) -> str:
    """The hint after a name that is not there: those that come near, where there are any.

    >>> did_you_mean(["--date", "--dumps"]), did_you_mean([])
    (': did you mean --date or --dumps?', '')
    """
    return f": did you mean {' or '.join(near)}?" if near else ""


def display_width(text: str) -> int:
    """The number of columns of a terminal that a text takes: Chinese characters take two.

    >>> display_width("G_ORDER"), display_width("订单"), display_width("e\u0301")
    (7, 4, 1)
    """
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 - its tables are of use for wide texts alone

    return cell_len(text)


def padded(text: str, width: int) -> str:
    """The text with blanks after it, as many as fill so many columns of a terminal.

    >>> padded("订单", 6), padded("订单", 2)
    ('订单  ', '订单')
    """
    return text + " " * (width - display_width(text))


def cut(text: str, width: int) -> str:
    """The text in at most so many columns of a terminal; "..." replaces what is left out.

    >>> cut("broker-a", 8), cut("broker-a", 6), cut("订单消费者组", 8)
    ('broker-a', 'bro...', '订单...')
    """
    return text if display_width(text) <= width else f"{beginning(text, width - 3)}..."


def beginning(text: str, width: int) -> str:
    """The beginning of the text that fits into so many columns of a terminal.

    >>> beginning("broker-a", 6), beginning("订单消费者组", 5)
    ('broker', '订单')
    """
    return text[: sum(end <= width for end in accumulate(map(display_width, text)))]


#: Chinese has no blanks between its words: a line may end after its punctuation.
_ENDS = "\u3001\u3002\uff09\uff0c\uff1a\uff1b\uff01\uff1f"
#: Blanks; or what is never broken.
_PIECE = re.compile(f" +|[^ {_ENDS}]*[{_ENDS}]+|[^ {_ENDS}]+")


def folded(line: str, width: int) -> list[str]:
    """The line in lines of so many columns; those that follow are indented by four more.

    No word is broken, so that one that is longer stays longer.

    >>> folded("  who takes what", 10)
    ['  who', '      takes', '      what']
    >>> folded("没有心跳。请重启。", 12)
    ['没有心跳。', '    请重启。']
    """
    body = line.lstrip(" ")
    indent = line[: len(line) - len(body)]
    lines, current, gap = [], indent, ""
    for piece in _PIECE.findall(body):
        if piece[0] == " ":
            gap = piece
            continue
        if current != indent and display_width(current + gap + piece) > width:
            lines.append(current)
            current, gap = f"{indent}    ", ""
        current += gap + piece
        gap = ""
    return [*lines, current.rstrip()]


def shell_word(text: str) -> str:
    r"""The text as one word of a shell, which reads nothing in it; for sh, bash and zsh.

    What ``visible`` escapes is escaped as bash and zsh read it.

    >>> print(shell_word("G_ORDER"), shell_word("a'; rm -rf /"), shell_word("a\u202e'b"))
    G_ORDER 'a'"'"'; rm -rf /' $'a\u202e\'b'
    """
    if text.isprintable():
        return shlex.quote(text)
    return "$'{}'".format("".join(map(_shell_character, text)))


def _shell_character(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\U{code:08x}" if code > 0xFFFF else f"\\u{code:04x}"


def json_text(value: Any, indent: int | None = None) -> str:
    r"""The value as JSON; what ``visible`` escapes is escaped as JSON does it, and so is exact.

    >>> print(json_text({"group": "日本\u202e\x9b"}))
    {"group": "日本\u202e\u009b"}
    """
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    if text.isprintable():
        return text
    # Line feeds come from the indent alone: those of a text are escaped by then.
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def encodable(text: str, stream: TextIO) -> str:
    r"""The text with escapes for what a stream cannot write: ASCII has no bullet.

    >>> import io
    >>> print(encodable("• 1", io.TextIOWrapper(io.BytesIO(), "ascii")))
    \u2022 1
    """
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def in_utc(time: datetime) -> datetime:
    """The time in UTC; one without a zone is in UTC already."""
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)


def iso(time: datetime, timespec: str = "milliseconds") -> str:
    """The time as ISO 8601 in UTC.

    >>> iso(datetime(2026, 11, 20, 2, 4, 7)), iso(datetime(2026, 11, 20, 2, 4, 7), "seconds")
    ('2026-11-20T02:04:07.000Z', '2026-11-20T02:04:07Z')
    """
    return in_utc(time).isoformat(timespec=timespec).replace("+00:00", "Z")


def day_and_time(time: datetime) -> str:
    """The time as a person reads it.

    >>> day_and_time(datetime(2026, 11, 20, 2, 4, 7))
    '2026-11-20 02:04:07'
    """
    from rebalance_core.texts import Text  # noqa: PLC0415 - brings NumPy, which usage needs not

    return Text("{at:day}", at=time)


def ends_at(begins: datetime, ends: datetime, zone: tzinfo) -> str:
    """The end of a time; with its date only where that is another in this zone.

    >>> begin = datetime(2026, 11, 20, 2, 4, 7)
    >>> ends_at(begin, begin.replace(hour=3), UTC), ends_at(begin, begin.replace(day=21), UTC)
    ('03:04:07', '2026-11-21 02:04:07')
    """
    from rebalance_core.texts import Text  # noqa: PLC0415 - see day_and_time

    days = {in_utc(time).astimezone(zone).date() for time in (begins, ends)}
    return Text("{at:clock}", at=ends) if len(days) == 1 else day_and_time(ends)


def share_in_words(share: float | None) -> str:
    """The share of a time in which something was there, in words; empty where it was all of it.

    None: a run that did not publish it, in which nothing had a gap.

    >>> share_in_words(0.88), share_in_words(0.999), share_in_words(1.0), share_in_words(None)
    ('88 % of the time', '99 % of the time', '', '')
    """
    from rebalance_core.texts import Text  # noqa: PLC0415 - see day_and_time

    if share is None or share >= 1:
        return ""
    return Text("{percent} % of the time", percent=min(round(100 * share), 99))


def as_plain(value: Any) -> Any:
    """The value as JSON has it: times as ISO 8601 in UTC, bytes in hexadecimal."""
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {key: as_plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [as_plain(each) for each in value]
    return value


def csv_line(values: Sequence[Any]) -> str:
    """One line of CSV; lists and structs as JSON.

    An apostrophe is put before what a spreadsheet would take for a formula.

    >>> csv_line(["=1+1", 2, ["a"], "b; +c", None])
    '\\'=1+1,2,"[""a""]","b;\\' +c",'
    """
    return ",".join([_csv_cell(as_plain(value)) for value in values]) or '""'


def _csv_cell(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str | list | dict):
        return str(value)
    text = _FORMULA.sub("'", value if isinstance(value, str) else json_text(value))
    return '"{}"'.format(text.replace('"', '""')) if _QUOTED.search(text) else text

"""The blocks of code of a Markdown page, as they stand there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

_BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+?) -->\n)?"
    r"^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
#: What a command of a shell ends with.
_END = "();<>|&\n"


@dataclass(frozen=True)
class Block:
    """One block; ``not_run`` is the reason that the page gives, if any."""

    where: str
    language: str
    text: str
    not_run: str | None
    #: The block of text right after it: what it prints, with ... for anything.
    prints: str | None

    @property
    def exit_code(self) -> int:
        """What its last line says, in a comment."""
        said = re.search(r"# exit code (\d+)$", self.text.rstrip())
        return int(said[1]) if said else 0

    def commands(self) -> Iterator[list[str]]:
        """The commands of a shell: each as its words, without variables before it.

        >>> block = Block("here", "sh", "A=1 ls -l \\\\\\n  'a b' | wc  # count\\n", None, None)
        >>> list(block.commands())
        [['ls', '-l', 'a b'], ['wc']]
        """
        text = re.sub(r"(^|\s)#.*", "", self.text.replace("\\\n", " "))
        lexer = shlex.shlex(text, posix=True, punctuation_chars=_END)
        lexer.whitespace, lexer.commenters, lexer.whitespace_split = " \t", "", True
        words: list[str] = []
        for word in [*lexer, "\n"]:
            if set(word) <= set(_END):
                if words:
                    yield words
                words = []
            elif words or not re.match(r"\w+=", word):
                words.append(word)


def blocks(page: Path) -> list[Block]:
    """All blocks of a page, from top to bottom."""
    text = page.read_text(encoding="utf-8")
    found: list[Block] = []
    matches = list(_BLOCK.finditer(text))
    for number, match in enumerate(matches):
        after = matches[number + 1] if number + 1 < len(matches) else None
        is_output = after is not None and after["language"] == "text"
        follows = is_output and not text[match.end() : after.start()].strip()  # type: ignore[union-attr]
        line = text.count("\n", 0, match.start("language")) + 1
        found.append(
            Block(
                f"{page.relative_to(ROOT)}:{line}",
                match["language"],
                match["text"],
                match["reason"],
                after["text"] if follows and after is not None else None,
            )
        )
    return found


def shows(expected: str, printed: str) -> bool:
    """Whether the printed text has the expected lines; ... is anything, spaces are one.

    >>> shows("a ... c\\n...\\nz", "first\\na b c\\nd\\ne\\nz\\n"), shows("a\\nc", "a\\nb\\nc")
    (True, False)
    """
    texts = [
        "\n".join(" ".join(line.split()) for line in each.splitlines())
        for each in (expected, printed)
    ]
    pattern = ".*?".join(re.escape(part) for part in texts[0].strip().split("..."))
    return re.search(pattern, texts[1], re.DOTALL) is not None

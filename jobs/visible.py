"""What strangers chose, as it may be shown in a terminal."""

from __future__ import annotations


def visible(text: str) -> str:
    """The text with control characters as escapes: an id must not command the terminal."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )

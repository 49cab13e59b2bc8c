"""Every test here sees to it that no text lacks a name."""

from tests.support.sentences import no_empty_values

__all__ = ["no_empty_values"]

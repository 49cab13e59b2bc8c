"""Templates -> the lines of a text: ``templates/`` has the layout, its values are what is so.

For terminals and notebooks: plain text, no colour needed. A template prints ids and names that
strangers chose, so each value is shown by ``visible`` as it leaves here, in the language of the
reader. ``t`` in a template makes a ``Text``.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from jinja2 import Environment, pass_context
from jinja2.runtime import Context

from rebalance_core.descriptions import queue_ranges
from rebalance_core.division import shown_id
from rebalance_core.english import (
    agreeing,
    count,
    list_of,
    named_broker,
    names,
)
from rebalance_core.texts import Text

from ..config.masking import Masking
from ..declared.instants import Instant
from ..languages.language import ENGLISH, Language
from ..texts.shown import folded, visible
from ..texts.templates import templates_of

#: Wide enough for a terminal, narrow enough for a ticket.
WIDTH = 100


class Reader(NamedTuple):
    """The reader of a text: what is masked for them, their language, their number of columns."""

    masking: Masking
    language: Language = ENGLISH
    width: int = WIDTH

    def shown(self, value: Any) -> str:
        """A value as the reader sees it.

        Secrets are masked first: where an id ends is seen by English marks and blanks, not by
        Chinese.
        """
        return visible(self.language.of(self.masking.mask_all(value)))

    def lines(self, template: str, **values: Any) -> Iterator[str]:
        """The lines of a template with these values, long ones folded."""
        text = _environment().get_template(template).render(values, reader=self)
        for line in text.rstrip("\n").split("\n"):
            yield from folded(line, self.width)


def clock(time: Instant | datetime) -> Text:
    """The time as ISO 8601."""
    return Text("{at:iso}", at=time)


#: Functions that templates call by name.
_FUNCTIONS = (*(agreeing, clock, count, list_of, named_broker, names, queue_ranges, shown_id),)


@cache
def _environment() -> Environment:
    environment = templates_of(__package__, _shown, _FUNCTIONS, is_html=False)
    environment.globals |= {"copies_of": lambda ids: list(Counter(ids).items()), "t": Text}
    return environment


@pass_context
def _shown(context: Context, value: Any) -> str:
    reader: Reader = context["reader"]
    return reader.shown(value)

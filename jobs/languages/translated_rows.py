"""The texts in a row of a report table, ready for another language."""

from collections.abc import Mapping
from typing import Any

from rebalance_core.texts import decode

#: The column with what the texts of its row are made of, as JSON.
TEXTS = "texts"


def with_texts(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row, its texts as ``Text`` as far as its column ``texts`` has what they are made of.

    A text without parts, or whose parts cannot be read, stays English. The column itself stays as
    it is.

    >>> row = {"remedy": "restart a", "texts": '{"remedy":["restart {client}",{"client":"a"}]}'}
    >>> with_texts(row)["remedy"].template
    'restart {client}'
    """
    english = {name: value for name, value in row.items() if isinstance(value, str)}
    return {**row, **decode(row[TEXTS], english)}

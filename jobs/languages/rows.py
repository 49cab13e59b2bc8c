"""The texts in a row of a report table, ready for another language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rebalance_core.texts import decode

#: The column with what the texts of its row are made of, as JSON.
TEXTS = "texts"


def with_texts(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row, its texts as ``Text`` as far as its column ``texts`` has what they are made of.

    A row without that column, as of a run of 0.1.0, stays English, and so does a text whose parts
    cannot be read. The column itself stays as it is.

    >>> row = {"remedy": "restart a", "texts": '{"remedy":["restart {client}",{"client":"a"}]}'}
    >>> with_texts(row)["remedy"].template
    'restart {client}'
    >>> with_texts({"remedy": "restart a"})
    {'remedy': 'restart a'}
    """
    english = {name: value for name, value in row.items() if isinstance(value, str)}
    return {**row, **decode(row.get(TEXTS), english)}

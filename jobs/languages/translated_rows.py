"""The texts in a row of a report table, ready for another language."""

from collections.abc import Iterator, Mapping
from typing import Any

from rebalance_core.texts import decode, encode

#: The column with what the texts of its row are made of, as JSON.
TEXTS = "texts"


def _named(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The values of a row by their names, also those in its lists of structs."""
    for name, value in row.items():
        yield name, value
        if isinstance(value, list) and value and isinstance(value[0], dict):
            for number, struct in enumerate(value):
                yield from ((f"{name}.{number}.{key}", each) for key, each in struct.items())


def texts_of(row: Mapping[str, Any]) -> str | None:
    """The value of the column ``texts``; None: the row has no text of ours."""
    return encode(dict(_named(row)))


def with_texts(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row, its texts as ``Text`` as far as its column ``texts`` has what they are made of.

    A text without parts, or whose parts cannot be read, stays English. The column itself stays as
    it is. In a list of structs the texts are named by their place.

    >>> row = {"remedy": "restart a", "texts": '{"remedy":["restart {client}",{"client":"a"}]}'}
    >>> with_texts(row)["remedy"].template
    'restart {client}'
    >>> found = with_texts({"faults": [{"evidence": "it is gone"}],
    ...     "texts": '{"faults.0.evidence":["it is gone"]}'})
    >>> found["faults"][0]["evidence"].template
    'it is gone'
    """
    english = {name: value for name, value in _named(row) if isinstance(value, str)}
    texts = decode(row[TEXTS], english)
    found = {**row, **{name: texts[name] for name in texts if name in row}}
    for place in texts.keys() - found.keys():
        name, number, key = place.split(".")
        if found[name] is row[name]:
            found[name] = [dict(struct) for struct in row[name]]
        found[name][int(number)][key] = texts[place]
    return found

"""Secrets in client ids, and how they are shown: ``(secret 3f2a9c)`` in their place.

Some clients write the key that they sign with into their id (spring-cloud-alibaba before
2021.0.5.0, rocketmq-spring before 2.2.0), and whoever sets an instance name by hand may do so too.
The judgement works with the true ids, for their order decides who takes what. What leaves it is
masked: report tables, texts, pages, messages. The same secret is the same short hash everywhere, so
that an id stays the same id. Snapshot tables keep the true ids, for the next audit compares them.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rebalance_core.texts import Text

from ..texts.secret_patterns import Secrets


@dataclass(frozen=True)
class Masking(Secrets):
    """Secrets in all kinds of values: in texts, in what holds them, in columns of tables."""

    def mask_all(self, value: Any) -> Any:
        """The value with every text in it masked, whatever lists, mappings and tuples it is in."""
        if isinstance(value, Text):
            return self._mask_text(value)
        if isinstance(value, str):
            return self.mask(value)
        if isinstance(value, bytes):
            text = value.decode("utf-8", "surrogateescape")
            return self.mask(text).encode("utf-8", "surrogateescape")
        if isinstance(value, dict):
            return {key: self.mask_all(part) for key, part in value.items()}
        if isinstance(value, list | tuple):
            parts = map(self.mask_all, value)
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        return value

    def _mask_text(self, text: Text) -> str:
        """The text with the values in it masked.

        A secret that no value shows by itself is seen in the English text alone: what that is made
        of would give it away, so the masked English is all that is left.
        """
        masked = text.with_values(self.mask)
        if self.mask(masked) != masked:
            return self.mask(str(text))
        return masked

    def mask_column(self, column: Any) -> Any:
        """A column with every text, and all bytes, in it masked; each distinct one is looked at
        once.
        """
        type_, nulls = column.type, column.is_null() if column.null_count else None
        if pa.types.is_list(type_):
            values = self.mask_column(column.values)
            return pa.ListArray.from_arrays(column.offsets, values, type=type_, mask=nulls)
        if pa.types.is_struct(type_):
            fields = [self.mask_column(column.field(n)) for n in range(type_.num_fields)]
            return pa.StructArray.from_arrays(fields, fields=list(type_), mask=nulls)
        if type_ not in (pa.string(), pa.binary()):
            return column
        encoded: Any = column.dictionary_encode()
        texts = encoded.dictionary.to_pylist()
        masked = self.mask_all(texts)
        if masked == texts:
            return column
        return pa.DictionaryArray.from_arrays(
            encoded.indices, pa.array(masked, encoded.dictionary.type)
        ).dictionary_decode()

    def with_secret(self, client_ids: Iterable[str]) -> list[str]:
        """The client ids that hold a secret."""
        return [client_id for client_id in client_ids if self.mask(client_id) != client_id]


def is_masked(client_id: str, masked: str) -> bool:
    """True if ``masked`` may be how the client id is shown, whatever the key of the hash.

    >>> is_masked("10.0.0.1@ak|12345678|T|1", "10.0.0.1@ak|(secret ef797c)|T|1")
    True
    """
    parts = _SHOWN_SECRET.split(masked)
    return len(parts) > 1 and bool(
        re.fullmatch(".+".join(map(re.escape, parts)), client_id, re.DOTALL)
    )


def shows_secret(client_id: str) -> bool:
    """True if this is how an id with a secret is shown."""
    return _SHOWN_SECRET.search(client_id) is not None


_SHOWN_SECRET = re.compile(r"\(secret [0-9a-f]{6}\)")

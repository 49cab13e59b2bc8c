"""A bounded cache of what was made before.

Most polls bring what the poll before brought: within a slice equal bodies give the same object.
"""

from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

#: The bytes that a memory may hold, and those of an entry beside what its maker counts.
MEMORY_BYTES = 32 << 20
ENTRY_BYTES = 500


class Cache(dict[Key, Value]):
    """A dict that forgets all of its entries when it is full.

    All, and not the oldest: what repeats itself is soon there again, and no entry costs more than
    in a plain dict.
    """

    def __init__(self, most_bytes: int = MEMORY_BYTES) -> None:
        super().__init__()
        self._most_bytes = most_bytes
        self._bytes = 0

    def remember(self, key: Key, value: Value, size: int) -> Value:
        """Keeps the value, of about ``size`` bytes with its key, and gives it back."""
        self._bytes += size + ENTRY_BYTES
        if self._bytes > self._most_bytes:
            self.clear()
            self._bytes = size + ENTRY_BYTES
        self[key] = value
        return value

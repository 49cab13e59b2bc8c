"""Small files of published tables on other machines: each is read once in a process.

What is here was compared with its manifest. A name has the id of its run in it, so that no other
bytes are ever published under it.
"""

import threading
from collections import OrderedDict

import pyarrow as pa

#: A table of up to so many bytes is read whole; of a larger one what is asked for, where it lies.
MOST_OF_A_TABLE = 8 << 20
#: The most bytes that are held in all; those that nobody asked for longest go first.
_MOST_HELD = 64 << 20

_HELD: OrderedDict[str, pa.Buffer] = OrderedDict()
_LOCK = threading.Lock()


def find(uri: str) -> pa.Buffer | None:
    """The bytes of a file, if they are here."""
    with _LOCK:
        if uri in _HELD:
            _HELD.move_to_end(uri)
        return _HELD.get(uri)


def add(uri: str, data: bytes) -> pa.Buffer:
    """Keeps the bytes of a file that were compared with its manifest."""
    with _LOCK:
        _HELD[uri] = pa.py_buffer(data)
        while sum(buffer.size for buffer in _HELD.values()) > _MOST_HELD:
            _HELD.popitem(last=False)
        return pa.py_buffer(data)


def clear() -> None:
    """Forgets all."""
    with _LOCK:
        _HELD.clear()

"""Spark's daemon of Python workers, with all that a worker of the audit imports.

A worker is a fork of the daemon. What the daemon has imported costs no worker any time, and lies in
memory once: six workers import for longer than they judge a hundred groups.
"""

import gc
import sys
from importlib import import_module
from importlib.machinery import PathFinder

_PACKAGE = __package__.rpartition(".")[0]
_IMPORTED = (
    *("pandas", "pyarrow.dataset", "pyspark.worker"),
    *(f"{_PACKAGE}.{each}" for each in ("engines.batches", "fold.slices", "pipeline.groups")),
)


def _leave_archives_out() -> None:
    """Lets PySpark be imported from where it is installed, not from Spark's archives of it.

    Each task reads the directory of an archive again, once for every package in it that was
    imported (``importlib.invalidate_caches`` in pyspark/worker_util.py).
    """
    installed = [each for each in sys.path if not each.endswith(".zip")]
    if PathFinder.find_spec("pyspark", installed):
        sys.path[:] = installed
        sys.path_importer_cache.clear()


if __name__ == "__main__":
    _leave_archives_out()
    for each in _IMPORTED:
        import_module(each)
    # Else the first look for cycles in each worker would copy all of it.
    gc.freeze()
    import_module("pyspark.daemon").manager()

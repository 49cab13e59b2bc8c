"""Spark's daemon of Python workers, with all that a worker of the audit imports.

A worker is a fork of the daemon. What the daemon has imported costs no worker any time, and lies in
memory once: six workers import for longer than they judge a hundred groups.
"""

import gc
import sys
from importlib.machinery import PathFinder


def _leave_archives_out() -> None:
    """Lets PySpark be imported from where it is installed, not from Spark's archives of it.

    Each task reads the directory of an archive again, once for every package in it that was
    imported (``importlib.invalidate_caches`` in pyspark/worker_util.py).
    """
    installed = [place for place in sys.path if not place.endswith(".zip")]
    if PathFinder.find_spec("pyspark", installed):
        sys.path[:] = installed
        sys.path_importer_cache.clear()


if __name__ == "__main__":
    _leave_archives_out()
    import pandas  # noqa: F401
    import pyarrow.dataset  # noqa: F401
    import pyspark.worker  # noqa: F401
    from pyspark.daemon import manager

    from ..engines import batches  # noqa: F401
    from ..fold import slices  # noqa: F401
    from ..pipeline import group_audit  # noqa: F401

    # Else the first look for cycles in each worker would copy all of it.
    gc.freeze()
    manager()

"""Spark's daemon of Python workers, with all that a worker of the audit imports.

A worker is a fork of the daemon. What the daemon has imported costs no worker any time, and lies in
memory once: six workers import for longer than they judge a hundred groups.
"""

import gc

import pandas  # noqa: F401
import pyarrow.dataset  # noqa: F401
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

from ..engines import batches  # noqa: F401
from ..fold import slices  # noqa: F401
from ..pipeline import groups  # noqa: F401

if __name__ == "__main__":
    # Else the first look for cycles in each worker would copy all of it.
    gc.freeze()
    manager()

"""Whether Spark and its Python packages are there and fit, asked before anything runs.

The ranges are those of pyproject.toml, which holds for whoever installs with pip. A cluster, an
image or a notebook may bring others.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from .errors import SparkError
from .failures import sentence_of_spark

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

#: From which version on, and before which one, a package runs the jobs.
SPARK_PACKAGE = "pyspark"
RANGES = {SPARK_PACKAGE: ("3.5", "5"), "pandas": ("2.2", "4")}

#: What every worker needs.
_OF_A_WORKER = ("numpy", "pandas", "pyarrow", __package__, "rebalance_core")

_WHAT_TO_INSTALL = "pip install 'rocketmq-rebalance-audit[spark]'"


def check_packages() -> None:
    """SparkError where this Python has no Spark or no pandas, or one that does not fit."""
    for package, (oldest, too_new) in RANGES.items():
        try:
            version = str(import_module(package).__version__)
        except ModuleNotFoundError as error:
            if error.name != package:
                raise
            raise SparkError(
                f"Spark needs the Python package {package}, which {sys.executable} does not have: "
                f"{_WHAT_TO_INSTALL}; small inputs need no Spark: --engine local"
            ) from error
        if not _numbers(oldest) <= _numbers(version) < _numbers(too_new):
            raise SparkError(
                f"expected {package} {oldest} or later and before {too_new}, came {version} "
                f"({sys.executable}): {_WHAT_TO_INSTALL} brings one that fits"
            )


def _numbers(version: str) -> tuple[int, ...]:
    """The first two numbers of a version.

    >>> _numbers("4.1.0.dev1"), _numbers("5")
    ((4, 1), (5, 0))
    """
    numbers = [int(part) for part in version.split(".")[:2] if part.isdecimal()]
    return (*numbers, 0, 0)[:2]


@contextmanager
def fitting_workers(spark: SparkSession) -> Iterator[None]:
    """Within the block, what is made for Spark's workers runs in a Python that fits this one.

    Workers take the Python that PYSPARK_PYTHON names when the session starts, else the first
    ``python3`` on their PATH. In a notebook whose environment is not activated that is another one.
    Workers on this machine get this Python then, for the block. A Python that was named, or that is
    on another machine, is asked with one small task. Raises SparkError where it does not fit.
    """
    from pyspark.sql.utils import is_remote  # noqa: PLC0415 - where there is no Spark, nobody asks

    check_packages()
    if is_remote():  # Spark Connect: the server chooses the Python, and checks its version.
        yield
        return
    context = spark.sparkContext
    is_here = str(context.master).startswith("local")
    before = context.pythonExec
    if is_here and before == _DEFAULT:
        context.pythonExec = sys.executable
    elif not is_here or before != sys.executable:
        _ask_a_worker(context)
    try:
        yield
    finally:
        context.pythonExec = before


#: What Spark takes where PYSPARK_PYTHON is not set.
_DEFAULT = "python3"


def _ask_a_worker(context: SparkContext) -> None:
    from py4j.protocol import Py4JError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        context.parallelize([0], 1).foreach(_import_all)
    except (Py4JError, PySparkException) as error:
        raise SparkError(
            f"a worker of Spark cannot run the audit with {context.pythonExec}: "
            f"{sentence_of_spark(str(error))}"
        ) from error


def _import_all(_: int) -> None:
    for name in _OF_A_WORKER:
        import_module(name)

"""Libraries that come with an extra of the package, and may not be there."""

from importlib import import_module
from types import ModuleType

from ..errors import AuditError


def library(package: str, extra: str) -> ModuleType:
    """The library; AuditError where it is not installed."""
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise AuditError(
            f"the Python package {package} is not installed: "
            f"pip install 'rocketmq-rebalance-audit[{extra}]'"
        ) from error

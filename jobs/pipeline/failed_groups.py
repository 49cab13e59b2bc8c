"""Groups on which the audit failed are named with their stacks; where all fail, so does the run."""

import logging
from collections.abc import Collection, Iterable, Iterator

from rebalance_core.english import count

from ..engines.pieces import FOR_ALL, Piece, pack_value, unpack_value
from ..judge.observe.evaluation import Failure
from ..texts.failures import keep_stack
from ..texts.shown import visible

_LOGGER = logging.getLogger(__name__)
#: The piece with the failures of a shard.
_FAILED = "failed groups"
#: The most groups that have a line each.
_MOST_REPORTED = 5


class StackError(Exception):
    """The stack of an error of a worker, as a cause has it."""


class AllGroupsFailedError(Exception):
    """The audit failed on every group: a defect of it, and of no input."""


def pack_failures(failures: Iterable[Failure]) -> Iterator[Piece]:
    """The piece of a shard; none where nothing failed."""
    if failed := list(failures):
        yield pack_value(FOR_ALL, _FAILED, failed)


def without_failures(
    pieces: Iterable[Piece], groups: Collection[tuple[str, str]]
) -> Iterator[Piece]:
    """The pieces of the report tables; at last the failures are named.

    Raises AllGroupsFailedError where no group is left, of all that brokers were asked about: then
    nothing is published.
    """
    failures: list[Failure] = []
    for piece in pieces:
        if piece.kind == _FAILED:
            failures += unpack_value(piece.data)
        else:
            yield piece
    failures.sort(reverse=True)
    if failures and {failure[:2] for failure in failures}.issuperset(groups):
        of_one = failures[0]
        raise AllGroupsFailedError(
            f"the audit failed on every group, as on {visible(of_one.consumer_group)}: "
            f"{of_one.sentence}"
        ) from StackError(of_one.stack)
    for failure in failures[:_MOST_REPORTED]:
        # Without a stack it is the input's: no defect to report.
        _LOGGER.warning(
            "group %s of cluster %s was not audited: %s%s",
            *map(visible, (failure.consumer_group, failure.cluster, failure.sentence)),
            failure.stack and f"; {keep_stack(failure.stack)}",
            exc_info=StackError(failure.stack) if failure.stack else None,
        )
    if more := len(failures[_MOST_REPORTED:]):
        _LOGGER.warning("%s more failed likewise", count(more, "group"))

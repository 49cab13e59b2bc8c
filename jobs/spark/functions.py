"""The pandas UDFs around the core, ``rebalance_core``: the audit's, and those for columns."""

from collections.abc import Callable, Iterator
from itertools import chain, groupby
from typing import Any, TypeAlias

import pandas as pd
from pyspark.sql import Column
from pyspark.sql.pandas.functions import pandas_udf

from ..engines.engine import Work
from ..pieces import pack_value, unpack_value
from .workers import in_worker

#: A pandas UDF: from columns, or their names, to a column.
Udf: TypeAlias = Callable[..., Column]
#: Its types know no UDF over an iterator.
_pandas_udf: Any = pandas_udf


def recompute_allocations(work: Work) -> Udf:
    """The UDF of the audit. ``question``: a situation, packed, with the lists that it names.

    The core computes who takes which queue. Questions of a group that follow each other are
    answered in parts: the first row of a part has the answer, packed, the others have null. So has
    a row without a question.
    """

    def group(question: Any) -> tuple[str, str] | None:
        return None if question is None else work.about(question)[:2]

    def answers(rows: Iterator[bytes | None]) -> Iterator[pd.Series]:
        questions = (None if row is None else unpack_value(row) for row in rows)
        for of_group, asked in groupby(questions, group):
            if of_group is None:
                yield pd.Series([None for _ in asked], dtype=object)
                continue
            for some in work.at_once(asked):
                answer = pack_value(0, "", work.answer(some)).data
                yield pd.Series([answer, *[None] * (len(some) - 1)], dtype=object)

    # Spark shows the name in plans, and takes the kind of the UDF from the hints.
    def recompute_allocations(question: Iterator[pd.Series]) -> Iterator[pd.Series]:
        return in_worker(answers(chain.from_iterable(question)))

    udf: Udf = _pandas_udf(recompute_allocations, "binary")
    return udf

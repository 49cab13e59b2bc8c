"""Rows that break the contract of their table: what the run lacks for them, and when it is no run.

A row is named in the quarantine where it was read (``fold.checked_rows``). An id whose content did
not come is found here, when all tables were read: the polls that name it are not evidence.
"""

from collections.abc import Iterator

import pyarrow as pa

from rebalance_core.english import list_of
from rebalance_core.grouping import grouped
from rebalance_core.texts import Text

from ..errors import ContractError
from ..fold.checked_rows import RefusedRows
from ..fold.kernel import Cutting, Facts
from ..schemas import MEMBER_LISTS, QUARANTINE, ROUTE_CONTENTS
from ..texts.shown import json_text, visible
from ..verdict.gaps import ROWS_LOST, Gap

_CONTENTS = {"list_id": MEMBER_LISTS.name, "route_id": ROUTE_CONTENTS.name}
#: The most columns, groups and topics that are named.
_MOST_NAMED = 3


def without_content(facts: Facts, cutting: Cutting) -> pa.Table:
    """A row of the quarantine for each id whose content did not come, and so many at most as of a
    file.

    They are counted in the facts.
    """
    rows = []
    found = facts.without_content(list_ids=cutting.list_ids)
    for table, of_table in grouped((each[0], each[1:]) for each in found).items():
        for column, subject, id_ in of_table:
            expected = f"{column}: expected an id that table {_CONTENTS[column]} has"
            reason = f"{expected}, came {'null' if id_ is None else repr(id_)}"
            facts.lost[table].add(RefusedRows(1, {column: reason}, {subject}))
            row = {"file": table, "line_number": 0, "reason": f"table {table}: {reason}"}
            line = {"cluster": subject[0], "of": subject[1], column: id_}
            rows.append(row | {"line": json_text(line)})
    return pa.Table.from_pylist(rows[: cutting.quarantined_lines], schema=QUARANTINE.schema)


def check_lost(facts: Facts) -> None:
    """ContractError where most rows of a table break its contract."""
    broken = [
        f"table {name}: {lost.rows:,} of {facts.rows[name]:,} rows break its contract: "
        + "; ".join(lost.reasons[column] for column in sorted(lost.reasons))
        for name, lost in sorted(facts.lost.items())
        if 2 * lost.rows > facts.rows[name]
    ]
    if broken:
        hint = (
            "nothing was published: mend what writes the tables; docs/data_dictionary.md has what "
            "each column must hold"
        )
        raise ContractError("\n  ".join([*broken, hint]))


def lost_rows(facts: Facts) -> Iterator[Gap]:
    """A gap for each table of which rows were refused."""
    for name, lost in sorted(facts.lost.items()):
        whose = sorted(visible("/".join(map(str, subject))) for subject in lost.subjects)
        text = Text(
            "table {table}: {number:,} of {rows:,} rows break its contract and were left out, "
            "for example {example} (of {whose}); the table quarantine lists them",
            table=name,
            number=lost.rows,
            rows=facts.rows[name],
            example=min(lost.reasons.values()),
            whose=list_of(whose, _MOST_NAMED),
        )
        yield Gap(ROWS_LOST, text)

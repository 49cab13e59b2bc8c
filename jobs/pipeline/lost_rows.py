"""Rows that break the contract of their table: what the run lacks for them, and when it is no run.

A row is named in the quarantine where it was read (``fold.checked_rows``). An id whose content did
not come is found here, when all tables were read: the polls that name it are not evidence.
"""

from collections import Counter
from collections.abc import Iterator

import pyarrow as pa

from rebalance_core.english import list_of
from rebalance_core.grouping import grouped
from rebalance_core.texts import Text

from ..errors import ContractError
from ..fold.checked_rows import RefusedRows
from ..fold.kernel import Cutting
from ..fold.slice_facts import Facts
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
            of_cluster = Counter({subject[0]: 1})
            facts.lost[table].add(RefusedRows(of_cluster, {column: reason}, {subject}))
            row = {"file": table, "line_number": 0, "reason": f"table {table}: {reason}"}
            line = {"cluster": subject[0], "of": subject[1], column: id_}
            rows.append(row | {"line": json_text(line)})
    return pa.Table.from_pylist(rows[: cutting.quarantined_lines], schema=QUARANTINE.schema)


def lost_clusters(facts: Facts) -> dict[str, list[str]]:
    """The clusters of which most rows of a table break its contract, with these tables: what is
    left of such a cluster is not judged. Rows that name no cluster may be of any.

    ContractError where no cluster is left.
    """
    clusters = {cluster for _, cluster in facts.rows if cluster} or {""}
    names = sorted(facts.lost)
    found = {
        cluster: tables
        for cluster in sorted(clusters)
        if (tables := [name for name in names if _is_lost(facts, name, cluster)])
    }
    if clusters == found.keys():
        broken = [
            f"table {name}: {lost.rows.total():,} of {_rows(facts, name):,} rows break its "
            "contract: " + "; ".join(lost.reasons[column] for column in sorted(lost.reasons))
            for name, lost in sorted(facts.lost.items())
            if any(name in tables for tables in found.values())
        ]
        hint = (
            "nothing was published: mend what writes the tables; docs/data_dictionary.md has what "
            "each column must hold"
        )
        raise ContractError("\n  ".join([*broken, hint]))
    return found


def _is_lost(facts: Facts, table: str, cluster: str) -> bool:
    lost = facts.lost[table].rows
    return 2 * lost[cluster] > facts.rows[table, cluster] or 2 * lost[""] > _rows(facts, table)


def _rows(facts: Facts, table: str) -> int:
    return sum(rows for (name, _), rows in facts.rows.items() if name == table)


def lost_rows(facts: Facts) -> Iterator[Gap]:
    """A gap for each table of a cluster that is lost for it, and for each other table of which rows
    were refused.
    """
    lost_tables = lost_clusters(facts)
    for cluster, tables in lost_tables.items():
        for name in tables:
            text = Text(
                "cluster {cluster} was not audited: {number:,} of its {rows:,} rows in table "
                "{table} break the contract, for example {example}; the table quarantine lists "
                "them",
                cluster=cluster,
                number=facts.lost[name].rows[cluster],
                rows=facts.rows[name, cluster],
                table=name,
                example=min(facts.lost[name].reasons.values()),
            )
            yield Gap(ROWS_LOST, text)
    for name, lost in sorted(facts.lost.items()):
        if all(cluster in lost_tables for cluster, *_ in lost.subjects):
            continue
        whose = sorted(visible("/".join(map(str, subject))) for subject in lost.subjects)
        text = Text(
            "table {table}: {number:,} of {rows:,} rows break its contract and were left out, "
            "for example {example} (of {whose}); the table quarantine lists them",
            table=name,
            number=lost.rows.total(),
            rows=_rows(facts, name),
            example=min(lost.reasons.values()),
            whose=list_of(whose, _MOST_NAMED),
        )
        yield Gap(ROWS_LOST, text)

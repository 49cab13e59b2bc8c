"""A moment, published tables or the rules -> the judgement of it: see ``reports/judged.py``.

What a published run has of the topic leads. Where there is no such run, the same rules judged the
group for this answer, and their rows are read as those of a run are. The problem of a moment is
made of the rows that were there then, as that of the night is made of all.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from ..config.masking import Masking
from ..declared.instants import to_datetime
from ..declared.kinds import GRADED_TABLES
from ..judge.arrow_tables import Row, to_table
from ..judge.moment import Moment
from ..reports.judged import Judged
from ..reports.problems import find_problems
from ..reports.tables import PLACE, TABLES, Place, Tables
from ..schemas import GROUP_HEALTH

#: The tables that show what was judged.
_READ = (*GRADED_TABLES, GROUP_HEALTH.name)


def judged_of(moment: Moment, published: Tables | None) -> Judged:
    """The judgement of a moment: of the published run, else of the rules for this answer."""
    time = to_datetime(moment.snapshot_time)
    names = (moment.cluster, moment.state.consumer_group, moment.state.topic)
    place = Place(*moment.masking.mask_all(names))
    found = None if published is None else _judged_at(published, place, time)
    if found is None:
        found = _judged_at(_tables_of(moment.judged, moment.masking), place, time)
    return found or Judged()


def _tables_of(rows: Mapping[str, Iterable[Row]], masking: Masking) -> Tables:
    """The rows that the rules made of a group, as the tables of a run."""
    made = {
        name: to_table(TABLES[name], [masking.mask_all(row) for row in rows[name]])
        for name in _READ
    }
    return _as_tables(made)


def _judged_at(tables: Tables, place: Place, time: datetime) -> Judged | None:
    """The judgement that these tables have of a place; None: they do not have the place."""
    at_time, at_others = dict[str, pa.Table](), dict[str, pa.Table]()
    for name in _READ:
        rows = tables.read(name, TABLES[name].schema.names, {place})
        for column, value in zip(PLACE, place, strict=True):
            rows = rows.filter(pc.equal(rows[column], pa.scalar(value)))
        if name == GROUP_HEALTH.name:
            at_time[name] = at_others[name] = rows
            continue
        moment = pa.scalar(time, rows.schema.field("first_seen").type)
        began = pc.less_equal(rows["first_seen"], moment)
        is_then = pc.and_(began, pc.greater_equal(rows["last_seen"], moment))
        at_time[name], at_others[name] = rows.filter(is_then), rows.filter(pc.invert(is_then))
    if not at_time[GROUP_HEALTH.name].num_rows:
        return None
    problem, others = (
        next(iter(find_problems(_as_tables(each))), None) for each in (at_time, at_others)
    )
    return Judged(problem, others, {name: at_time[name].to_pylist() for name in GRADED_TABLES})


def _as_tables(tables: Mapping[str, pa.Table]) -> Tables:
    return Tables(lambda name: ds.dataset(tables[name]) if name in tables else None)

"""What an audit leaves to the next one, and how the next one goes on from it.

An audit saves its runs, the contents that they name and the situations that it evaluated. The next
one reads the rounds since alone: the times of runs that go on are put together, and situations that
were evaluated are not evaluated again. The times of a run are a set, so that it does not matter
where the cut was, nor whether a round is on both sides of it.

The files show which rounds the tables may answer for: see ``pipeline.continuing``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

from pyspark.sql import DataFrame

from jobs.fold.runs import POLL_RUNS, ROUTE_RUNS
from jobs.fold.spark import Contents, query
from jobs.instants import Instant


@dataclass(frozen=True)
class SavedTables:
    """What an audit knows of its rounds before it judges them; each table is saved as it is.

    ``poll_runs``, ``route_runs``: rows of ``POLL_RUNS`` and ``ROUTE_RUNS``. ``member_lists``,
    ``route_contents``: the contents that they name. ``evaluated``: one row per situation, as
    ``spark.evaluate`` gives them.
    """

    poll_runs: DataFrame
    member_lists: DataFrame
    route_runs: DataFrame
    route_contents: DataFrame
    evaluated: DataFrame

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(field.name for field in fields(cls))

    def items(self) -> Iterator[tuple[str, DataFrame]]:
        """The tables, each with its name."""
        return ((name, getattr(self, name)) for name in self.names())

    @property
    def lists(self) -> Contents:
        """What brokers answered."""
        return Contents(self.poll_runs, self.member_lists)

    @property
    def routes(self) -> Contents:
        """What nameservers gave."""
        return Contents(self.route_runs, self.route_contents)


def clip(contents: Contents, since: Instant | None, until: Instant | None) -> Contents:
    """The runs with those times alone that are in the window: ``since`` to ``until`` (exclusive).

    Runs without any are gone; contents that no run has any more are dropped by ``merge``.
    """
    bounds = [f"t.snapshot_time >= {since}L"] * (since is not None)
    bounds += [f"t.snapshot_time < {until}L"] * (until is not None)
    if not bounds:
        return contents
    names = [name for name in contents.runs.columns if name != "times"]
    within = f"filter(times, t -> {' AND '.join(bounds)}) AS times"
    runs = contents.runs.selectExpr(*names, within).where("size(times) > 0")
    return contents._replace(runs=runs)


def merge(earlier: Contents, since: Contents) -> Contents:
    """What an audit saved, and the rounds since: as one audit over all of them has it."""
    names = POLL_RUNS.names if "list_id" in earlier.runs.columns else ROUTE_RUNS.names
    by = [name for name in names if name != "times"]
    runs = query(
        "SELECT {by}, array_distinct(flatten(collect_list(times))) AS times FROM "
        "(SELECT {names} FROM {earlier} UNION ALL SELECT {names} FROM {since}) GROUP BY {by}",
        {"by": ", ".join(by), "names": ", ".join(names)},
        earlier=earlier.runs,
        since=since.runs,
    )
    *key, content = earlier.contents.columns
    contents = query(
        "SELECT {key}, any_value(content) AS {content} FROM ("
        "  SELECT {key}, {content} AS content FROM {earlier} LEFT SEMI JOIN {runs} USING ({key})"
        "  UNION ALL SELECT {key}, {content} AS content FROM {since}"
        ") GROUP BY {key}",
        {"key": ", ".join(key), "content": content},
        earlier=earlier.contents,
        runs=earlier.runs,
        since=since.contents,
    )
    return Contents(runs, contents)


def with_parts_of_texts(evaluated: DataFrame) -> DataFrame:
    """Of the saved evaluations those that have what their texts are made of.

    An earlier version saved English texts alone: no other language can be made of them, so those
    situations are evaluated anew. Nearly all have no text, and stay.
    """
    return evaluated.where(
        "(texts IS NOT NULL OR reason = '') AND forall(faults, each -> each.texts IS NOT NULL) "
        "AND forall(stacked, each -> each.texts IS NOT NULL)"
    )


def already_evaluated(situations: DataFrame, evaluated: DataFrame) -> DataFrame:
    """Of the saved evaluations those of the situations, and that would come out the same.

    A situation's id is a hash of all that its evaluation depends on.
    """
    return evaluated.join(situations.select("situation_id"), ["situation_id"], "left_semi")


def not_evaluated(situations: DataFrame, evaluated: DataFrame) -> DataFrame:
    """The situations that are still to be evaluated."""
    return situations.join(evaluated.select("situation_id"), ["situation_id"], "left_anti")

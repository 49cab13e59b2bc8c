"""The audit as a job: snapshot tables in, allocations by a pandas UDF, report tables out.

    spark-submit --py-files rebalance-audit.zip jobs/audit.py --snapshots DIR --reports DIR

session      that of spark-submit; the job runs in a copy of it (spark/session.py)
snapshots    rows of heartbeats, topic routes, polls (schemas.py) -> pieces of groups, each in the
             shard of its group: mapInArrow, repartition("shard")
allocations  each distinct situation is a row of the pandas UDF ``recompute_allocations`` around
             rebalance_core (spark/functions.py): mapInArrow(find_situations) ->
             select(recompute_allocations("strategy", "queues", "client_ids", ...)) ->
             mapInArrow(judge_groups), in ``judge_groups`` (spark/spark_engine.py)
reports      the rows of orphaned_queues, duplicate_queues, allocations, ..., published as one run
             under the date of the last snapshot (publish/)

Commands, ``rebalance_audit.audit`` and the audit of DataFrames all call ``audit``, which is below.
The engine without Spark (engines/local.py) calls the same core in its process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .console.progress import Progress
    from .engines.engine import Engine
    from .pipeline.inputs import Inputs
    from .publish.run import Task
    from .storage import PublishedRun


def audit(
    engine: Engine, task: Task, progress: Progress, inputs: Inputs | None = None
) -> PublishedRun:
    """Audits the snapshots of a window and publishes the reports under the window's last date.

    ``engine``: ``SparkEngine(spark)``. ``inputs``: the tables, if they lie elsewhere than the task
    says. Findings that an entry of ``known_issues`` matches are marked; whether an entry has
    expired is judged by the date under which the reports are published.

    Raises InputError where there is nothing to audit, and ContractError where a table has not the
    columns that it must have. Nothing is published then, and what was published stays.
    """
    # Here, for spark-submit runs this file, and the package comes with the command line.
    from .pipeline.audit import fold_inputs, with_window  # noqa: PLC0415
    from .pipeline.inputs import Inputs  # noqa: PLC0415
    from .publish.publish import publish  # noqa: PLC0415
    from .storage import Snapshots  # noqa: PLC0415

    inputs = inputs or Inputs(Snapshots.open(task.snapshots), task.settings)
    progress.say(inputs.sentence())
    task = with_window(task)
    with inputs.snapshots.in_use():
        with progress.step("groups") as step:
            groups = fold_inputs(engine, inputs, task)
            step.rows = len(groups.facts.polled)
        scope = groups.scope(task, inputs)
        with progress.step("findings"):
            made = groups.allocations(task, scope, inputs)
        return publish(task, scope, made, inputs.snapshots, progress)


if __name__ == "__main__":
    from rebalance_audit.cli import entry

    entry("audit")

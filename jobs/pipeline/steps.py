"""The steps of a job, by command and engine, as its progress counts them."""

from __future__ import annotations

from jobs.pipeline.engine import LOCAL, SPARK

_INGEST = ("records", "snapshot tables", "check of the tables")
_PUBLISH = ("report tables", "check of the reports")
_AUDIT = {
    LOCAL: ("fold", "situations", "judgement", *_PUBLISH),
    # Spark folds where it needs the dossiers, which is in the step after.
    SPARK: ("situations", "judgement", *_PUBLISH),
}


def steps_of(command: str, engine: str) -> tuple[str, ...]:
    """The names of the steps of ``ingest``, ``audit`` or ``run``, in their order.

    >>> steps_of("run", SPARK)[:4]
    ('records', 'snapshot tables', 'check of the tables', 'situations')
    """
    ingest = () if command == "audit" else _INGEST
    audit = () if command == "ingest" else _AUDIT[engine]
    return (*ingest, *audit)

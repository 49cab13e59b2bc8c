"""The steps of a job, by command, as its progress counts them."""

_INGEST = ("records", "snapshot tables", "check of the tables")
_AUDIT = ("groups", "findings", "report tables", "check of the reports")


def steps_of(command: str) -> tuple[str, ...]:
    """The names of the steps of ``ingest``, ``audit`` or ``run``, in their order.

    >>> steps_of("run")[:4]
    ('records', 'snapshot tables', 'check of the tables', 'groups')
    """
    ingest = () if command == "audit" else _INGEST
    audit = () if command == "ingest" else _AUDIT
    return (*ingest, *audit)

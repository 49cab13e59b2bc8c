"""The steps of a job, by command, as its progress counts them."""

_INGEST = ("records", "snapshot tables", "check of the tables")
_AUDIT = ("groups", "findings", "report tables", "check of the reports")

#: The names of each command's steps, in their order.
STEPS = {"ingest": _INGEST, "audit": _AUDIT, "run": _INGEST + _AUDIT}

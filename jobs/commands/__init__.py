"""The commands, each a module of this package, which is imported where the command is called.

A module has an ``EXAMPLE`` (and ``DETAIL``) for its help, ``add_arguments``, which adds its options
to a parser, and ``run``, which does what they say and returns the exit code.
"""

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType

#: What each does, in the order of the help: those of every day, and the others.
EVERY_DAY: Mapping[str, str] = {
    "live": "collect from your cluster and audit it at once",
    "collect": "ask nameservers and brokers, and write their answers as dumps",
    "run": "ingest dumps, audit them, publish the reports and print a summary",
    "report": "write the report of a published run: a page, a ticket, or a site of many nights",
    "explain": "show who takes which queue, why, what is wrong and what repairs it; needs no Spark",
    "what-if": "show what changes would do, and whether they can be rolled out; needs no Spark",
    "show": "print a published table",
    "alert": "send a published run to chats and on-call tools, write it for Prometheus",
}
OTHERS: Mapping[str, str] = {
    "init": "write the settings of a new place, and what audits it each night",
    "ingest": "read dumps, and write them as snapshot tables",
    "audit": "audit snapshot tables and publish the reports",
    "export": "write published reports into tables of Delta Lake or Iceberg",
    "prune": "remove old reports, old dumps, and what failed runs left",
    "completion": "print what a shell reads to complete commands, options and names",
}
SUMMARIES: Mapping[str, str] = {**EVERY_DAY, **OTHERS}


def module_of(command: str) -> ModuleType:
    """The module of a command."""
    return import_module(f".{command.replace('-', '_')}", __name__)

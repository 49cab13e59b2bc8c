"""The commands: ``console.options`` has what each is for and takes; its module does it.

A module is imported where its command is called. Its ``run`` does what the options say, and returns
the exit code.
"""

from importlib import import_module
from types import ModuleType

#: Modules of commands that have another name.
_HOMES = dict.fromkeys(("run", "ingest", "audit"), "batch") | {
    "what-if": "explain",
    "live": "check",
}


def module_of(command: str) -> ModuleType:
    """The module of a command."""
    return import_module(f".{_HOMES.get(command, command)}", __name__)

"""Completion in a shell after ``rebalance-audit``: options, and the names that are there.

The shell asks the command itself, so that tables, columns, dates, groups and topics are those of
the run that the line names so far.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from argcomplete import autocomplete
from argcomplete.completers import BaseCompleter, DirectoriesCompleter, FilesCompleter
from argcomplete.shell_integration import shellcode

from ..console.arguments import Options, build_parser
from ..console.output import give
from ..errors import AuditError

if TYPE_CHECKING:
    from ..storage import Reports


def run(args: Options) -> int:
    """Prints what the shell has to read, once in each of its sessions; returns the exit code."""
    give(shellcode(["rebalance-audit"], shell=args.shell).strip("\n"))
    return 0


#: The question for names: the word so far, and the arguments before it.
_Names = Callable[[str, Any], Iterable[str]]


def complete() -> None:
    """Answers the shell that started this process, and ends the process."""
    command = "".join(os.environ.get("COMP_LINE", "").split()[1:2])
    autocomplete(build_parser(command), default_completer=_Completer())


class _Completer(BaseCompleter):
    """Completes the value of an option, or of the table of ``show``."""

    def __call__(self, *, prefix: str, action: Any, parser: Any, parsed_args: Any) -> Any:
        option = (action.option_strings or [action.dest])[-1]
        names = _NAMES.get(option)
        if names is not None and action.metavar != _PATTERN:
            try:
                found = list(names(prefix, parsed_args))
            except (AuditError, OSError):  # there is no such run, or no such settings
                return []
            # A name that a shell would read as anything else is left to whoever types it.
            return [name for name in found if shlex.quote(name) == name]
        files = _FILES.get(action.metavar)
        if files is None:
            return []
        return files(prefix=prefix, action=action, parser=parser, parsed_args=parsed_args)


#: A regular expression, of which a name that was audited is none.
_PATTERN = "P"
_FILES: Mapping[Any, BaseCompleter] = {
    "DIR": DirectoriesCompleter(),
    **dict.fromkeys(("FILE", "PATH"), FilesCompleter()),
}


def _tables(_prefix: str, _args: Any) -> Iterable[str]:
    from ..schemas import REPORT_TABLES

    return ["summary", *(table.name for table in REPORT_TABLES)]


def _columns(prefix: str, args: Any) -> Iterable[str]:
    """The columns of the table that are not there yet, behind those that are."""
    from ..schemas import REPORT_TABLES

    before, comma, _ = prefix.rpartition(",")
    named = before.split(",")
    for table in REPORT_TABLES:
        if table.name == args.table:
            yield from (before + comma + name for name in table.schema.names if name not in named)


def _reports(args: Any) -> Reports:
    from .common import read_settings, reports_of

    settings = read_settings(args)
    # A command that reads no reports has groups and topics all the same.
    args.reports, args.quiet = getattr(args, "reports", None), True
    return reports_of(args, settings)


def _finding_ids(_prefix: str, args: Any) -> Iterable[str]:
    from ..reports.run_findings import read_rows
    from ..reports.tables import PublishedTables

    reports = _reports(args)
    tables = PublishedTables(reports, reports.resolve(args.date))
    return sorted({row.finding_id for row in read_rows(tables) if row.counts})


def _names_in_health(column: str) -> _Names:
    def names(_prefix: str, args: Any) -> Iterable[str]:
        from ..reports.table_text import read_table

        reports = _reports(args)
        published = reports.resolve(getattr(args, "date", None))
        group = args.group if column == "topic" else None
        rows = read_table(reports, published, "group_health", group)
        return sorted({str(name) for name in rows[column].to_pylist() if name})

    return names


def _settings(_prefix: str, _args: Any) -> Iterable[str]:
    from ..config.settings import Settings
    from ..config.toml_files import names_of

    return [f"{name}=" for name in names_of(Settings)]


def _repairs(_prefix: str, _args: Any) -> Iterable[str]:
    from rebalance_core.repairs import REPAIRS

    return REPAIRS


_NAMES: Mapping[str, _Names] = {
    "table": _tables,
    **dict.fromkeys(("finding_id", "--finding"), _finding_ids),
    "--columns": _columns,
    "--date": lambda _prefix, args: _reports(args).dates(),
    "--group": _names_in_health("consumer_group"),
    "--topic": _names_in_health("topic"),
    "--set": _settings,
    "--mend": _repairs,
}

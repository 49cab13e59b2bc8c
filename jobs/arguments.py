"""What the options of all commands share, and the parser: argv in, a namespace out.

The options of a command are beside it, in ``jobs.commands``. Of one command alone they are asked:
an answer such as ``--help`` does not wait for the libraries of the others.
"""

import argparse
import platform
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from difflib import get_close_matches
from itertools import takewhile
from typing import Any, NoReturn, TypeAlias

from . import __version__
from .choices import (
    DEFAULT_SETTINGS,
    INCOMPLETE,
    LANGUAGES,
    SEVERITIES,
    STANDARD_OUTPUT,
)
from .commands import EVERY_DAY, OTHERS, SUMMARIES, module_of
from .errors import SettingsError
from .output import write
from .text import visible

#: What a command adds its options to, and what comes of them.
Parser: TypeAlias = argparse.ArgumentParser
Group: TypeAlias = argparse._ActionsContainer
Options: TypeAlias = argparse.Namespace
UsageError = argparse.ArgumentTypeError

_EXIT_CODES = """\
exit codes: 0 ran, findings or not; 1 findings at or above --fail-on, or what-if: not safe;
2 usage, settings; 3 no input, too much not understood; 4 anything else; 130 Ctrl-C; 143 SIGTERM"""

#: What a message shows of an argument.
_LONGEST = 500


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise SettingsError(f"{_shown(message)}; {self.prog} --help lists the options")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Adds the command or value that was meant, where one is near, to those that there are."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            names = {str(each).lower(): str(each) for each in action.choices or ()}
            if near := get_close_matches(str(value).lower(), names):
                error.message += f": did you mean {' or '.join(names[each] for each in near)}?"
            raise

    def print_help(self, _file: object = None) -> None:
        write(self.format_help().removesuffix("\n"))


class _Versions(argparse.Action):
    """Prints the versions that matter to whoever reads a report of a defect."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - only here

        others = [f"Python {platform.python_version()}"]
        for package in ("pyspark", "pyarrow", "numpy"):
            try:
                others.append(f"{package} {version(package)}")
            except PackageNotFoundError:
                others.append(f"no {package}")
        write(f"rebalance-audit {__version__} ({', '.join(others)})")
        parser.exit()


def _shown(text: str) -> str:
    words = visible(text)
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}..."


def parse_arguments(arguments: Sequence[str] | None) -> Options:
    """The options of a command; None: those of the process. SettingsError for what is no text."""
    given = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    for each in given:
        try:
            each.encode()
        except UnicodeEncodeError as error:
            # Bytes that are no UTF-8 come as halves of characters: no table can have them.
            raise SettingsError(f"expected arguments in UTF-8, came {visible(each)}") from error
    parser = build_parser(given[0])
    _check_names(parser, given)
    args, others = parser.parse_known_args(given)
    if others:
        raise SettingsError(
            f"unrecognized arguments: {_shown(' '.join(others))}; "
            f"rebalance-audit {args.command} --help lists the options"
        )
    return args


def _check_names(parser: Parser, given: Sequence[str]) -> None:
    """SettingsError for the first option that the command has not; it may be why others lack."""
    commands = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    command = commands[0].choices.get(given[0])
    if command is None:
        return
    there = sorted(command._option_string_actions)
    for word in takewhile(lambda word: word != "--", given[1:]):
        name = word.partition("=")[0]
        # A word with a blank is a value to argparse, and the beginning of an option the option.
        if word.startswith("--") and " " not in word and not _begins(name, there):
            near = get_close_matches(name, there)
            meant = f": did you mean {' or '.join(near)}?" if near else ""
            command.error(f"unrecognized arguments: {word}{meant}")


def _begins(name: str, options: Sequence[str]) -> bool:
    return any(option.startswith(name) for option in options)


def build_parser(only: str | None = None) -> Parser:
    """The parser of all commands; ``only``: of the others it has the names, and no options."""
    parser = _Parser(
        prog="rebalance-audit",
        usage="%(prog)s [-h] [--version] COMMAND ...",
        description="Finds the RocketMQ queues that are consumed twice or by nobody.",
        epilog=f"{_listed('every day', EVERY_DAY)}\n\n{_listed('besides', OTHERS)}\n\n"
        f"example:\n  rebalance-audit run --dumps dumps/ --output out/\n\n{_EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Versions, nargs=0, help="print the version, and exit")
    subparsers = parser.add_subparsers(
        dest="command",
        required=True,
        metavar="COMMAND",
        help=argparse.SUPPRESS,
        prog="rebalance-audit",
    )
    for name, summary in SUMMARIES.items():
        command = subparsers.add_parser(name, formatter_class=argparse.RawDescriptionHelpFormatter)
        if only in (None, name):
            module = module_of(name)
            detail = getattr(module, "DETAIL", "")
            command.description = f"{summary[0].upper()}{summary[1:]}.{detail}"
            command.epilog = f"example:\n  rebalance-audit {module.EXAMPLE}\n\n{_EXIT_CODES}"
            command.add_argument(
                "-v",
                "--verbose",
                action="store_true",
                help="show the stack of an error, and Spark's log",
            )
            module.add_arguments(command)
    return parser


def _listed(title: str, summaries: Mapping[str, str]) -> str:
    lines = [f"  {name:<12}{summary}" for name, summary in summaries.items()]
    return "\n".join([f"{title}:", *lines])


#: An option of a table: its name, what follows it, how often, what it is where it is not given.
_OPTION = re.compile(
    r"(?P<name>[\w-]+)(?: (?:(?P<metavar>[A-Z]+(?:[.=,][A-Z]+)*)|\{(?P<choices>[\w,]+)\})"
    r"(?P<many>\.\.\.|\*)?)?(?: \[(?P<default>\w+)\])?(?P<required>!)?"
)


def add_options(command: Group, table: str, **types: Callable[[str], Any]) -> None:
    """Adds the options of a table: in each line one, and behind two blanks its help.

    ``--x`` is a flag, ``--x N`` has a value, ``--x N...`` several, ``--x N*`` comes again and
    again, ``--x {a,b} [a]`` is one of these and has a default; ``!``: it must be given. ``X`` is
    what comes without a name, if it comes. ``types`` has by name what reads the value, else what
    follows the option says it: N, D or DIR.
    """
    lines = re.sub(r"\n {8,}", " ", table).splitlines()
    for line in filter(None, map(str.strip, lines)):
        spec, _, help_ = line.partition("  ")
        option = _OPTION.fullmatch(spec)
        assert option is not None, spec  # noqa: S101 - it is a line of ours
        name, metavar, choices, many, default, required = option.groups()
        given: dict[str, Any] = {"help": help_.strip()}
        if not name.startswith("-"):
            given |= {"metavar": name, "nargs": "?"}
            name = name.lower()
        elif not (metavar or choices):
            given["action"] = "store_true"
        else:
            given["metavar"] = metavar
            given["choices"] = choices.split(",") if choices else None
            given["type"] = types.get(name.strip("-").replace("-", "_"), _TYPES.get(metavar, str))
            given["default"] = default
        if required:
            given["required"] = True
        if many:
            given |= {"nargs": "+"} if many == "..." else {"action": "append", "default": []}
        command.add_argument(name, **given)


def date_of(text: str) -> str:
    """A date, in the one form in which it is written everywhere."""
    try:
        # A week of a year, and a date without hyphens, are ISO 8601 too: one form is enough.
        if date.fromisoformat(text).isoformat() == text:
            return text
    except ValueError:
        pass
    raise UsageError(f"expected a date as YYYY-MM-DD, came {text!r}")


def folder(text: str) -> str:
    """A folder, which standard output is none."""
    if text == STANDARD_OUTPUT:
        raise UsageError(
            f"expected a folder, came {text!r}: what has several files does not go to standard "
            "output"
        )
    return text


def natural(text: str) -> int:
    """A whole number from 0 on."""
    if not text.isdecimal():
        raise UsageError(f"expected a whole number from 0 on, came {text!r}")
    return int(text)


#: By what follows an option what reads it.
_TYPES: Mapping[str, Callable[[str], Any]] = {"N": natural, "D": date_of, "DIR": folder}

REPORTS = """
    --reports DIR  where the reports are published
"""
DATE = """
    --date D  a date, as 2026-11-20; default: the last one published
"""
FAIL_ON = f"""
    --fail-on {{{",".join((*SEVERITIES, INCOMPLETE))}}}  exit with 1 where a finding is so severe or
            worse, and no known issue; {INCOMPLETE}: where the input is not complete
"""
LANGUAGE = f"""
    --language {{{",".join(LANGUAGES)}}}  in which language; default: the setting language
"""
SETTINGS = f"""
    --settings FILE  the settings; default: {DEFAULT_SETTINGS} here, else the installed one
    --set A.B=C*  override one setting
    --quiet  print results and errors only
"""

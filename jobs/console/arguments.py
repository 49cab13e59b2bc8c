"""The parser: argv in, a namespace out; which options there are is in ``console.options``."""

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from itertools import takewhile
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn, TypeAlias

from .. import __version__
from ..config.choices import GATES, STANDARD_OUTPUT
from ..declared.instants import is_date
from ..errors import SettingsError
from ..texts.shown import did_you_mean, shortened, visible
from .options import COMMANDS, EVERY_DAY, OTHERS, SHARED, USAGES, meant_by
from .output import write

#: The classes of argparse: a parser, a group of its options, the result.
Parser: TypeAlias = argparse.ArgumentParser
OptionGroup: TypeAlias = argparse._ActionsContainer
Options: TypeAlias = argparse.Namespace
UsageError = argparse.ArgumentTypeError

_EXIT_CODES = """\
exit codes: 0 it ran; 1 findings at or above --fail-on, what-if: not safe, check: still there;
2 options, settings; 3 input; 4 all else; 5 check: not said yet; 130 Ctrl-C; 143 SIGTERM"""


class _Parser(argparse.ArgumentParser):
    #: The parser of each command, by name; only the parser of all of them has it.
    commands: Mapping[str, argparse.ArgumentParser] = MappingProxyType({})

    def error(self, message: str) -> NoReturn:
        raise SettingsError(f"{shortened(message)}; {self.prog} --help lists the options")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Adds the command or value that was meant, where one is near, to those that there are."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            names = {str(choice).lower(): str(choice) for choice in action.choices or ()}
            near = [names[name] for name in get_close_matches(str(value).lower(), names)]
            error.message += did_you_mean(meant_by(value) if action.dest == "command" else near)
            raise

    def print_help(self, _file: object = None) -> None:
        write(self.format_help().removesuffix("\n"))


class _Versions(argparse.Action):
    """Prints the versions that matter to whoever reads a report of a defect."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from ..engines.environment import versions  # noqa: PLC0415 - only here

        write(f"rebalance-audit {__version__} ({', '.join(versions())})")
        parser.exit()


def parse_arguments(arguments: Sequence[str] | None) -> Options:
    """The options of a command; None: those of the process. SettingsError for what is not text."""
    given = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    for word in given:
        try:
            word.encode()
        except UnicodeEncodeError as error:
            # Bytes that are no UTF-8 come as halves of characters: no table can have them.
            raise SettingsError(f"expected arguments in UTF-8, came {visible(word)}") from error
    parser = build_parser(given[0])
    command = parser.commands.get(given[0], parser)
    if command is not parser:
        _check_names(command, given)
    if given[0] == "show" and not {"-h", "--help"}.isdisjoint(given[2:]):
        from ..contract import described  # noqa: PLC0415 - it takes its time

        command.description = described(given[1]) + (command.description or "")
    args, others = parser.parse_known_args(given)
    if others:
        command.error(f"unrecognized arguments: {' '.join(others)}")
    return args


def _check_names(command: Parser, given: Sequence[str]) -> None:
    """SettingsError for the first option that the command has not; it may be why others lack."""
    there = sorted(command._option_string_actions)
    for word in takewhile(lambda word: word != "--", given[1:]):
        name = word.partition("=")[0]
        # A word with a blank is a value to argparse, and the beginning of an option the option.
        is_option = word.startswith("--") and " " not in word
        if is_option and not any(option.startswith(name) for option in there):
            meant = did_you_mean(get_close_matches(name, there))
            command.error(f"unrecognized arguments: {word}{meant}")


def build_parser(only: str | None) -> _Parser:
    """The parser of all commands; ``only``: of the others it has the names, and no options."""
    parser = _Parser(
        prog="rebalance-audit",
        usage="%(prog)s [-h] [--version] COMMAND ...",
        description="Finds the RocketMQ queues that are consumed twice or by nobody.",
        epilog=f"{_listed('every day', EVERY_DAY)}\n\n{_listed('other commands', OTHERS)}\n\n"
        f"example:\n  rebalance-audit run --dumps dumps/ --output out/\n\n{_EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Versions, nargs=0, help="print the version, and exit")
    subparsers = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", help=argparse.SUPPRESS, prog=parser.prog
    )
    parser.commands = subparsers.choices
    for name, text in COMMANDS.items():
        command = subparsers.add_parser(name, formatter_class=argparse.RawDescriptionHelpFormatter)
        if only in (None, name):
            about, _, rest = text.partition("\nexample: ")
            example, _, table = rest.partition("\n")
            summary, feed, detail = about.partition("\n")
            command.description = f"{summary[0].upper()}{summary[1:]}.{feed}{detail}"
            command.epilog = f"example:\n  rebalance-audit {example}\n\n{_EXIT_CODES}"
            command.usage = USAGES.get(name)
            command.add_argument(
                "-v",
                "--verbose",
                action="store_true",
                help="show the stack of an error, and Spark's log",
            )
            _add_options(command, table)
    return parser


def _listed(title: str, commands: Mapping[str, str]) -> str:
    lines = [f"  {name:<12}{text.splitlines()[0]}" for name, text in commands.items()]
    return "\n".join([f"{title}:", *lines])


#: An option of a table: its name, what follows it, how often, what it is where it is not given.
_OPTION = re.compile(
    r"(?P<alternative>\| )?(?P<name>[\w-]+)"
    r"(?: (?:(?P<metavar>[A-Z]+(?:[.=,][A-Z]+)*)|\{(?P<choices>[\w,]+)\})"
    r"(?P<many>\.\.\.|\*)?)?(?: \[(?P<default>\w+)\])?(?P<required>!)?"
)
#: Names of options that are shared.
_NAMES = re.compile(r"(\| )?(--[a-z-]+(?: --[a-z-]+)*)")


def _lines(table: str) -> Iterator[str]:
    """The lines of a table, those of the shared options in the place of their names."""
    for line in map(str.strip, re.sub(r"\n {8,}", " ", table).strip().splitlines()):
        if names := _NAMES.fullmatch(line):
            yield from (f"{names[1] or ''}{_SHARED[name]}" for name in names[2].split())
        else:
            yield line


_SHARED = {line.split()[0]: line for line in _lines(SHARED)}


def _add_options(command: Parser, table: str) -> None:
    """Adds the options of a table: in each line one, and behind two blanks its help.

    ``--x`` is a flag, ``--x N`` has a value, ``--x N...`` several, ``--x N*`` comes again and
    again, ``--x {a,b} [a]`` is one of these and has a default; ``!``: it must be given. ``X`` is
    what comes without a name, if it comes. One of those with a ``|`` before them may be given, with
    ``!`` one must be. Below a title, which ends with a colon, are changes: they go into one list of
    names and values, in the order in which they are given. An option that is shared has its name
    alone.
    """
    place: OptionGroup = command
    alternatives: dict[str | None, OptionGroup] = {}
    are_changes = False
    for line in _lines(table):
        if line.endswith(":"):
            place, are_changes = command.add_argument_group(line.removesuffix(":")), True
            continue
        spec, _, help_ = line.partition("  ")
        option = _OPTION.fullmatch(spec)
        assert option is not None, spec  # noqa: S101 - it is a line of ours
        alternative, name, metavar, choices, many, default, required = option.groups()
        given: dict[str, Any] = {"help": help_.strip()}
        if choices:
            given["choices"] = choices.split(",")
        if not name.startswith("-"):
            given |= {} if choices else {"metavar": name, "nargs": "?"}
            name = name.lower()
        elif metavar or choices:
            # What a change is, its command knows.
            as_change = partial(lambda option, text: (option, text), name)
            by_value = _READERS.get(name, _READERS.get(metavar, str))
            reader = as_change if are_changes else by_value
            given |= {"metavar": metavar, "default": default, "type": reader}
        else:
            given["action"] = "store_true"
        if many:
            given |= {"nargs": "+"} if many == "..." else {"action": "append", "default": []}
        if are_changes:
            given["dest"] = "changes"
            if not metavar:
                given |= {"action": "append_const", "const": (name, "")}
        if alternative:
            if required not in alternatives:
                group = command.add_mutually_exclusive_group(required=required is not None)
                alternatives[required] = group
            alternatives[required].add_argument(name, **given)
            continue
        if required:
            given["required"] = True
        place.add_argument(name, **given)


def date_of(text: str) -> str:
    """A date, in the one form in which it is written everywhere."""
    if is_date(text):
        return text
    raise UsageError(f"expected a date as YYYY-MM-DD, came {text!r}")


def folder(text: str) -> str:
    """A folder, which standard output is none."""
    if text == STANDARD_OUTPUT:
        raise UsageError(
            f"expected a folder, came {text!r}: what has several files does not go to standard "
            "output"
        )
    if Path(text).is_file():
        raise UsageError(f"expected a folder, came the file {text!r}")
    return text


#: Longer than anything is waited for, and short enough for every clock.
_LONGEST_SECONDS = 10_000 * 86_400
#: The expected value, its form, and its reader, by an option or by what follows it.
_FORMS: Mapping[str, tuple[str, str, Callable[[str], Any]]] = {
    "N": ("a whole number from 0 on", r"\d+", int),
    "--workers": ("a number of processes, 1 to 999", r"(?a)[1-9]\d{0,2}", int),
    "--nights": ("a number of nights, 1 to 999", r"(?a)[1-9]\d{0,2}", int),
    "--keep": (
        "a number of days or weeks from 1 on, such as 90d or 12w",
        r"(?a)[1-9]\d{0,4}[dw]",
        lambda text: int(text[:-1]) * (7 if text.endswith("w") else 1),
    ),
    # Spark 4 has these masters and no other; what a cluster's address means it says itself.
    "--master": (
        "local, local[4], local[*], spark://host:7077, yarn or k8s://...",
        r"(?a)local(?:\[(?:\*|[1-9]\d{0,3})(?:,[1-9]\d{0,3})?\])?|local-cluster\[\d+,\d+,\d+\]"
        r"|spark://[^\s/:,]+:\d{1,5}(?:,[^\s/:,]+:\d{1,5})*|yarn|k8s://\S+",
        str,
    ),
}


def _formed(name: str, text: str) -> Any:
    expected, form, read = _FORMS[name]
    if not re.fullmatch(form, text):
        raise UsageError(f"expected {expected}, came {text!r}")
    return read(text)


def _columns(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not any(names):
        raise UsageError(f"expected names with commas between, came {text!r}")
    return list(dict.fromkeys(filter(None, names)))


def _gates(text: str) -> list[str]:
    gates = [gate.strip() for gate in text.split(",")]
    if unknown := [gate for gate in gates if gate not in GATES]:
        raise UsageError(
            f"expected some of {', '.join(GATES)} with commas between, came {unknown[0]!r}"
        )
    return gates


def seconds_of(text: str) -> float:
    """A duration in seconds.

    >>> seconds_of("60"), seconds_of("24h"), seconds_of("1.5m")
    (60.0, 86400.0, 90.0)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", text)
    if match is None:
        raise UsageError(f"expected a duration such as 60, 90s, 5m or 24h, came {text!r}")
    seconds = float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]]
    if seconds > _LONGEST_SECONDS:
        raise UsageError(f"expected at most {_LONGEST_SECONDS // 86_400:,} days")
    return seconds


#: Readers of a value, by its option or by what follows that.
_READERS: Mapping[str, Callable[[str], Any]] = {
    **{name: partial(_formed, name) for name in _FORMS},
    "D": date_of,
    "DIR": folder,
    "--columns": _columns,
    "--fail-on": _gates,
    "--rate": float,
    **dict.fromkeys(("--timeout", "--every", "--for", "--watch"), seconds_of),
}

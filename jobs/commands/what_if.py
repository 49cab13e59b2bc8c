"""``what-if``: what changes would do, and whether they can be rolled out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..arguments import Options, Parser, UsageError, add_options
from .question import add_question, moments_of, say_elsewhere, say_when

if TYPE_CHECKING:
    from rebalance_core import Change

EXAMPLE = "what-if --dumps dumps/ --group G --topic T --leave 10.0.0.4@app --queues 8"
DETAIL = """
Changes are made in the order of the options. Exit code 1: not safe, see docs/what_if.md."""


def add_arguments(command: Parser) -> None:
    """Adds the options of the command."""
    command.usage = (
        "%(prog)s (--dumps PATH ... | --snapshots DIR) --group G [--topic T] CHANGE ...\n"
        "                               [--format table|json] [--at TIME] [--cluster C]"
        " [--language L]\n"
        "                               [--settings FILE] [--set A.B=C] [--quiet] [-v]"
    )
    add_question(
        command, "--topic T  the topic; default: every topic (--queues: not the retry topic)"
    )
    add_options(command, "--format {table,json} [table]")
    changes = command.add_argument_group("changes, at least one")
    for option, metavar, text in (
        ("--leave", "ID", "a process with this client id leaves"),
        ("--join", "ID", "one more process with this client id joins"),
        ("--strategy", "NAME", "all use it; NAME={key = value} with parameters"),
        ("--add-broker", "NAME=N", "a broker is added with so many queues"),
        ("--remove-broker", "NAME", "a broker is removed"),
        ("--queues", "N", "so many queues on every broker; NAME=N on one"),
        ("--unify-list", "NAME", "this broker lists all members"),
        ("--mend", "FAULT", "a fault of group_faults is repaired"),
    ):
        changes.add_argument(
            option,
            metavar=metavar,
            dest="changes",
            action="append",
            type=_change_of(option),
            help=text,
        )
    for option, text in (
        ("--separate-ids", "every process gets a separate id"),
        ("--subscribe-all", "all members subscribe to it, by one filter"),
    ):
        changes.add_argument(option, dest="changes", action="append_const", const=option, help=text)


def _change_of(option: str) -> Callable[[str], Change]:
    """Reads the value of an option as its change."""

    def parsed(text: str) -> Change:
        from rebalance_core import AllocationError, ChangeError

        from ..changes import CHANGES
        from ..text import visible

        try:
            return CHANGES[option](text)
        except (ChangeError, AllocationError) as error:
            raise UsageError(visible(str(error))) from error
        except RecursionError as error:
            raise UsageError("lists or tables are nested too deep") from error

    return parsed


def run(args: Options) -> int:
    """Does what the options say; returns the exit code."""
    from rebalance_core import ChangeError, separate_ids, subscribe_all

    from ..errors import SettingsError
    from ..output import give, say
    from ..pipeline.explain import predict_moments
    from ..text import json_text, visible
    from .common import settings_of, text_width

    without_value = {"--separate-ids": separate_ids(), "--subscribe-all": subscribe_all()}
    settings = settings_of(args)
    if not args.changes:
        raise SettingsError("expected a change, such as --leave ID; see what-if --help")
    moments = moments_of(args, settings)
    changes = [without_value.get(each, each) for each in args.changes]
    try:
        predicted = predict_moments(moments, changes, settings, text_width())
    except ChangeError as error:
        raise SettingsError(visible(str(error))) from error
    if args.format == "json":
        give(json_text(predicted.values, indent=2))
    else:
        say(predicted.text)
        say_when(args, moments)
        say_elsewhere(args, moments)
    return 0 if predicted.safe else 1

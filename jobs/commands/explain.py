"""``explain`` and ``what-if``: a moment of a group, as it is and as changes would make it.

Changes as they are written on the command line:
--leave ID   --strategy 'CONSISTENT_HASH={virtual_node_count = 20}'   --queues broker-a=8
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, tzinfo
from functools import partial

import rebalance_core as core
from rebalance_core import Change, ChangeError, State
from rebalance_core.message_queue import is_own_retry_topic
from rebalance_core.texts import written

from ..config.known_issues import load_known_issues
from ..config.masking import is_masked, shows_secret
from ..config.settings import Settings
from ..config.window import Window
from ..console.arguments import Options
from ..console.output import give, say
from ..console.progress import Progress
from ..errors import InputError, SettingsError
from ..judge.moment import Moment
from ..pipeline.moments import (
    MomentQuestion,
    explain_moment,
    judged_of,
    moments_of_dumps,
    moments_of_tables,
    predict_moments,
)
from ..reports.situation_text import at_other_times
from ..reports.tables import PublishedTables
from ..storage import Location
from ..texts.shown import json_text, shortened, visible
from .common import run_of_moment, settings_of, settings_of_run, text_width, time_of_option


def run(args: Options) -> int:
    """Does what the options say; returns the exit code."""
    if args.command == "what-if":
        return _predict(args)
    moments, settings, published = _moments_of(args)
    named = [
        moment for moment in moments if not is_own_retry_topic(moment.state.topic, args.group)
    ] or moments
    if len(named) > 1:
        topics = ", ".join(shortened(moment.state.topic) for moment in named)
        raise SettingsError(f"expected --topic: {shortened(args.group)} has {topics}")
    say(explain_moment(named[0], settings, text_width(), published=published, is_full=args.full))
    _say_when(args, named, settings.reader.zone)
    return 0


def _predict(args: Options) -> int:
    changes = [_change(option, text) for option, text in args.changes or ()]
    if not changes:
        raise SettingsError("expected a change, such as --leave ID; see what-if --help")
    moments, settings, published = _moments_of(args)
    try:
        predicted = predict_moments(moments, changes, settings, text_width(), is_full=args.full)
    except ChangeError as error:
        raise SettingsError(visible(str(error))) from error
    if args.format == "json":
        give(json_text(predicted.values, indent=2))
    else:
        say(predicted.text)
        _say_when(args, moments, settings.reader.zone)
        others = judged_of(moments[0], published).others if len(moments) == 1 else None
        if text := at_other_times(others):
            Progress(quiet=args.quiet).say(settings.console_language.of(text))
    return 0 if predicted.safe else 1


def _moments_of(args: Options) -> tuple[list[Moment], Settings, PublishedTables | None]:
    """The moments that are asked about, of each topic one; the settings that they are of; and the
    tables of the run that judged them, where dumps or snapshots are not named.
    """
    settings = settings_of(args)
    at, issues = time_of_option("at", args, settings), load_known_issues(None)
    question = MomentQuestion(args.group, args.topic, at, args.cluster, known_issues=issues)
    if args.dumps:
        return moments_of_dumps(args.dumps, question, settings), settings, None
    if args.snapshots:
        return moments_of_tables(Location(args.snapshots), question, settings), settings, None
    reports, run = run_of_moment(args, settings, at)
    settings = settings_of_run(args, run)
    since, until = (
        text and datetime.fromisoformat(text)
        for text in (run.summary["window"]["since"], run.summary["window"]["until"])
    )
    question = replace(question, window=Window(since, until))
    snapshots = Location(run.summary["inputs"]["snapshots"])
    try:
        moments = moments_of_tables(snapshots, question, settings)
    except InputError as error:
        if run.date == reports.resolve(None).date:
            raise
        read = f"the run of {run.date} read {snapshots}, which may have been replaced: {error}"
        raise InputError(read, error.console) from error
    dated = [replace(moment, date=run.date) for moment in moments]
    return dated, settings, PublishedTables(reports, run)


def _say_when(args: Options, moments: Sequence[Moment], zone: tzinfo) -> None:
    """Says on standard error of when the data is."""
    moment = moments[0]
    if moment.snapshots is not None and moment.is_last:
        first, last = (written(snapshot, "iso", zone) for snapshot in moment.snapshots)
        Progress(quiet=args.quiet).say(
            f"the snapshots go from {first} to {last}; this is the last one (--at: another one)"
        )


def _change(option: str, text: str) -> Change:
    """The change that an option asks for; SettingsError where it asks for none."""
    try:
        return CHANGES[option](text)
    except (ValueError, RecursionError) as error:
        deep = "lists or tables are nested too deep"
        wrong = deep if isinstance(error, RecursionError) else visible(str(error))
        what = shortened(f"argument {option}: {wrong}")
        raise SettingsError(f"{what}; rebalance-audit what-if --help lists the options") from error


def _by_shown_id(make: Callable[[str], Change], text: str) -> Change:
    """The change of a client that is named by its id, or as reports show an id with a secret."""
    if not shows_secret(text):
        return make(text)
    return replace(make(text), targets=lambda of: make(_true_id(text, of.state)).targets(of))


def _true_id(shown: str, state: State) -> str:
    fitting = {member.client_id for member in state.members if is_masked(member.client_id, shown)}
    if len(fitting) != 1:
        raise ChangeError(
            f"expected one client that is shown as {shown!r}, there are {len(fitting)}"
        )
    return fitting.pop()


def _new_client(text: str) -> Change:
    """The change of a client that joins; how many join is no id of one."""
    if not (text.isascii() and text.isdigit()):
        return core.join(text)
    number = int(text[:_MOST_DIGITS])
    joins = " ".join(f"--join new-{count}" for count in range(1, min(number, _MOST_NEW) + 1))
    more = " and so on" if number > _MOST_NEW else ""
    raise ChangeError(
        f"expected a client id such as 10.0.0.9@app, came the number {text}: if so many new "
        f"processes were meant, each with an id of its own, write {joins or '--join new-1'}{more}"
    )


def _strategy(text: str) -> Change:
    """``NAME``, or ``NAME={an inline table of TOML}`` with its parameters."""
    name, has_params, table = text.partition("=")
    if not has_params:
        return core.use_strategy(name)
    try:
        params = tomllib.loads(f"params = {table}")["params"]
    except tomllib.TOMLDecodeError as error:
        raise ChangeError(f"expected NAME={{key = value, ...}}, came {text!r}: {error}") from error
    return core.use_strategy(name, params)


def _new_broker(text: str) -> Change:
    """``NAME=N``: a broker with so many queues of the topic."""
    name, separator, number = text.rpartition("=")
    if not separator or not name:
        raise ChangeError(f"expected NAME=N, came {text!r}")
    return core.add_broker(name, _number(number))


def _queues(text: str) -> Change:
    """``N`` queues on every broker that has any, or ``NAME=N`` on one."""
    name, separator, number = text.rpartition("=")
    return core.resize(_number(number), name if separator else None)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ChangeError(f"expected a number of queues, came {text!r}")
    return int(text)


#: The most new ids that an error writes out, to be pasted; the digits of a number that are read.
_MOST_NEW, _MOST_DIGITS = 8, 3
#: Readers of the value of each option that is a change.
CHANGES: Mapping[str, Callable[[str], Change]] = {
    "--leave": partial(_by_shown_id, core.leave),
    "--join": partial(_by_shown_id, _new_client),
    "--strategy": _strategy,
    "--add-broker": _new_broker,
    "--remove-broker": core.remove_broker,
    "--queues": _queues,
    "--unify-list": core.unify_list,
    "--mend": core.mend,
    "--separate-ids": lambda _: core.separate_ids(),
    "--subscribe-all": lambda _: core.subscribe_all(),
}

"""``explain`` and ``what-if``: a moment of a group, as it is and as changes would make it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, tzinfo

from rebalance_core import ChangeError, separate_ids, subscribe_all
from rebalance_core.message_queue import is_own_retry_topic
from rebalance_core.texts import written

from ..config.known_issues import load_known_issues
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
    settings = settings_of(args)
    if args.command == "what-if":
        return _predict(args, settings)
    moments, settings, published = _moments_of(args, settings)
    named = [
        moment for moment in moments if not is_own_retry_topic(moment.state.topic, args.group)
    ] or moments
    if len(named) > 1:
        topics = ", ".join(shortened(moment.state.topic) for moment in named)
        raise SettingsError(f"expected --topic: {shortened(args.group)} has {topics}")
    say(explain_moment(named[0], settings, text_width(), published=published, is_full=args.full))
    _say_when(args, named, settings.reader.zone)
    return 0


def _predict(args: Options, settings: Settings) -> int:
    if not args.changes:
        raise SettingsError("expected a change, such as --leave ID; see what-if --help")
    moments, settings, published = _moments_of(args, settings)
    without_value = {"--separate-ids": separate_ids(), "--subscribe-all": subscribe_all()}
    changes = [without_value.get(change, change) for change in args.changes]
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


def _moments_of(
    args: Options, settings: Settings
) -> tuple[list[Moment], Settings, PublishedTables | None]:
    """The moments that are asked about, of each topic one; the settings that they are of; and the
    tables of the run that judged them, where dumps or snapshots are not named.
    """
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

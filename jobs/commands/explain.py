"""``explain`` and ``what-if``: a moment of a group, as it is and as changes would make it."""

from collections.abc import Sequence
from datetime import tzinfo

from rebalance_core import ChangeError, separate_ids, subscribe_all
from rebalance_core.message_queue import is_own_retry_topic
from rebalance_core.texts import written

from ..config.settings import Settings
from ..console.arguments import Options
from ..console.output import give, say
from ..console.progress import Progress
from ..errors import SettingsError
from ..judge.moment import Moment
from ..pipeline.moment_texts import explain_moment, predict_moments
from ..pipeline.moments import MomentQuestion, moments_of_dumps, moments_of_tables
from ..reports.situation_text import elsewhere
from ..storage import Location
from ..texts.shown import json_text, shortened, visible
from .common import settings_of, settings_of_last_run, text_width, time_of_option


def run(args: Options) -> int:
    """Does what the options say; returns the exit code."""
    settings = settings_of(args)
    if args.command == "what-if":
        return _predict(args, settings)
    moments, settings = _moments_of(args, settings)
    named = [
        each for each in moments if not is_own_retry_topic(each.state.topic, args.group)
    ] or moments
    if len(named) > 1:
        topics = ", ".join(shortened(each.state.topic) for each in named)
        raise SettingsError(f"expected --topic: {shortened(args.group)} has {topics}")
    say(explain_moment(named[0], settings, text_width()))
    _say_when(args, named, settings.reader.zone)
    return 0


def _predict(args: Options, settings: Settings) -> int:
    if not args.changes:
        raise SettingsError("expected a change, such as --leave ID; see what-if --help")
    moments, settings = _moments_of(args, settings)
    without_value = {"--separate-ids": separate_ids(), "--subscribe-all": subscribe_all()}
    changes = [without_value.get(each, each) for each in args.changes]
    try:
        predicted = predict_moments(moments, changes, settings, text_width(), is_full=args.full)
    except ChangeError as error:
        raise SettingsError(visible(str(error))) from error
    if args.format == "json":
        give(json_text(predicted.values, indent=2))
    else:
        say(predicted.text)
        _say_when(args, moments, settings.reader.zone)
        for text in filter(None, map(elsewhere, moments)):
            Progress(quiet=args.quiet).say(settings.console_language.of(text))
    return 0 if predicted.safe else 1


def _moments_of(args: Options, settings: Settings) -> tuple[list[Moment], Settings]:
    """The moments that are asked about, of each topic one; the settings that they are of."""
    question = MomentQuestion(
        args.group, args.topic, time_of_option("at", args, settings), args.cluster
    )
    if args.dumps:
        return moments_of_dumps(args.dumps, question, settings), settings
    if not args.snapshots:
        settings = settings_of_last_run(args, settings)
    return moments_of_tables(Location(args.snapshots), question, settings), settings


def _say_when(args: Options, moments: Sequence[Moment], zone: tzinfo) -> None:
    """Says on standard error of when the data is."""
    moment = moments[0]
    if moment.snapshots is not None and moment.snapshot_time == moment.snapshots[1]:
        first, last = (written(each, "iso", zone) for each in moment.snapshots)
        Progress(quiet=args.quiet).say(
            f"the snapshots go from {first} to {last}; this is the last one (--at: another one)"
        )

"""``live``: a cluster is collected and audited at once, and again."""

import time
from typing import Any

from ..config.choices import LOCAL
from ..config.settings import Settings
from ..console.arguments import Options, parse_arguments
from ..console.output import say
from .batch import Job
from .clock import now
from .collect import collect_from
from .common import settings_of
from .report import write_page

#: The rounds that ``live`` collects, and the seconds from one to the next: clients commit their
#: offsets every 5 s, so that what is asked sooner seems not to move.
_LIVE_ROUNDS, _LIVE_APART = 6, 10.0


def seconds_apart(watched: float) -> float:
    """The seconds from one round to the next, of so many in which a cluster is watched."""
    return max(_LIVE_APART, watched / _LIVE_ROUNDS)


def of_rounds(dumps: str, every: float) -> dict[str, Any]:
    """The options of one round among those that are so far apart."""
    return {
        "dumps": dumps,
        "every_seconds": None,
        "for_seconds": None,
        "running_infos_seconds": int(every) // 2,
    }


def run(args: Options) -> int:
    """Collects and audits, at once and again; returns the exit code."""
    settings = settings_of(args)
    place = f"{args.output or 'out/live'}/{now():%Y%m%dT%H%M%S.%fZ}"
    seconds = settings.persistence_seconds if args.watch is None else args.watch
    every = seconds_apart(seconds)
    given = of_rounds(f"{place}/dumps", every)
    settling = collect_from(args, given).settling_seconds
    # From the end of the first round on: what lasts is to be seen over all the time watched.
    began = time.monotonic()
    say("first verdict, from one round: nothing can be seen to last yet")
    code = _judge(args, settings, place)
    if not seconds:
        return code
    seconds = max(seconds, every)
    # What clients hold is to be seen over all that time, too. Who has just started could be stopped
    # by the question (``collect/rounds.py``); of those in the first round nobody knows since when.
    begins, rest = max(every, settling), seconds - (0 if settling else every)
    say(f"watching for {begins + rest:g} s, a round every {every:g} s")
    time.sleep(max(0.0, began + begins - time.monotonic()))
    collect_from(args, {**given, "every_seconds": every, "for_seconds": rest + every / 2})
    say(f"second verdict, from {begins + rest:g} s")
    return _judge(args, settings, place)


def _judge(args: Options, settings: Settings, place: str) -> int:
    """Audits the dumps of a place and writes the page; returns the exit code."""
    # The lines of one odd member must not take the page away, which says what was not understood.
    settings = settings.model_copy(update={"allowed_quarantine_share": 1.0})
    given = ["run", "--dumps", f"{place}/dumps", "--output", place, "--engine", LOCAL, "--quiet"]
    run = parse_arguments(given)
    for name in ("settings", "set", "verbose", "fail_on"):
        setattr(run, name, getattr(args, name))
    code = Job.of(run, settings).run()
    page = ["report", "--reports", f"{place}/reports", "--output", f"{place}/report.html"]
    write_page(parse_arguments(page), settings)
    return code

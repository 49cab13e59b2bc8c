"""Answers that several commands need: the settings, the reports, a time of an option."""

import hashlib
import os
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..config.choices import DEFAULT_KNOWN_ISSUES, DEFAULT_SETTINGS, STANDARD_OUTPUT
from ..config.settings import Settings, find_settings, load_settings, variables_of
from ..config.toml_files import source_of, variable_of
from ..config.window import future_after, now, time_of
from ..console.arguments import Options
from ..console.output import say
from ..console.progress import Progress, Say
from ..console.terminal import console_on, is_terminal
from ..errors import SettingsError
from ..storage import Location, PublishedRun, Reports
from ..storage.disk import state_folder
from ..texts.shown import iso

#: Columns of a text in a file, and those that one on a terminal has at least and at most.
_ON_PAPER, _NARROWEST, _WIDEST = 100, 40, 140


def read_settings(args: Options) -> Settings:
    """The settings of the file that is named, else found, of the environment, of --set and of
    --language.
    """
    given = args.set, os.environ
    settings = load_settings(args.settings, *given) if args.settings else find_settings(*given)
    language = getattr(args, "language", None)
    return settings.model_copy(update={"language": language}) if language else settings


def settings_of(args: Options) -> Settings:
    """The settings that a command reads; on standard error, from which files.

    Those of the current directory are read without being named.
    """
    settings = read_settings(args)
    # The key of the masking is read where something is masked: at the end of a run.
    settings.masking.to_masking()
    sources = sources_of(args).items()
    read = [f"{name.replace('_', ' ')} of {path}" for name, path in sources if path]
    read += variables_of(os.environ)
    if args.set:
        read.append(f"{len(args.set)} --set")
    if read:
        Progress(quiet=args.quiet).say(f"reads {', '.join(read)}")
    return settings


def sources_of(args: Options) -> dict[str, str | None]:
    """The files of settings and known issues that a command reads; None where there is none."""
    sources = {"settings": source_of(args.settings, DEFAULT_SETTINGS)}
    if "known_issues" in args:
        sources["known_issues"] = source_of(args.known_issues, DEFAULT_KNOWN_ISSUES)
    return sources


def path_of(name: str, args: Options, settings: Settings) -> Any:
    """A path of an option, else of the setting of that name; SettingsError where there is none."""
    path = getattr(args, name) or getattr(settings.paths, name)
    if not path:
        raise SettingsError(
            f"expected --{name}, paths.{name} in the settings, or {variable_of(f'paths.{name}')} "
            "in the environment, came none of them"
        )
    return path


def folder_of(name: str, args: Options, settings: Settings) -> Location:
    """The folder of the ``snapshots`` or ``reports`` that a command reads or writes."""
    return Location(path_of(name, args, settings))


def reports_of(args: Options, settings: Settings) -> Reports:
    """The reports that a command reads: where none are named, those of the last run here.

    Those of the future count only where their date is named.
    """
    last, _ = ("", "") if settings.paths.reports else _last_run()
    if args.reports or not last:
        folder = folder_of("reports", args, settings)
    else:
        folder = Location(last)
        Progress(quiet=args.quiet).say(f"reads {folder}, the reports of the last run here")
    return Reports(folder, future(settings).date().isoformat())


def run_of_moment(
    args: Options, settings: Settings, at: datetime | None
) -> tuple[Reports, PublishedRun]:
    """The published run here that judged a time, with its reports: the last whose snapshots begin
    by then; without a time the last one.
    """
    args.reports = None
    try:
        reports = reports_of(args, settings)
    except SettingsError:
        raise SettingsError(
            "expected --dumps PATH or --snapshots DIR, or a run in this folder before, came none"
        ) from None
    last = reports.resolve(None)
    if at is None or _begins(last) <= at:
        return reports, last
    early = [published_run for published_run in reports.published() if _begins(published_run) <= at]
    return reports, early[-1] if early else last


def _begins(published: PublishedRun) -> datetime:
    return datetime.fromisoformat(published.summary["window"]["first_snapshot"])


def settings_of_run(args: Options, published: PublishedRun) -> Settings:
    """The settings that a published run had, and those that are given now."""
    args.set = [*published.summary.get("settings_set", ()), *args.set]
    return read_settings(args)


def refused_by_last_run(args: Options) -> Location | None:
    """The snapshots of the last run here, where it ingested and then published nothing of it."""
    _, snapshots = _last_run()
    return Location(snapshots) if snapshots and not (args.date or args.reports) else None


def remember_run(reports: Location | None, refused: Location | None = None) -> None:
    """Remembers, for the commands that come, where the last run of this folder published.

    None: it published nothing, and the one before counts; ``refused``: the snapshots of which it
    published nothing. Only for convenience: where the home folder cannot be written to, nothing is
    remembered.
    """
    published = reports.uri if reports else _last_run()[0]
    with suppress(OSError):
        file = _remembered()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{published}\n{refused.uri if refused else ''}", encoding="utf-8")


def _last_run() -> tuple[str, str]:
    with suppress(OSError, ValueError):
        reports, _, refused = _remembered().read_text(encoding="utf-8").partition("\n")
        return reports, refused
    return "", ""


def _remembered() -> Path:
    """The file that remembers the last run, by folder in which a command runs."""
    here = hashlib.sha256(os.fsencode(Path.cwd())).hexdigest()[:16]
    return state_folder(os.environ) / here


def future(settings: Settings) -> datetime:
    """The time from which on a snapshot lies in the future."""
    return future_after(now(), settings.bounds.future_days)


def time_of_option(
    name: str, args: Options, settings: Settings, otherwise: str = ""
) -> datetime | None:
    """The time of an option, in ``display_time_zone`` where it has no zone; it says so then."""
    text, zone = getattr(args, name), settings.reader.zone
    time = time_of(f"--{name}", text, otherwise, zone)
    if time is not None and zone is not UTC and not datetime.fromisoformat(text).tzinfo:
        Progress(quiet=args.quiet).say(f"--{name} {text} is read as {zone}, which is {iso(time)}")
    return time


def say_beside(args: Options, output: str | None) -> Say:
    """Says lines about a result: on standard error, where standard output has the result."""
    return Progress(quiet=args.quiet).say if output == STANDARD_OUTPUT else say


def text_width() -> int:
    """The width of a text: the terminal's, within what can be read; in a file as on paper."""
    if not is_terminal(sys.stdout):
        return _ON_PAPER
    return min(max(console_on(sys.stdout).width, _NARROWEST), _WIDEST)

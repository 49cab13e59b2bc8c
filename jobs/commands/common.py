"""What several commands ask: the settings, where the reports are, a time of an option."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from jobs.arguments import Options
from jobs.choices import DEFAULT_KNOWN_ISSUES, DEFAULT_SETTINGS, STANDARD_OUTPUT
from jobs.commands.clock import now
from jobs.errors import SettingsError
from jobs.output import say
from jobs.progress import Progress
from jobs.settings import Settings, find_settings, load_settings, source_of
from jobs.storage import Location, Reports
from jobs.window import future_after


def settings_of(args: Options) -> Settings:
    """The settings that a command reads; on standard error, from which files.

    Those of the current directory are read without being named.
    """
    settings = load_settings(args.settings, args.set) if args.settings else find_settings(args.set)
    if getattr(args, "language", None):
        settings = settings.model_copy(update={"language": args.language})
    # The key of the masking is read where something is masked: at the end of a run.
    settings.masking.to_masking()
    words = {"settings": "settings", "known_issues": "known issues"}
    read = [f"{words[each]} of {path}" for each, path in sources_of(args).items() if path]
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


def folder_of_reports(args: Options, settings: Settings) -> Location:
    """The folder of the reports that a command reads or writes."""
    reports = args.reports or settings.paths.reports
    if reports is None:
        raise SettingsError("expected --reports, or paths.reports in the settings, came neither")
    return Location(reports)


def reports_of(args: Options, settings: Settings) -> Reports:
    """The reports that a command reads; those of the future only where their date is named."""
    newest = future(settings).date().isoformat()
    return Reports(folder_of_reports(args, settings), newest)


def future(settings: Settings) -> datetime:
    """From when on a snapshot lies in the future."""
    return future_after(now(), settings.bounds.future_days)


def time_of(option: str, text: str | None, otherwise: str = "") -> datetime | None:
    """The time that an option names, in UTC, which is meant where no zone is named."""
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise SettingsError(
            f"{option}: expected a time as ISO 8601{otherwise}, came {text!r}"
        ) from error
    try:
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except OverflowError as error:
        raise SettingsError(
            f"{option}: expected a time of the years 1 to 9999 in UTC, came {text!r}"
        ) from error


def say_beside(args: Options, output: str | None) -> Callable[[str], None]:
    """Where lines about a result go: to standard error, where standard output has the result."""
    return Progress(quiet=args.quiet).say if output == STANDARD_OUTPUT else say

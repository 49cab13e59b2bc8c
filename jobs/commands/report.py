"""``report``: the report of a published run, a page or a ticket; of several nights, a site."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..arguments import (
    DATE,
    LANGUAGE,
    REPORTS,
    SETTINGS,
    Options,
    Parser,
    UsageError,
    add_options,
    natural,
)

if TYPE_CHECKING:
    from ..settings import Settings

EXAMPLE = "report --reports out/reports --date 2026-11-20"
DETAIL = """
With --nights it writes a site: a page for each night, linked, and index.html with how each group
was, night by night. A night without a published run is shown as missing. Serve the folder, or open
index.html: the pages need no server."""

#: A site has so many nights at most: a year.
_MOST_NIGHTS = 366


def add_arguments(command: Parser) -> None:
    """Adds the options of the command."""
    table = """
    --nights N  a site of so many days of the calendar up to the date
    --output PATH  the file, or a folder (ends with /, or is one) that gets dt=<date>.<format>;
            -: standard output; of a site the folder; default: report/ beside the tables
    --format {html,markdown} [html]
    --top N [10]  how many topics, worst first, in full and with pictures; default: 10
    """
    add_options(command, REPORTS + DATE + table + LANGUAGE + SETTINGS, nights=_nights)


def _nights(text: str) -> int:
    number = natural(text)
    if not 1 <= number <= _MOST_NIGHTS:
        raise UsageError(f"expected a number of nights from 1 to {_MOST_NIGHTS}, came {text!r}")
    return number


def run(args: Options) -> int:
    """Writes the report or the site; returns the exit code."""
    from .common import settings_of

    settings = settings_of(args)
    if args.nights is None:
        write_page(args, settings)
    else:
        _write_site(args, settings)
    return 0


def write_page(args: Options, settings: Settings) -> None:
    """Writes the page, or the ticket, of one date."""
    from ..languages.language import language
    from ..rendering.write import Look, write_report
    from .common import reports_of, say_beside

    look = Look(args.top, settings.paths.finding_pages, language(settings.language))
    reports = reports_of(args, settings)
    written = reports.read(
        args.date,
        lambda published: write_report(reports, published, args.format, args.output, look),
    )
    say_what = say_beside(args, args.output)
    say_what(f"report of {written.date}: {written.report.verdict.sentence} {written.output}")


def _write_site(args: Options, settings: Settings) -> None:
    from rebalance_core.english import count

    from ..choices import STANDARD_OUTPUT
    from ..errors import AuditError, SettingsError
    from ..languages.language import language
    from ..output import say
    from ..progress import complain
    from ..rendering.site import write_site
    from ..rendering.write import Look
    from .common import reports_of

    if args.output == STANDARD_OUTPUT or args.format != "html":
        raise SettingsError("expected a folder and --format html with --nights: a site has pages")
    reports = reports_of(args, settings)
    last = reports.resolve(args.date).date
    look = Look(args.top, settings.paths.finding_pages, language(settings.language))
    site = write_site(reports, last, args.nights, args.output, look)
    say(f"site: {count(len(site.pages), 'page')} up to {last}, and their index {site.index}")
    for line in site.failed:
        complain(line)
    if site.failed:
        raise AuditError("not every night has a page: see the lines before")

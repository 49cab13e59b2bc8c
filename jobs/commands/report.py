"""``report``: a published run as a page or a ticket, nights as a site, a finding as a picture."""

from pathlib import PurePath

from rebalance_core.english import count

from ..config.choices import STANDARD_OUTPUT
from ..config.settings import Settings
from ..console.arguments import Options
from ..console.output import say
from ..console.progress import complain
from ..errors import AuditError, SettingsError
from ..rendering.write import Look, write_picture, write_report, write_site
from .common import reports_of, say_beside, settings_of


def run(args: Options) -> int:
    """Writes the report or the site; returns the exit code."""
    settings = settings_of(args)
    if args.finding is not None:
        if args.format != "html":
            raise SettingsError("expected --finding without --format: its picture is SVG")
        output = PurePath(args.output or "")
        if output.suffix not in ("", ".svg"):
            name = output.with_name(f"{output.name.partition('.')[0]}.svg")
            raise SettingsError(
                f"expected --output {name} with --finding, came {args.output}: the picture is an "
                "SVG; for a PNG, open it in a browser and take a screenshot"
            )
    (write_page if args.nights is None else _write_site)(args, settings)
    return 0


def write_page(args: Options, settings: Settings) -> None:
    """Writes the page or the ticket of one date, or the picture of a finding."""
    reports, look = reports_of(args, settings), _look(args, settings)
    if args.finding is None:
        report, place = write_report(reports, args.date, args.format, args.output, look)
        what = f"report of {report.published.date}: {report.verdict.sentence}"
    else:
        place = write_picture(reports, args.date, args.finding, args.output, look)
        what = f"picture of finding {args.finding}:"
    say_beside(args, args.output)(f"{what} {place}")


def _write_site(args: Options, settings: Settings) -> None:
    if args.output == STANDARD_OUTPUT or args.format != "html":
        raise SettingsError("expected a folder and --format html with --nights: a site has pages")
    reports = reports_of(args, settings)
    last = reports.resolve(args.date).date
    site = write_site(reports, last, args.nights, args.output, _look(args, settings))
    say(f"site: {count(len(site.pages), 'page')} up to {last}, and their index {site.index}")
    for line in site.failed:
        complain(line)
    if site.failed:
        raise AuditError("not every night has a page: see the lines before")


def _look(args: Options, settings: Settings) -> Look:
    return Look(args.top, settings.paths.finding_pages, settings.reader)

"""One published run -> one file: reads the tables, renders them, puts the file where it belongs."""

from typing import NamedTuple

from ..config.choices import STANDARD_OUTPUT
from ..console.output import Output, output_at
from ..languages.language import ENGLISH, Language
from ..reports.tables import PublishedTables
from ..storage import Location, PublishedRun, Reports
from .finding_pages import FindingPages
from .nights import STRIP_NIGHTS, History, Nights, read_history
from .page import to_html, to_markdown, to_svg
from .page_values import PageValues, build_report, card_of

#: The ending of the file's name, by format.
_ENDINGS = {"html": "html", "markdown": "md"}


class Look(NamedTuple):
    """The look of pages, whichever run they are of.

    ``top``: how many problems have pictures, at least. ``finding_pages`` is the address of the
    pages on the findings, where they are published.
    """

    top: int
    finding_pages: str | None = None
    language: Language = ENGLISH


def write_report(
    reports: Reports, date: str | None, form: str, output: str | None, look: Look
) -> tuple[PageValues, Output]:
    """Writes the report of a date (None: the last) as ``html`` or ``markdown``; returns both.

    A reader of the file sees the old report or the new, never a part of one. ``output`` is a file,
    or a folder, by its name or by what is there; None: ``report/`` beside the tables; ``-``:
    standard output.
    """
    text, report = reports.read(date, lambda run: report_text(reports, run, form, look))
    place = _place(reports, output, f"dt={report.published.date}.{_ENDINGS[form]}")
    place.replace_text(text)
    return report, place


def report_text(
    reports: Reports,
    published: PublishedRun,
    form: str,
    look: Look,
    nights: Nights | None = None,
    history: History | None = None,
) -> tuple[str, PageValues]:
    """The same as a text, and what it shows.

    ``nights`` have their pages in the same folder; ``history`` has the nights up to this one, and
    is read where it is not given.
    """
    report = build_report(published, PublishedTables(reports, published), look.top)
    root, address, language = str(reports.root), look.finding_pages, look.language
    if form == "markdown":
        text = to_markdown(report, root, address, language, look.top)
    else:
        before = history or read_history(reports, published.date, STRIP_NIGHTS)
        pages = FindingPages.of_this_installation(language)
        text = to_html(report, root, address, pages, nights, before, language)
    return text, report


def write_picture(
    reports: Reports, date: str | None, finding_id: str, output: str | None, look: Look
) -> Output:
    """Writes the picture of what a finding is of, and says where; InputError: there is none."""
    card = reports.read(date, lambda run: card_of(PublishedTables(reports, run), finding_id))
    place = _place(reports, output, f"finding-{finding_id}.svg")
    place.replace_text(to_svg(card, look.language))
    return place


def _place(reports: Reports, output: str | None, name: str) -> Output:
    if output is None:
        return reports.root / "report" / name
    if output == STANDARD_OUTPUT:
        return output_at(output)
    location = Location(output)
    return location / name if output.endswith("/") or location.is_folder() else location

"""One published run -> one file: reads the tables, renders them, puts the file where it belongs."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.rendering.exports import to_csv, to_json
from jobs.rendering.finding_pages import FindingPages
from jobs.rendering.nights import Nights
from jobs.rendering.page import to_html, to_markdown
from jobs.rendering.report import build_report
from jobs.rendering.tables import PublishedTables
from jobs.storage import Location, Published, Reports

#: By format the ending of the file's name.
_ENDINGS = {"html": "html", "markdown": "md", "csv": "csv", "json": "json"}


@dataclass(frozen=True)
class Written:
    """What was written, where, and what it says in one line."""

    date: str
    location: Location
    verdict: str


def write_report(
    reports: Reports,
    published: Published,
    form: str,
    output: str | None,
    top: int,
    finding_pages: str | None,
    nights: Nights | None = None,
) -> Written:
    """Writes the report of a run as ``html``, ``markdown``, ``csv`` or ``json``.

    A reader of the file sees the old report or the new, never a part of one. ``output`` is a file,
    or a folder, by its name or by what is there; None: ``report/`` beside the tables. ``top``
    bounds the topics that are told in full. ``nights`` have their pages in the same folder.
    """
    location = _place(reports, output, f"dt={published.date}.{_ENDINGS[form]}")
    report = build_report(published, PublishedTables(reports, published), top)
    root = str(reports.root)
    text = {
        "html": lambda: to_html(
            report, root, finding_pages, FindingPages.of_this_installation(), nights
        ),
        "markdown": lambda: to_markdown(report, root, finding_pages),
        "csv": lambda: to_csv(report),
        "json": lambda: to_json(report),
    }[form]()
    location.replace_text(text)
    return Written(published.date, location, report.verdict.sentence)


def _place(reports: Reports, output: str | None, name: str) -> Location:
    if output is None:
        return reports.root / "report" / name
    location = Location(output)
    return location / name if output.endswith("/") or location.is_folder() else location

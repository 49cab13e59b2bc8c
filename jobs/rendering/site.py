"""Many published runs -> one folder: a page for each night, linked, and the index of them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..errors import AuditError
from ..failures import sentence_of
from ..languages.language import ENGLISH, Language
from ..storage import Location, Published, Reports
from .nights import INDEX, STRIP_NIGHTS, History, Nights, read_history
from .page import html_environment
from .write import Look, write_report


@dataclass
class Site:
    """What was written: the index, and the nights that have a page; ``failed``: why others have
    none.
    """

    index: Location
    pages: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def write_site(reports: Reports, last: str, most: int, output: str | None, look: Look) -> Site:
    """Writes the pages of the ``most`` nights up to this one, and ``index.html`` with all of them.

    ``output`` is a folder; None: ``report/`` beside the tables. A night whose tables are damaged
    has no page and no link; the index shows it all the same.
    """
    folder = reports.root / "report" if output is None else Location(output)
    with_earlier = read_history(reports, last, most + STRIP_NIGHTS - 1)
    history = with_earlier.up_to(last, most)
    site = Site(folder / INDEX)

    def write(night: str, nights: Sequence[str]) -> bool:
        def use(published: Published) -> None:
            around = Nights.around(night, nights)
            place = f"{folder}/{Nights.page(night)}"
            before = with_earlier.up_to(night, STRIP_NIGHTS)
            write_report(reports, published, "html", place, look, around, before)

        try:
            reports.read(night, use)
        except (AuditError, OSError) as error:
            site.failed.append(f"no page of {night}: {sentence_of(error)}")
            return False
        return True

    nights = [night.date for night in history.nights if night.is_published]
    site.pages = [night for night in nights if write(night, nights)]
    for night in list(site.pages):
        # What was linked to a page that could not be written is linked to the next one.
        if Nights.around(night, nights) != Nights.around(night, site.pages):
            write(night, site.pages)
    site.index.replace_text(to_html(history, site.pages, look.language))
    return site


def to_html(history: History, pages: Sequence[str], language: Language = ENGLISH) -> str:
    """The index; ``pages`` are the nights that it links to."""
    template = html_environment(language).get_template("nights.html")
    return template.render(
        history=history,
        page=Nights.page,
        pages=frozenset(pages),
        several_clusters=len({strip.cluster for strip in history.strips}) > 1,
    )

"""Published runs -> files: reads the tables, renders them, puts the files where they belong.

Of one run a file; of many a folder: a page for each night, linked, and the index of them all.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rebalance_core.english import joined
from rebalance_core.texts import Text

from ..config.choices import STANDARD_OUTPUT
from ..console.output import Output, output_at
from ..declared.kinds import Kind
from ..errors import AuditError
from ..languages.language import ENGLISH, Language
from ..reports.tables import PublishedTables
from ..storage import Location, PublishedRun, Reports
from ..texts.failures import sentence_of
from .nights import INDEX, STRIP_NIGHTS, History, Nights, chart_of, read_history
from .page import FindingPages, html_environment, to_html, to_markdown, to_svg
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


class NightPage(NamedTuple):
    """The part of a night's page that the index takes.

    ``anchors``: by cluster and group where it shows most of the group; of very many groups some are
    in the list of their names alone. ``causes``: the number of topics with something that lasts and
    is not a known issue, by its main cause: as many as its verdict has. ``left_open``: of the other
    topics those in which something was open before and was not looked for.
    """

    anchors: Mapping[tuple[str, ...], str]
    causes: Counter[Kind]
    left_open: int = 0

    @property
    def sentence(self) -> str:
        """The causes in words, the commonest first."""
        return joined(
            Text("{cause}: {number:,}", cause=title, number=number)
            for title, number in [
                *((kind.title, number) for kind, number in self.causes.most_common()),
                (Text("open before and not looked for"), self.left_open),
            ]
            if number
        ) or Text("no lasting findings")


@dataclass
class Site:
    """The files written: the index, and by night its page; ``failed``: why others have none."""

    index: Location
    pages: dict[str, NightPage] = field(default_factory=dict)
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

    def write(night: str, nights: Sequence[str]) -> None:
        def read(published: PublishedRun) -> tuple[str, PageValues]:
            around = Nights.around(night, nights)
            before = with_earlier.up_to(night, STRIP_NIGHTS)
            return report_text(reports, published, "html", look, around, before)

        try:
            text, report = reports.read(night, read)
            (folder / Nights.page(night)).replace_text(text)
            causes = Counter(problem.main_kind for problem in report.counted)
            left_open = len(report.left_open)
            site.pages[night] = NightPage(report.anchors_of_groups, causes, left_open)
        except (AuditError, OSError) as error:
            site.failed.append(f"no page of {night}: {sentence_of(error)}")

    nights = [night.date for night in history.nights if night.is_published]
    for night in nights:
        write(night, nights)
    for night in (there := list(site.pages)):
        # Links to a page that could not be written go to the next one.
        if Nights.around(night, nights) != Nights.around(night, there):
            write(night, there)
    site.index.replace_text(to_index(history, site.pages, look.language))
    return site


def to_index(history: History, pages: Mapping[str, NightPage], language: Language = ENGLISH) -> str:
    """The index; ``pages`` are those that it links to, by night. The chart has these nights alone,
    for of others nobody knows what lasted.
    """
    template = html_environment(language).get_template("nights.html")
    dates = [night.date for night in history.nights]
    return template.render(
        chart=chart_of(
            [pages[date].causes if date in pages else Counter() for date in dates],
            [pages[date].left_open if date in pages else 0 for date in dates],
        ),
        history=history,
        page=Nights.page,
        pages=pages,
        several_clusters=len({strip.cluster for strip in history.strips}) > 1,
    )

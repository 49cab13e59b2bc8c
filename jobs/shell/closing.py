"""The last lines of a run, of a command or in a shell: what is missing, what was found."""

from datetime import UTC

from rebalance_core.english import agreeing, count, list_of

from ..config.settings import Settings
from ..declared.kinds import QUEUE_FINDINGS
from ..languages.language import Language
from ..reports.problem_lines import ending_lines
from ..reports.problems import read_problems
from ..reports.run_findings import leading_events
from ..reports.tables import PublishedTables, Tables
from ..reports.words import sentences
from ..storage import Location, PublishedRun
from ..texts.shown import folded, visible
from ..verdict.gaps import ROUNDS_TOO_SHORT
from ..verdict.verdict import RunVerdict, read_verdict

#: The most sentences on what is missing that are shown after a run.
_MOST_MISSING = 5
_MOST_EVENTS = 3


def closing_lines(
    tables: PublishedTables, settings: Settings, width: int, reports: Location | None = None
) -> tuple[list[str], list[str]]:
    """The lines on what is missing, and the last lines of a run, of so many columns."""
    published, problems, verdict = tables.published, read_problems(tables), read_verdict(tables)
    is_short = any(gap.kind == ROUNDS_TOO_SHORT for gap in verdict.gaps)
    language = settings.console_language
    return what_is_missing(verdict, language), [
        *([] if language.zone is UTC else [f"times: {language.zone}"]),
        *what_happened(tables, language),
        *ending_lines(problems, width, language, is_short=is_short),
        *none_lasts(published, settings),
        sum_up(published, verdict, reports),
        *folded(visible(language.of(sentences([verdict.sentence, *verdict.remarks]))), width),
    ]


def what_is_missing(verdict: RunVerdict, language: Language) -> list[str]:
    """A line for each thing that was not read or not audited; of many the first ones."""
    lines = [
        f"not complete: {visible(language.of(text))}" for text in verdict.missing[:_MOST_MISSING]
    ]
    more = len(verdict.missing) - _MOST_MISSING
    return [*lines, f"and {more} more: see the page"] if more > 0 else lines


def what_happened(tables: Tables, language: Language) -> list[str]:
    """A line for each event that leads, and one for the others."""
    events, others = leading_events(tables, _MOST_EVENTS)
    lines = [visible(language.of(event.headline)) for event in events]
    if lines and others:
        lines.append(f"and {count(others, 'more event')}: rebalance-audit show events")
    return lines


#: The words for findings, by table.
_FOUND = dict(zip(QUEUE_FINDINGS, ("orphaned", "duplicated", "stalled queues"), strict=True))


def sum_up(published: PublishedRun, verdict: RunVerdict, reports: Location | None) -> str:
    """The one line for people on how it went; machines read summary.json."""
    rows, findings = published.summary["rows"], published.summary["findings"]
    figures = [
        f"{findings[name]['persistent']} persistent of {findings[name]['total']} {words}"
        for name, words in _FOUND.items()
    ]
    known_issues = sum(findings[name]["known"]["persistent"] for name in QUEUE_FINDINGS)
    if known_issues:
        figures[-1] += f" ({known_issues} of all these are known issues)"
    assumed = published.summary["assumptions"]
    wide = published.summary["rounds"]["groups_too_wide"]
    parts = [
        f"rebalance audit of {published.date}: {', '.join(figures)}, "
        f"{count(rows['stacked_client_ids'], 'shared client id')}, in "
        f"{count(rows['group_health'], 'group and topic', 'groups and topics')}"
    ]
    if not_audited := sum(len(unaudited.places) for unaudited in verdict.not_audited):
        parts[-1] += f", {not_audited:,} not audited"
    resting = "{number:,} [group rests|groups rest] on an assumption: "
    for number, advice in (
        (assumed["groups"] - assumed["asked"], "collect running infos"),
        (assumed["asked"], "members asked for running infos did not answer, or name no strategy"),
    ):
        if number:
            parts.append(agreeing(number, resting + advice, number=number))
    if wide:
        asked = "{number:,} [group was|groups were] asked in rounds that are too wide to compare"
        parts.append(agreeing(wide, f"{asked} brokers", number=wide))
    if reports is not None:
        parts.append(f"reports at {reports}")
    return "; ".join(parts)


def none_lasts(published: PublishedRun, settings: Settings) -> list[str]:
    """The line with the reason why no finding of a queue lasts, where there are findings."""
    findings = published.summary["findings"]
    found = {name: findings[name]["total"] for name in QUEUE_FINDINGS if findings[name]["total"]}
    if not found or any(findings[name]["persistent"] for name in found):
        return []
    figures = [
        f"{number:,} {_FOUND[name].removesuffix(' queues')}" for name, number in found.items()
    ]
    queues, do_count = ("queue", "counts") if sum(found.values()) == 1 else ("queues", "count")
    return [
        f"{list_of(figures)} {queues} lasted less than persistence_seconds = "
        f"{settings.persistence_seconds} and {do_count} as passing: "
        f"rebalance-audit {list_of([f'show {name}' for name in found])}"
    ]

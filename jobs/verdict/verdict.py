"""The tables and the summary of a run -> its verdict: the one value that every surface shows.

A run is WRONG where something lasts that is not a known issue. It is INCOMPLETE where nothing is
wrong and something was not read or not audited: then nothing is known, and it is never shown as
well. Else it is WELL, whatever passed by itself. What is wrong may be incomplete, too.

``make_verdict`` reads tables. What has the summary alone (a strip of nights, the gate of the DAG)
takes what ``RunVerdict.packed`` wrote into it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import accumulate, chain
from typing import Any, NamedTuple

from rebalance_core.english import MOST_NAMES, agreeing, count, list_of, names
from rebalance_core.grouping import grouped
from rebalance_core.texts import Text

from ..config.choices import INCOMPLETE, SEVERITIES
from ..declared.kinds import (
    COMPUTED_NOT_HELD,
    CRITICAL,
    HELD_NOT_COMPUTED,
    INFO,
    NOT_AUDITED,
    OK,
    PERSISTENT,
    STACKED,
    UNREADABLE,
    worst,
)
from ..languages.translated_rows import TEXTS, with_texts
from ..reports.problems import Problem
from ..reports.tables import PLACE, Place, Tables, place_of
from ..reports.waiting import WaitingMessages
from ..reports.words import in_words
from ..schemas import UNAUDITED
from .coverage import action_of, is_complete
from .gaps import Gap, gaps_of, time_text

#: The states of a run.
WRONG, WELL = "WRONG", "WELL"
STATES = (WRONG, INCOMPLETE, WELL)
#: The key of the summary.
_KEY = "verdict"


class UnauditedTopics(NamedTuple):
    """The topics that were not audited, of one coverage; ``reason``: that of the first.

    ``times``: from when to when the first of them was not; none: never was it audited.
    """

    coverage: str
    places: tuple[Place, ...]
    reason: str
    times: tuple[datetime, ...] = ()

    def of_groups(self, matches: Callable[[str], object]) -> "UnauditedTopics":
        """The part about groups whose names match."""
        places = tuple(each for each in self.places if matches(each.consumer_group))
        return self._replace(places=places)

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Clusters and names of the groups."""
        return tuple(dict.fromkeys(each[:2] for each in self.places))

    @property
    def text(self) -> Text:
        """The places, the reason, and what to do."""
        template = "not audited ({coverage}): {topics} of {groups}: {reason}. To do: {action}"
        values: dict[str, str] = {"reason": self.reason}
        if self.times:
            template = (
                "not audited for some time ({coverage}), for example from {since} to {until}: "
                "{topics} of {groups}. To do: {action}"
            )
            values = dict(zip(("since", "until"), map(time_text, self.times), strict=True))
        return Text(
            template,
            coverage=in_words(self.coverage),
            topics=count(len(self.places), "topic"),
            groups=list_of([each[1] for each in self.groups], MOST_NAMES),
            action=action_of(self.coverage),
            **values,
        )


#: Remarks for a reader, by what becomes of a problem.
_STANDINGS = {
    "PASSED": "{topics} had a short disturbance and recovered (deploy, restart).",
    "BEGUN": "In {topics} something was not seen for long yet, or is too unlikely to count: the "
    "next run will show.",
    "KNOWN": "In {topics} something is a known issue, which does not count.",
}
#: And by the kinds that have no severity.
_FACTS = {
    UNREADABLE: "In {topics} queues are written that nobody can read.",
    STACKED: "In {topics} several processes share a client id.",
    HELD_NOT_COMPUTED: "In {topics} clients hold queues outside their share.",
    COMPUTED_NOT_HELD: "In {topics} clients lack queues of their share.",
}


@dataclass(frozen=True, kw_only=True)
class RunVerdict:
    """The worth of a run.

    Lasting findings that are not known issues: ``topics`` by severity, ``kinds`` by main cause, the
    worst first, the number of their ``groups``, the number of topics that are ``ongoing``: there in
    the last snapshot, and the messages ``waiting`` there. ``others``: the number of topics with
    something that does not count, by its ``Standing`` or by a kind that has no severity. ``rows``:
    the number of rows of findings that are not known issues, by severity.

    ``gaps``: what was not read. ``not_audited``: what was not audited, by coverage.
    ``slow_rounds``: the seconds between two rounds of clusters where these are many.
    ``left_open``: how many findings of the run before were not looked for, and so are still open.
    """

    topics: Mapping[str, int]
    kinds: Mapping[str, int]
    groups: int
    ongoing: int
    waiting: WaitingMessages
    others: Mapping[str, int]
    rows: Mapping[str, int]
    gaps: tuple[Gap, ...]
    not_audited: tuple[UnauditedTopics, ...]
    left_open: int
    slow_rounds: Mapping[str, float]

    @property
    def is_complete(self) -> bool:
        """True if all was read, and all of it audited."""
        return not self.missing

    @property
    def state(self) -> str:
        """One of ``STATES``."""
        if self.counted:
            return WRONG
        return WELL if self.is_complete else INCOMPLETE

    @property
    def level(self) -> str:
        """The level on a page: CRITICAL, WARNING, INCOMPLETE, INFO (something passed) or OK."""
        if self.counted:
            return worst(severity for severity, topics in self.topics.items() if topics)
        if not self.is_complete:
            return INCOMPLETE
        return INFO if self.others.get("PASSED") or self.others.get("BEGUN") else OK

    @property
    def counted(self) -> int:
        """The number of topics with something that lasts and is not a known issue."""
        return sum(self.topics.values())

    @cached_property
    def missing(self) -> list[Text]:
        """A sentence for each thing that was not read or not audited, one of each kind first."""
        firsts = {gap.kind: gap for gap in reversed(self.gaps)}.values()
        in_order = sorted(self.gaps, key=lambda gap: all(gap is not each for each in firsts))
        texts = [gap.text for gap in in_order] + [each.text for each in self.not_audited]
        if self.left_open:
            findings = count(self.left_open, "finding")
            template = "{findings} of the previous run [was|were] not checked and [stays|stay] open"
            texts.append(agreeing(self.left_open, template, findings=findings))
        return texts

    @property
    def sentence(self) -> Text:
        """The first sentence on the run."""
        if not self.counted:
            passed = self.others.get("PASSED") or self.others.get("BEGUN")
            if not self.is_complete:
                return Text("Nothing lasting was found, but not everything was audited.")
            return Text("Nothing lasting was found.") if passed else Text("Nothing was found.")
        faults = agreeing(
            self.counted,
            "{topics} of {groups} [has|have] lasting faults",
            topics=count(self.counted, "topic"),
            groups=count(self.groups, "group"),
        )
        critical = self.topics.get(CRITICAL, 0)
        if critical == self.counted > 1:
            return Text("{faults}, all critical.", faults=faults)
        if critical:
            return Text("{faults}, {critical:,} critical.", faults=faults, critical=critical)
        return Text("{faults}.", faults=faults)

    @cached_property
    def remarks(self) -> tuple[Text, ...]:
        """Remarks that a reader has to know besides."""
        return tuple(self._remarks())

    def _remarks(self) -> Iterator[Text]:
        if self.counted and self.ongoing:
            template = "{number:,} [is|are] still there in the last snapshot."
            yield agreeing(self.ongoing, template, number=self.ongoing)
        elif self.counted:
            yield Text("None of them is left in the last snapshot.")
        if waiting := self.waiting.text:
            yield Text("In these topics {waiting}.", waiting=waiting)
        if self.missing:
            template = "{number:,} [thing was|things were] not read or not audited."
            yield agreeing(len(self.missing), template, number=len(self.missing))
        for standing, template in _STANDINGS.items():
            if number := self.others.get(standing, 0):
                yield agreeing(number, template, topics=count(number, "topic"))
        yield from self.facts
        if self.slow_rounds:
            seconds = max(self.slow_rounds.values())
            yield Text(
                "In {clusters} a round comes every {seconds:,.0f} s: what lasts for less than "
                "{surely:,.0f} s may not be seen to last.",
                clusters=names(list(self.slow_rounds), MOST_NAMES),
                seconds=seconds,
                # It is in two rounds.
                surely=2 * seconds,
            )

    @property
    def facts(self) -> list[Text]:
        """A sentence for each kind without a severity that there is."""
        return [
            agreeing(number, template, topics=count(number, "topic"))
            for kind, template in _FACTS.items()
            if (number := self.others.get(kind, 0))
        ]

    def about(self, matches: Callable[[str], object]) -> "RunVerdict":
        """The same of what was not audited of the groups alone whose names match."""
        of_groups = (each.of_groups(matches) for each in self.not_audited)
        return replace(self, not_audited=tuple(each for each in of_groups if each.groups))

    @property
    def gates(self) -> dict[str, int]:
        """The count that closes each gate: rows of its severity or worse, or the ``missing``."""
        worst_first = SEVERITIES[::-1]
        at_or_above = accumulate(self.rows.get(each, 0) for each in worst_first)
        return dict(zip((*worst_first, INCOMPLETE), (*at_or_above, len(self.missing)), strict=True))

    def packed(self) -> dict[str, Any]:
        """The verdict as a summary has it, for readers that have no tables."""
        topics = self.not_audited
        every = grouped((each.coverage, place) for each in topics for place in each.places)
        return {
            _KEY: {
                "state": self.state,
                "level": self.level,
                "gates": self.gates,
                "topics": dict(self.topics),
                "kinds": dict(self.kinds),
                "others": dict(self.others),
                "not_audited": {
                    coverage: {"groups": len({each[:2] for each in places}), "topics": len(places)}
                    for coverage, places in every.items()
                },
                "gaps": dict(Counter(gap.kind for gap in self.gaps)),
                "left_open": self.left_open,
            }
        }


def make_verdict(
    summary: Mapping[str, Any], tables: Tables, problems: Sequence[Problem]
) -> RunVerdict:
    """The verdict on a run; ``problems``: those of its tables (``find_problems``)."""
    counted = [each for each in problems if each.is_counted]
    rows: Counter[str] = Counter()
    for finding in chain.from_iterable(each.findings for each in problems):
        if finding.known_issue is None:
            rows[finding.severity] += len(finding.ids)
    statuses = tables.read("former_findings", ["status"])["status"].to_pylist()
    return RunVerdict(
        topics=Counter(each.severity for each in counted),
        kinds=Counter(each.main_kind.name for each in counted),
        groups=len({each.place[:2] for each in counted}),
        ongoing=sum(each.ongoing for each in counted),
        waiting=WaitingMessages.of_all(each.waiting for each in counted),
        others=_others(tables, problems),
        rows=rows,
        gaps=tuple(gaps_of(summary)),
        not_audited=tuple(_not_audited(tables)),
        left_open=statuses.count(NOT_AUDITED),
        slow_rounds=summary.get("slow_rounds") or {},
    )


def _others(tables: Tables, problems: Iterable[Problem]) -> dict[str, int]:
    """The number of topics with what does not count, by what becomes of it or by its kind."""
    found = Counter(each.standing for each in problems if not each.is_counted)
    unreadable = {place_of(row) for row in tables.read("unreadable_queues", PLACE).to_pylist()}
    columns = [*PLACE[:2], "topics", "verdict", "persistence", "known_issue"]
    stacked = {
        (row["cluster"], row["consumer_group"], topic)
        for row in tables.read("stacked_client_ids", columns).to_pylist()
        if (row["verdict"], row["persistence"]) == (STACKED, PERSISTENT)
        and row["known_issue"] is None
        for topic in row["topics"] or [""]
    }
    drift = grouped(
        (row["drift"], place_of(row))
        for row in tables.read(
            "allocation_drift", [*PLACE, "drift", "persistence", "attributed_to"]
        ).to_pylist()
        if row["persistence"] == PERSISTENT
        and row["attributed_to"] not in ("ROUTE_CHANGED", "STATE_CHANGED")
    )
    return {
        **found,
        **{kind: len(set(places)) for kind, places in drift.items()},
        UNREADABLE: len(unreadable),
        STACKED: len(stacked),
    }


def _not_audited(tables: Tables) -> Iterator[UnauditedTopics]:
    """Topics that were not audited, or not for a time, by coverage, without known issues."""
    columns = [*PLACE, "coverage", "reason", "known_issue", TEXTS]
    rows = tables.read("group_health", [*columns, *UNAUDITED]).to_pylist()
    rows = sorted((each for each in rows if each["known_issue"] is None), key=place_of)
    whole = grouped((each["coverage"], each) for each in rows if not is_complete(each["coverage"]))
    for coverage, of_coverage in sorted(whole.items()):
        reason = with_texts(of_coverage[0])["reason"]
        yield UnauditedTopics(coverage, tuple(map(place_of, of_coverage)), reason)
    partly = grouped(
        (each["unaudited_coverage"], each)
        for each in rows
        if each["unaudited_coverage"] is not None and is_complete(each["coverage"])
    )
    for coverage, of_coverage in sorted(partly.items()):
        times = tuple(of_coverage[0][name] for name in UNAUDITED[1:])
        yield UnauditedTopics(coverage, tuple(map(place_of, of_coverage)), "", times)


def packed_verdict(summary: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The verdict in a summary (``RunVerdict.packed``); None in one of an earlier version."""
    return summary.get(_KEY)

"""The problems of a run and what it lacks -> its verdict: the one value that every surface shows.

A run is WRONG where something lasts that is not a known issue. It is INCOMPLETE where nothing is
wrong and something was not read or not audited: then nothing is known, and it is never shown as
well. Else it is WELL, whatever passed by itself. What is wrong may be incomplete, too.

The writer alone makes it (``make_verdict``), and publishes it as the tables ``verdict`` and
``gaps``, which ``read_verdict`` reads. What has the summary alone (a strip of nights, the gate of
the DAG) takes what ``RunVerdict.packed`` wrote into it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate
from typing import Any, NamedTuple

from rebalance_core.english import MOST_NAMES, agreeing, count, list_of, names
from rebalance_core.grouping import grouped
from rebalance_core.texts import Text

from ..config.choices import INCOMPLETE, SEVERITIES
from ..declared import kinds
from ..declared.coverage import action_of, is_complete
from ..errors import DamagedError
from ..languages.translated_rows import TEXTS, with_texts
from ..reports.tables import PLACE, Place, Tables, place_of
from ..reports.words import in_words
from ..schemas import GAPS, PROBLEMS, UNAUDITED, VERDICT
from ..texts.waiting import COLUMNS, WaitingMessages
from .gaps import LEFT_OPEN, UNAUDITED_TOPICS, Gap, time_text

#: The states of a run.
WRONG, WELL = "WRONG", "WELL"
STATES = (WRONG, INCOMPLETE, WELL)
#: The severities of what lasts.
_LASTING = (kinds.CRITICAL, kinds.WARNING)


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
        places = tuple(place for place in self.places if matches(place.consumer_group))
        return self._replace(places=places)

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Clusters and names of the groups."""
        return tuple(dict.fromkeys(place[:2] for place in self.places))

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
            groups=list_of([group[1] for group in self.groups], MOST_NAMES),
            action=action_of(self.coverage),
            **values,
        )


#: Remarks for a reader, by what becomes of a problem, and by the kinds that have no severity.
_STANDINGS_AND_FACTS = {
    "PASSED": "{topics} had a short disturbance and recovered (deploy, restart).",
    "BEGUN": "In {topics} something does not count: it was not seen for long yet, is too unlikely, "
    "or harms nobody.",
    "HARMLESS": "In {topics} members differ, which is harmless today: with fewer of them queues "
    "would be wrong.",
    "KNOWN": "In {topics} something is a known issue, which does not count.",
    kinds.UNREADABLE: "In {topics} queues are written that nobody can read.",
    kinds.STACKED: "In {topics} several processes share a client id.",
    kinds.HELD_NOT_COMPUTED: "In {topics} clients hold queues outside their share.",
    kinds.COMPUTED_NOT_HELD: "In {topics} clients lack queues of their share.",
}


@dataclass(frozen=True, kw_only=True)
class RunVerdict:
    """The worth of a run.

    Lasting findings that are not known issues: ``topics`` by severity, ``kinds`` by main cause, the
    worst first, the number of their ``groups``, the number of topics that are ``ongoing``: there in
    the last snapshot, and that were, ``unseen`` since, when their group was last asked about, and
    the messages ``waiting`` there. ``others``: the number of topics with
    something that does not count, by its ``Standing`` or by a kind that has no severity. ``rows``:
    the number of rows of findings that are not known issues, by severity.

    ``gaps``: what was not read. ``not_audited``: what was not audited, by coverage.
    ``slow_rounds``: the seconds between two rounds of clusters where these are many.

    ``new``, ``returned``: of the topics with new findings those that were not there before, and
    those that were, and were over.
    Of the findings of the run before ``resolved`` are over, and ``left_open`` were not looked for,
    and so are still open.
    """

    run_id: str

    topics: Mapping[str, int]
    kinds: Mapping[str, int]
    groups: int
    ongoing: int
    ongoing_critical: int
    unseen: int
    waiting: WaitingMessages
    others: Mapping[str, int]
    rows: Mapping[str, int]
    gaps: tuple[Gap, ...]
    not_audited: tuple[UnauditedTopics, ...]
    new: int
    returned: int
    resolved: int
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
            return kinds.worst(severity for severity, topics in self.topics.items() if topics)
        if not self.is_complete:
            return INCOMPLETE
        return kinds.INFO if self._has_more else kinds.OK

    @property
    def _has_more(self) -> bool:
        return any(self.others.get(standing) for standing in ("PASSED", "BEGUN", "HARMLESS"))

    @property
    def counted(self) -> int:
        """The number of topics with something that lasts and is not a known issue."""
        return sum(self.topics.values())

    @property
    def missing(self) -> list[Text]:
        """A sentence for each thing that was not read or not audited, one of each kind first."""
        return [row["text"] for row in self.rows_of_gaps()]

    @property
    def sentence(self) -> Text:
        """The first sentence on the run."""
        if not self.counted:
            if not self.is_complete:
                return Text("Nothing lasting was found, but not everything was audited.")
            if self.others.get("PASSED") or self.others.get("BEGUN"):
                return Text("Nothing lasting was found.")
            return Text("No queue is wrong.") if self._has_more else Text("Nothing was found.")
        faults = agreeing(
            self.counted,
            "{topics} of {groups} [has|have] lasting faults",
            topics=count(self.counted, "topic"),
            groups=count(self.groups, "group"),
        )
        critical = self.topics.get(kinds.CRITICAL, 0)
        if critical == self.counted > 1:
            return Text("{faults}, all critical.", faults=faults)
        if critical:
            return Text("{faults}, {critical:,} critical.", faults=faults, critical=critical)
        return Text("{faults}.", faults=faults)

    @property
    def remarks(self) -> tuple[Text, ...]:
        """Remarks that a reader has to know besides."""
        found = []
        if self.counted and self.ongoing:
            found.append(self._still_there)
        elif self.counted and not self.unseen:
            found.append(Text("None of them is left in the last snapshot."))
        if self.unseen:
            template = (
                "{number:,} [was|were] there when the group was last asked about, before the end."
            )
            found.append(agreeing(self.unseen, template, number=self.unseen))
        if waiting := self.waiting.text:
            found.append(Text("In these topics {waiting}.", waiting=waiting))
        if self.missing:
            template = "{number:,} [thing was|things were] not read or not audited."
            found.append(agreeing(len(self.missing), template, number=len(self.missing)))
        for name, template in _STANDINGS_AND_FACTS.items():
            if number := self.others.get(name, 0):
                found.append(agreeing(number, template, topics=count(number, "topic")))
        if self.slow_rounds:
            seconds = max(self.slow_rounds.values())
            text = Text(
                "In {clusters} a round comes every {seconds:,.0f} s: what lasts for less than "
                "{surely:,.0f} s may not be seen to last.",
                clusters=names(list(self.slow_rounds), MOST_NAMES),
                seconds=seconds,
                # It is in two rounds.
                surely=2 * seconds,
            )
            found.append(text)
        return tuple(found)

    @property
    def _still_there(self) -> Text:
        """The number of topics that are still there; of critical ones, where some were."""
        number, critical = self.ongoing, self.ongoing_critical
        was_critical = self.topics.get(kinds.CRITICAL, 0)
        is_said = was_critical == self.counted and critical == number
        template = "{number:,} [is|are] still there in the last snapshot, {critical:,} critical."
        if is_said or not was_critical:
            template = "{number:,} [is|are] still there in the last snapshot."
        elif not critical:
            template = "{number:,} [is|are] still there in the last snapshot, none critical."
        return agreeing(number, template, number=number, critical=critical)

    def about(self, matches: Callable[[str], object]) -> "RunVerdict":
        """The same of what was not audited of the groups alone whose names match."""
        of_groups = (unaudited.of_groups(matches) for unaudited in self.not_audited)
        not_audited = tuple(unaudited for unaudited in of_groups if unaudited.places)
        return replace(self, not_audited=not_audited)

    @property
    def gates(self) -> dict[str, int]:
        """The count that closes each gate: rows of its severity or worse, or the ``missing``."""
        worst_first = SEVERITIES[::-1]
        at_or_above = accumulate(self.rows.get(severity, 0) for severity in worst_first)
        return dict(zip((*worst_first, INCOMPLETE), (*at_or_above, len(self.missing)), strict=True))

    def packed(self) -> dict[str, Any]:
        """The verdict as a summary has it (``verdict``), for readers that have no tables."""
        topics = self.not_audited
        every = grouped((topic.coverage, place) for topic in topics for place in topic.places)
        return {
            "state": self.state,
            "level": self.level,
            "sentence": self.sentence,
            "gates": self.gates,
            "topics": dict(self.topics),
            "kinds": dict(self.kinds),
            "others": dict(self.others),
            "not_audited": {
                coverage: {"groups": len({place[:2] for place in places}), "topics": len(places)}
                for coverage, places in every.items()
            },
            "gaps": dict(Counter(gap.kind for gap in self.gaps)),
            **{name: getattr(self, name) for name in _AGAINST_BEFORE},
        }

    def row(self) -> dict[str, Any]:
        """The row of ``verdict``."""
        return {
            **{name: getattr(self, name) for name in _SAME},
            **{severity.lower(): self.topics.get(severity, 0) for severity in _LASTING},
            **{f"rows_{severity.lower()}": self.rows.get(severity, 0) for severity in SEVERITIES},
            "missing": len(self.missing),
            "kinds": [{"kind": kind, "topics": n} for kind, n in self.kinds.items()],
            "others": [{"kind": kind, "topics": n} for kind, n in self.others.items()],
            **self.waiting.columns,
            "slow_rounds": [
                {"cluster": cluster, "seconds": seconds}
                for cluster, seconds in self.slow_rounds.items()
            ],
        }

    def rows_of_gaps(self) -> list[dict[str, Any]]:
        """The rows of ``gaps``, one of each kind first."""
        firsts = {gap.kind: gap for gap in reversed(self.gaps)}.values()
        in_order = sorted(self.gaps, key=lambda gap: all(gap is not first for first in firsts))
        rows: list[dict[str, Any]] = [
            {"kind": gap.kind, "text": gap.text, "places": []} for gap in in_order
        ]
        rows += [
            {
                "kind": UNAUDITED_TOPICS,
                "text": unaudited.text,
                "coverage": unaudited.coverage,
                "places": [place._asdict() for place in unaudited.places],
                "reason": unaudited.reason,
                # None where it was never audited.
                **dict(zip(UNAUDITED[1:], unaudited.times, strict=False)),
            }
            for unaudited in self.not_audited
        ]
        if self.left_open:
            findings = count(self.left_open, "finding")
            template = "{findings} of the previous run [was|were] not checked and [stays|stay] open"
            text = agreeing(self.left_open, template, findings=findings)
            rows.append({"kind": LEFT_OPEN, "text": text, "places": []})
        return rows


#: The columns of ``problems`` that a verdict is made of.
_OF_PROBLEMS = (
    *("standing", "severity", "worst_severity", "ongoing", "unseen_since", "kind", "statuses"),
    *("returned", *PLACE, *COLUMNS),
)
#: The numbers against the run before.
_AGAINST_BEFORE = ("new", "returned", "resolved", "left_open")
#: The columns of ``verdict`` that are a value of a ``RunVerdict`` as they are: those that it is
#: read from, and what follows from them.
_GIVEN = ("run_id", "groups", "ongoing", "ongoing_critical", "unseen", *_AGAINST_BEFORE)
_SAME = (*_GIVEN, "state", "level", "sentence")


def read_verdict(tables: Tables) -> RunVerdict:
    """The verdict that a run has published; DamagedError where it has none."""
    rows = tables.read(VERDICT.name, VERDICT.schema.names).to_pylist()
    if not rows:
        raise DamagedError(
            "expected the table verdict, came none: an earlier version published this run; "
            "audit its date again"
        )
    row = rows[0]
    gaps = list(map(with_texts, tables.read(GAPS.name, GAPS.schema.names).to_pylist()))
    by_kind, others = (
        {entry["kind"]: entry["topics"] for entry in row[name]} for name in ("kinds", "others")
    )
    return RunVerdict(
        **{name: row[name] for name in _GIVEN},
        topics={name: topics for name in _LASTING if (topics := row[name.lower()])},
        kinds=by_kind,
        others=others,
        waiting=WaitingMessages.of_columns(row),
        rows={severity: row[f"rows_{severity.lower()}"] for severity in SEVERITIES},
        gaps=tuple(
            Gap(gap["kind"], gap["text"])
            for gap in gaps
            if gap["kind"] not in (UNAUDITED_TOPICS, LEFT_OPEN)
        ),
        not_audited=tuple(
            UnauditedTopics(
                gap["coverage"],
                tuple(map(place_of, gap["places"])),
                gap["reason"] or "",
                tuple(gap[name] for name in UNAUDITED[1:] if gap[name] is not None),
            )
            for gap in gaps
            if gap["kind"] == UNAUDITED_TOPICS
        ),
        slow_rounds={entry["cluster"]: entry["seconds"] for entry in row["slow_rounds"]},
    )


def make_verdict(
    run_id: str,
    tables: Tables,
    findings: Mapping[str, Mapping[str, Any]],
    gaps: Iterable[Gap],
    slow_rounds: Mapping[str, float],
) -> RunVerdict:
    """The verdict on a run, of the rows of its tables: for the writer alone.

    ``findings``: their numbers by table, as a summary has them.
    """
    problems = tables.read(PROBLEMS.name, _OF_PROBLEMS).to_pylist()

    def order(row: Mapping[str, Any]) -> tuple[bool, int, str]:
        return not row["ongoing"], -SEVERITIES.index(row["worst_severity"]), row["kind"]

    counted = sorted((row for row in problems if row["standing"] == "COUNTED"), key=order)
    there = [row for row in counted if row["ongoing"] and row["unseen_since"] is None]
    statuses = tables.read("former_findings", ["status"])["status"].to_pylist()
    return RunVerdict(
        run_id=run_id,
        topics=Counter(row["worst_severity"] for row in counted),
        kinds=Counter(row["kind"] for row in counted),
        groups=len({place_of(row)[:2] for row in counted}),
        ongoing=len(there),
        ongoing_critical=sum(row["severity"] == kinds.CRITICAL for row in there),
        unseen=sum(row["unseen_since"] is not None for row in counted),
        waiting=WaitingMessages.of_all(map(WaitingMessages.of_columns, counted)),
        others=_others(tables, problems),
        rows={
            severity: sum(row[severity] - row["known"][severity] for row in findings.values())
            for severity in SEVERITIES
        },
        gaps=tuple(gaps),
        not_audited=tuple(_not_audited(tables)),
        new=sum("NEW" in row["statuses"] and row["returned"] is None for row in counted),
        returned=sum(row["returned"] is not None for row in counted),
        resolved=statuses.count("RESOLVED"),
        left_open=statuses.count(kinds.NOT_AUDITED),
        slow_rounds=slow_rounds,
    )


def _others(tables: Tables, problems: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """The number of topics with what does not count, by what becomes of it or by its kind."""
    found = Counter(sorted(problem["standing"] for problem in problems))
    found.pop("COUNTED", None)
    unreadable = {place_of(row) for row in tables.read("unreadable_queues", PLACE).to_pylist()}
    columns = [*PLACE[:2], "topics", "verdict", "persistence", "known_issue"]
    stacked = {
        (row["cluster"], row["consumer_group"], topic)
        for row in tables.read("stacked_client_ids", columns).to_pylist()
        if (row["verdict"], row["persistence"]) == (kinds.STACKED, kinds.PERSISTENT)
        and row["known_issue"] is None
        for topic in row["topics"] or [""]
    }
    columns = [*PLACE, "drift", "persistence", "attributed_to"]
    drift = grouped(
        (row["drift"], place_of(row))
        for row in tables.read("allocation_drift", columns).to_pylist()
        if row["persistence"] == kinds.PERSISTENT
        and row["attributed_to"] not in ("ROUTE_CHANGED", "STATE_CHANGED")
    )
    drift_by_kind = {kind: len(set(places)) for kind, places in sorted(drift.items())}
    return found | drift_by_kind | {kinds.UNREADABLE: len(unreadable), kinds.STACKED: len(stacked)}


def _not_audited(tables: Tables) -> Iterator[UnauditedTopics]:
    """Topics that were not audited, or not for a time, by coverage, without known issues."""
    columns = [*PLACE, "coverage", "reason", "known_issue", TEXTS]
    rows = tables.read("group_health", [*columns, *UNAUDITED]).to_pylist()
    rows = sorted((row for row in rows if row["known_issue"] is None), key=place_of)
    whole = grouped((row["coverage"], row) for row in rows if not is_complete(row["coverage"]))
    for coverage, rows_of_coverage in sorted(whole.items()):
        reason = with_texts(rows_of_coverage[0])["reason"]
        yield UnauditedTopics(coverage, tuple(map(place_of, rows_of_coverage)), reason)
    partly = grouped(
        (row["unaudited_coverage"], row)
        for row in rows
        if row["unaudited_coverage"] is not None and is_complete(row["coverage"])
    )
    for coverage, rows_of_coverage in sorted(partly.items()):
        times = tuple(rows_of_coverage[0][name] for name in UNAUDITED[1:])
        yield UnauditedTopics(coverage, tuple(map(place_of, rows_of_coverage)), "", times)

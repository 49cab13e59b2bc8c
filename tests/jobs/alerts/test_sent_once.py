"""Over random nights: what is open at the end was sent to whoever wants it, and once.

The status of each finding is what the judgement makes of the nights before; a destination's answers
are all that is played.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.alerts import alerting
from jobs.alerts.alerting import Sender, alert
from jobs.alerts.message import Digest, read_digest
from jobs.alerts.services.pagerduty import incident_key
from jobs.alerts.services.service import DeliveryError, HttpRequest, Refusal, Reply
from jobs.config.settings import Alerts, NamedDestination
from jobs.declared.dossier import EarlierFinding
from jobs.declared.instants import SECOND, to_datetime
from jobs.declared.kinds import SEVERITIES
from jobs.judge.result.rows import former_findings, openness
from jobs.judge.times import Extent
from jobs.reports.tables import Place, Tables
from jobs.storage import Location, PublishedRun, Reports
from tests.support.judged import with_problems, with_verdict
from tests.support.written_reports import NOON, SUMMARY, TABLES, report_row

FIRST = datetime(2026, 11, 1, tzinfo=UTC)
T, RETRY, ORDERS = Place("C", "G", "T"), Place("C", "G", "%RETRY%G"), Place("C", "ORDER", "T")
FINDINGS = {"one": T, "two": T, "retry": RETRY, "order": ORDERS}
_Read = TypeVar("_Read")


class Shown(NamedTuple):
    """What a night shows of a finding, if anything."""

    persistence: str
    ongoing: bool
    severity: str


OPEN = {each: Shown("PERSISTENT", True, each) for each in ("WARNING", "CRITICAL")}
SHOWN = [
    *([None] * 2),
    *(list(OPEN.values()) * 2),
    Shown("PERSISTENT", False, "CRITICAL"),
    Shown("TRANSIENT", False, "INFO"),
    Shown("TRANSIENT", True, "INFO"),
]
CHATS = {"ops": "JSON", "orders": "JSON", "later": "JSON"}


class Night(NamedTuple):
    """A night, and the alerts after it: ``alerted`` has the numbers of the nights that are."""

    shown: Mapping[str, Shown | None]
    unseen: set[Place]
    known: set[str]
    severity: Mapping[str, str]
    groups: str
    configured: set[str]
    refusing: set[str]
    alerted: list[int]


NIGHTS = st.lists(
    st.builds(
        Night,
        st.fixed_dictionaries(dict.fromkeys(FINDINGS, st.sampled_from(SHOWN))),
        st.sets(st.sampled_from([T, RETRY, ORDERS]), max_size=1),
        st.sets(st.sampled_from([*FINDINGS]), max_size=2),
        st.fixed_dictionaries(
            dict.fromkeys([*CHATS, "on-call"], st.sampled_from(["WARNING", "CRITICAL"]))
        ),
        st.sampled_from([".*", "ORDER"]),
        st.sets(st.sampled_from([*CHATS, "on-call"]), min_size=1),
        st.sets(st.sampled_from([*CHATS, "on-call"])),
        st.lists(st.integers(0, 5), max_size=3),
    ),
    min_size=2,
    max_size=5,
)


class Published(Reports):
    """Reports that are in memory; the note is on the disk."""

    def __init__(self, root: Path) -> None:
        super().__init__(Location(root))
        self.rows: dict[str, dict[str, list[dict[str, Any]]]] = {}

    def dates(self) -> list[str]:
        return sorted(self.rows)

    def resolve(self, date: str | None) -> PublishedRun:
        return PublishedRun(date or self.dates()[-1], "run", SUMMARY, {})

    def read(self, date: str | None, use: Callable[[PublishedRun], _Read]) -> _Read:
        return use(self.resolve(date))

    def tables(self, published: PublishedRun) -> Tables:
        made = with_verdict(with_problems(self.rows[published.date]))

        def open_table(name: str) -> Any:
            rows = made.get(name, [])
            return ds.dataset(pa.Table.from_pylist(rows, TABLES[name].schema))

        return Tables(open_table)


class World:
    """The nights so far, and what each destination got."""

    def __init__(self, root: Path) -> None:
        self.reports = Published(root)
        self.open: dict[str, EarlierFinding] = {}
        #: By date and finding: in which opening it is, how it is shown.
        self.openings: dict[str, int] = defaultdict(int)
        self.of_date: list[dict[str, int]] = []
        self.sent: dict[tuple[str, str, int], list[str]] = defaultdict(list)
        self.incidents: set[str] = set()
        self.digests: dict[str, Digest] = {}
        self.refusing: set[str] = set()
        self.date = 0

    def publish(self, night: Night) -> None:
        """A night as the judgement and the publication have it."""
        number, rows, left = len(self.of_date), [], {}
        start = int((FIRST + timedelta(days=number)).timestamp()) * SECOND
        for id_, place in FINDINGS.items():
            shown = None if place in night.unseen else night.shown[id_]
            if shown is None:
                continue
            extent = Extent(start + 60 * SECOND, start + 90 * SECOND, 9, *shown[:2])
            status = openness(id_, extent, self.open)
            if status.status == "NEW":
                self.openings[id_] += 1
            since = status.open_since and to_datetime(status.open_since)
            queue = {"queue_id": [*FINDINGS].index(id_), "finding_id": id_}
            values = {**status._asdict(), "open_since": since, **shown._asdict(), **queue}
            known = "OPS-1" if id_ in night.known else None
            rows.append(
                report_row("orphaned_queues", **place._asdict(), **values, known_issue=known)
            )
            if shown.persistence == "PERSISTENT" and shown.ongoing:
                since_, nights = status.open_since or 0, status.nights_open or 0
                left[id_] = EarlierFinding(
                    *(id_, "ORPHANED", place.topic, "broker-a", queue["queue_id"], start, start),
                    *(shown.severity, (), since_, nights),
                )
        former, go_on = [], {each["finding_id"] for each in rows if each["status"] == "PERSISTING"}
        for id_, each in self.open.items():
            place = FINDINGS[id_]
            audited = set() if place in night.unseen else {place.topic}
            for row in former_findings([each], go_on, audited, audited):
                named = {key: row[key] for key in ("finding_id", "status")}
                former.append(report_row("former_findings", **place._asdict(), **named))
                if row["status"] == "NOT_AUDITED":
                    left[id_] = each
        self.open = left
        coverage = {True: "NO_BROKER_ANSWERED", False: "AUDITED"}
        health = [
            report_row("group_health", **each._asdict(), coverage=coverage[each in night.unseen])
            for each in (T, RETRY, ORDERS)
        ]
        tables = {"orphaned_queues": rows, "former_findings": former, "group_health": health}
        self.reports.rows[_date(number)] = tables
        self.of_date.append(dict(self.openings))

    def read_digest(self, published: PublishedRun, tables: Tables) -> Digest:
        """The same, once for each night."""
        if published.date not in self.digests:
            self.digests[published.date] = read_digest(published, tables)
        return self.digests[published.date]

    def alert(self, number: int, night: Night) -> None:
        """The alert of a night, with the destinations and the answers of another one."""
        self.date, self.refusing = number, night.refusing
        named = [
            NamedDestination(
                name=name,
                service=CHATS.get(name, "PAGERDUTY"),
                severity=night.severity[name],
                groups=night.groups if name == "orders" else ".*",
            )
            for name in sorted(night.configured)
        ]
        environment = {
            f"REBALANCE_AUDIT_{kind}_{name.upper().replace('-', '_')}": f"https://x.example/{name}"
            for name in night.configured
            for kind in ("WEBHOOK", "SECRET")
        }
        sender = Sender(Alerts(destinations=named, attempts=1), environment, NOON, pytest.fail)
        try:
            for _ in alert(self.reports, _date(number), sender, webhook=True):
                pass
        except DeliveryError:
            assert self.refusing

    def post(self, request: HttpRequest, _timeout_seconds: float) -> Reply | Refusal:
        """What a service does with a message."""
        name, body = request.url.rpartition("/")[2], request.body
        if name in self.refusing:
            return Refusal("not now")
        if name == "on-call":
            change = {"trigger": self.incidents.add, "resolve": self.incidents.discard}
            change[body["event_action"]](body["dedup_key"])
            return Reply(202, json.dumps({"status": "success"}))
        for finding in (each for problem in body["problems"] for each in problem["findings"]):
            id_ = finding["finding_id"]
            of_opening = self.sent[name, id_, self.of_date[self.date][id_]]
            of_opening.append(finding["severity"])
        return Reply(200, "")


def _date(number: int) -> str:
    return (FIRST + timedelta(days=number)).date().isoformat()


def _wanted(night: Night, name: str) -> Iterator[tuple[str, str]]:
    """The findings that are open at the end and that a destination wants, with their severity."""
    severe = SEVERITIES[SEVERITIES.index(night.severity[name]) :]
    for id_, shown in night.shown.items():
        is_of = name != "orders" or night.groups == ".*" or FINDINGS[id_] == ORDERS
        is_seen = FINDINGS[id_] not in night.unseen and id_ not in night.known
        if is_of and is_seen and shown in OPEN.values() and shown.severity in severe:
            yield id_, shown.severity


@pytest.mark.long
@given(NIGHTS)
def test_what_is_open_was_sent_once_to_everybody_who_wants_it(nights: list[Night]) -> None:
    """Whatever was refused, known for a time, less severe, not wanted or not audited before.

    Once: since it opened, and again as often as it became worse. On call an incident is open for
    what is open, and for nothing else.
    """
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        world = World(Path(folder))
        patch.setattr(alerting, "post", world.post)
        patch.setattr(alerting, "PublishedTables", lambda reports, run: reports.tables(run))
        patch.setattr(alerting, "read_digest", world.read_digest)
        for number, night in enumerate(nights):
            world.publish(night)
            for other in night.alerted:
                # 0 is this one, 1 the one before.
                world.alert(max(number - other, 0), night)
        last = nights[-1]._replace(configured={*CHATS, "on-call"}, refusing=set())
        for _ in range(2):
            world.alert(len(nights) - 1, last)
    rank = SEVERITIES.index
    for key, severities in world.sent.items():
        assert list(map(rank, severities)) == sorted(set(map(rank, severities))), (key, severities)
    for name in CHATS:
        for id_, severity in _wanted(last, name):
            sent = world.sent[name, id_, world.openings[id_]]
            assert sent, (name, id_)
            assert rank(sent[-1]) >= rank(severity), (name, id_, sent)
    for id_, _ in _wanted(last, "on-call"):
        # A retry topic goes with another topic of its group, where that one is sent, too.
        places = {FINDINGS[id_], T} if FINDINGS[id_] == RETRY else {FINDINGS[id_]}
        assert world.incidents.intersection(map(incident_key, places)), id_
    shown = {FINDINGS[id_] for id_, each in last.shown.items() if each and each.ongoing}
    if not (shown or last.unseen):
        assert world.incidents == set()

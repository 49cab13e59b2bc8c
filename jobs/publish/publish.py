"""Tables of a run -> a published run: files, summary, and the pointer that readers follow."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from jobs.errors import InputError
from jobs.incomplete import packed, polls_that_lack, sentences_of
from jobs.known_issues import KnownIssue, KnownIssues
from jobs.languages.rows import with_texts
from jobs.leading_events import packed as packed_events
from jobs.masking import Masking
from jobs.progress import Progress
from jobs.publish.addresses import broker_addresses
from jobs.publish.nights import group_levels
from jobs.publish.run import Made, Seen, Task
from jobs.publish.tables import copy_table, write_tables
from jobs.schemas import (
    BROKER_POLLS,
    EVENTS,
    GROUP_FAULTS,
    GROUP_HEALTH,
    QUARANTINE,
    REPORT_TABLES,
    SNAPSHOT_TABLES,
)
from jobs.settings import SEVERITIES
from jobs.storage import Published, Reports, Snapshots, TableFiles
from jobs.text import iso
from jobs.window import future_after
from rebalance_core.texts import Text

#: Of summary.json and the report tables; a higher number only adds.
SCHEMA_VERSION = 1

#: The column with the reason of the known issue that a finding matches; null: it matches none.
KNOWN_ISSUE = "known_issue"

_GRADED = tuple(
    table for table in REPORT_TABLES if {"severity", KNOWN_ISSUE} <= set(table.schema.names)
)
#: The tables whose findings can be known issues.
MARKED_TABLES = tuple(t.name for t in REPORT_TABLES if KNOWN_ISSUE in t.schema.names)


@dataclass(frozen=True)
class Place:
    """Under which date a run is published, and what was published before."""

    date: str
    previous: Published | None
    known_issues: tuple[KnownIssue, ...]

    @classmethod
    def of(cls, task: Task, seen: Seen) -> Place:
        """The date is the window's last one, else that of the last snapshot: the same input gives
        the same place.

        InputError where that lies in the future and nobody asked for it by its date.
        """
        days = task.settings.bounds.future_days
        if task.window.last_date is None and seen.last > future_after(task.run.started_at, days):
            raise InputError(
                f"the last snapshot is of {iso(seen.last)}, which lies in the future: nothing was "
                f"published; mend the clock that stamped it, or ask for that date with --date "
                f"(bounds.future_days is {days})"
            )
        published = task.window.last_date or seen.last.date().isoformat()
        return cls(
            published,
            Reports(task.reports).before(published),
            task.known_issues.in_force(date.fromisoformat(published)),
        )


def publish(
    task: Task,
    place: Place,
    seen: Seen,
    made: Made,
    inputs: Snapshots,
    progress: Progress,
) -> Published:
    """Writes the tables of a run and its summary, and makes it the one that counts.

    Another run that is writing reports of the date is waited for: see ``Publication.writing``.

    Until the last step readers see the run before; whatever fails before it leaves that untouched.
    """
    folder = Reports(task.reports)
    run_id = task.run.run_id
    masking = task.settings.masking.to_masking()
    wait = task.settings.publishing.wait_seconds
    writing = folder.publication(place.date).writing(run_id, wait, progress.say)
    with writing as number:
        with progress.step("report tables") as step:
            places = {t.name: folder.table(t.name, place.date, run_id) for t in made.tables}
            counts = write_tables(made.pieces, made.tables, places)
            if inputs.has(QUARANTINE.name):
                step.part = QUARANTINE.name
                quarantine = inputs.parquet(QUARANTINE.name)
                location = folder.table(QUARANTINE.name, place.date, run_id)
                counts[QUARANTINE.name] = copy_table(QUARANTINE, quarantine, location, masking)
            step.rows = sum(counts.values())
        with progress.step("check of the reports"):
            files = _files(folder, place.date, run_id, counts)
        previous = place.previous
        published = Published(
            date=place.date,
            run_id=run_id,
            tables=tuple(counts),
            summary={
                "schema_version": SCHEMA_VERSION,
                "run_id": run_id,
                "started_at": _iso(task.run.started_at),
                "duration_seconds": round(progress.elapsed(), 3),
                "engine": made.engine,
                "date": place.date,
                "window": {
                    "since": _iso(task.window.since),
                    "until": _iso(task.window.until),
                    "first_snapshot": _iso(seen.first),
                    "last_snapshot": _iso(seen.last),
                },
                "rows": counts,
                "findings": count_findings(folder, place.date, run_id),
                "assumptions": count_assumptions(folder, place.date, run_id),
                "rounds": count_rounds(folder, place.date, run_id),
                **packed_events(_events(folder, place.date, run_id)),
                "groups": group_levels(folder, place.date, run_id),
                "known_issues": _count_known(folder, place, run_id, task.known_issues, masking),
                "previous": previous and {"date": previous.date, "run_id": previous.run_id},
                "inputs": {
                    "snapshots": str(task.snapshots),
                    "sizes": _sizes(inputs),
                    "ingested": inputs.ingested,
                },
                **packed(_incomplete(inputs, task, masking)),
                "brokers": broker_addresses(inputs, seen.last, masking),
                "versions": dict(made.versions),
                "settings": task.settings.fingerprint(),
                # Which files they and the known issues came from: nobody may have named them.
                "sources": masking.mask_all(dict(task.sources)),
            },
            files=files,
        )
        folder.publish(published, number)
    return published


def _events(folder: Reports, published_date: str, run_id: str) -> Iterator[dict[str, Any]]:
    dataset = folder.table(EVENTS.name, published_date, run_id).parquet()
    return map(with_texts, dataset.to_table().to_pylist())


def _incomplete(inputs: Snapshots, task: Task, masking: Masking) -> list[Text]:
    """What is not in the input: of dumps as ingest said it, of rounds and brokers by the polls."""
    texts = sentences_of(inputs.ingested)
    if inputs.has(BROKER_POLLS.name):
        texts += polls_that_lack(inputs.parquet(BROKER_POLLS.name), task.window)
    masked = map(masking.mask_all, texts)
    return [each if isinstance(each, Text) else Text("{text}", text=each) for each in masked]


def _files(
    folder: Reports,
    published_date: str,
    run_id: str,
    counts: Mapping[str, int],
) -> dict[str, TableFiles]:
    """What lies on the disk of each table; DamagedError where it is not what was written."""
    return {
        name: TableFiles.written(folder.root, folder.table(name, published_date, run_id), rows)
        for name, rows in counts.items()
    }


def _iso(time: datetime | None) -> str | None:
    return None if time is None else iso(time)


def _sizes(inputs: Snapshots) -> dict[str, int]:
    return {
        table.name: sum(file.size for file in inputs.files(table.name)) for table in SNAPSHOT_TABLES
    }


def count_findings(folder: Reports, published_date: str, run_id: str) -> dict[str, Any]:
    """By graded table how many rows, how many persistent, and of each severity and status.

    ``known`` has the same counts of those that are known issues; they count in the others too. Of
    the faults those count that no finding of a queue shows: the others would count twice.
    """
    counts: dict[str, Any] = {}
    for table in _GRADED:
        statuses = ["NEW", "PERSISTING"] if "status" in table.schema.names else []
        columns = ["severity", "persistence", *(["status"] if statuses else [])]
        dataset = folder.table(table.name, published_date, run_id).parquet()
        counted = ds.field("queues_affected") == 0 if table is GROUP_FAULTS else None
        rows = dataset.to_table(columns=[*columns, KNOWN_ISSUE], filter=counted)
        known_issues = rows.filter(pc.is_valid(rows[KNOWN_ISSUE]))
        counts[table.name] = {
            **_count_values(rows, columns, statuses),
            "known": _count_values(known_issues, columns, statuses),
        }
    return counts


def count_assumptions(folder: Reports, published_date: str, run_id: str) -> dict[str, int]:
    """How many audited groups rest on an assumption: ``groups``, and how many of them on which.

    ``strategy``: nobody saw the strategy of some member (``strategy_source`` is assumed).
    ``subscriptions``: of some member only the group's table shows what it subscribes to
    (``subscription_source`` is GROUP_TABLE). Running infos of all members show both.
    """
    dataset = folder.table(GROUP_HEALTH.name, published_date, run_id).parquet()
    assumed = {
        "strategy": ds.field("strategy_source") == "assumed",
        "subscriptions": ds.field("subscription_source") == "GROUP_TABLE",
    }
    audited = ds.field("coverage") == "AUDITED"
    key = ["cluster", "consumer_group"]
    groups = {
        name: {
            (row["cluster"], row["consumer_group"])
            for row in dataset.to_table(columns=key, filter=audited & is_assumed).to_pylist()
        }
        for name, is_assumed in assumed.items()
    }
    return {
        "groups": len(set().union(*groups.values())),
        **{name: len(of_name) for name, of_name in groups.items()},
    }


def count_rounds(folder: Reports, published_date: str, run_id: str) -> dict[str, Any]:
    """How the rounds of questions were, in seconds.

    ``longest_seconds``: the usual round of the group whose rounds take longest;
    ``interval_seconds``: the longest usual time between two rounds of a group;
    ``groups_too_wide``: the groups whose rounds take longer than a fault has to last.
    """
    dataset = folder.table(GROUP_HEALTH.name, published_date, run_id).parquet()
    key = ["cluster", "consumer_group"]
    columns = ["round_seconds", "round_interval_seconds", "rounds_too_wide"]
    rows = dataset.to_table(columns=[*key, *columns])
    wide = {
        (row["cluster"], row["consumer_group"])
        for row in rows.to_pylist()
        if row["rounds_too_wide"]
    }
    return {
        "longest_seconds": pc.max(rows["round_seconds"]).as_py(),
        "interval_seconds": pc.max(rows["round_interval_seconds"]).as_py(),
        "groups_too_wide": len(wide),
    }


def _count_values(
    rows: pa.Table, columns: Sequence[str], statuses: Sequence[str]
) -> dict[str, int]:
    values: Counter[str | None] = Counter()
    for name in columns:
        values.update(rows[name].to_pylist())
    return {
        "total": rows.num_rows,
        "persistent": values["PERSISTENT"],
        **{value: values[value] for value in (*SEVERITIES, *statuses)},
    }


def _count_known(
    folder: Reports, place: Place, run_id: str, known_issues: KnownIssues, masking: Masking
) -> list[dict[str, Any]]:
    """Every entry, whether it has expired, and how many rows of which tables it marked."""
    marked: dict[str, dict[str, int]] = defaultdict(dict)
    for name in MARKED_TABLES if place.known_issues else ():
        dataset = folder.table(name, place.date, run_id).parquet()
        reasons = dataset.to_table(columns=[KNOWN_ISSUE])[KNOWN_ISSUE].drop_null()
        for reason, rows in Counter(reasons.to_pylist()).items():
            marked[str(reason)][name] = rows
    return [
        {
            "reason": masking.mask(entry.reason),
            "expires": entry.expires.isoformat(),
            "expired": entry not in place.known_issues,
            "marked": marked[masking.mask(entry.reason)],
        }
        for entry in known_issues.known_issues
    ]

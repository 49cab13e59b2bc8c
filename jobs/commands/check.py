"""``check`` and ``live``: a cluster as it is now, against the last report, and audited at once."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from tempfile import TemporaryDirectory
from typing import Any

from rebalance_core.errors import near_names

from ..audit import audit
from ..collect.rounds import CollectError, NoSuchGroupError, StoppedError
from ..config.choices import LOCAL
from ..config.known_issues import KnownIssues, load_known_issues
from ..config.settings import Settings
from ..config.window import Window, now
from ..console.arguments import Options, parse_arguments
from ..console.output import give, say
from ..console.progress import Progress
from ..declared.instants import to_datetime
from ..declared.kinds import GRADED_TABLES
from ..errors import (
    ContractError,
    InputError,
    QuarantineError,
    SettingsError,
    TerminatedError,
)
from ..pipeline.ingest import ingest
from ..pipeline.new_looks import Comparison, JudgedPlaces, is_deleted, last_episodes, read_dossiers
from ..publish.run import Run, Task
from ..reports.run_findings import FindingRow, counted_rows, place_of_finding, read_rows
from ..reports.tables import PLACE, Place, PublishedTables, place_of
from ..schemas import FORMER_FINDINGS
from ..storage import Location, PublishedRun, Reports, SnapshotWriter, new_run_id
from ..texts.shown import iso, json_text, shortened, visible
from ..verdict.check_answers import (
    GONE,
    NOT_YET,
    CheckAnswers,
    Lack,
    NewLook,
    answer,
)
from ..verdict.gaps import Gap
from ..verdict.verdict import read_verdict
from .batch import Job
from .collect import collect_from
from .common import future, reports_of, settings_of, settings_of_run
from .engine_choice import choose_engine, open_engine
from .report import write_page

#: The rounds that ``live`` collects, and the seconds from one to the next: clients commit their
#: offsets every 5 s, so that what is asked sooner seems not to move.
_LIVE_ROUNDS, _LIVE_APART = 6, 10.0
#: Options of ``collect`` that it has not.
_NOT_GIVEN: Mapping[str, Any] = {
    **dict.fromkeys(("cluster", "topic", "timeout", "parallel", "rate")),
    **dict.fromkeys(("group", "without"), ()),
}
_QUIET = Progress(quiet=True)


def run(args: Options) -> int:
    """Does what the options say; returns the exit code."""
    return _live(args) if args.command == "live" else _check(args)


def _check(args: Options) -> int:
    """Gives the answer; returns its exit code: 0 gone, 1 still there or other faults, 5 not yet."""
    if (args.finding_id is None) == (args.group is None):
        raise SettingsError("expected FINDING_ID or --group G, one of them; check --help has both")
    if args.finding_id is not None and (args.topic or args.cluster):
        raise SettingsError("expected --topic and --cluster with --group: an id has its own")
    is_input, is_cluster = bool(args.dumps or args.snapshots), bool(args.namesrv or args.config)
    if is_input == is_cluster:
        came = "both" if is_input else "neither"
        raise SettingsError(
            "expected the cluster (--namesrv HOST:PORT or --config FILE) or newer snapshots of it "
            f"(--dumps PATH or --snapshots DIR), came {came}"
        )
    settings = settings_of(args)
    reports = reports_of(args, settings)
    asked = reports.read(args.date, lambda run: _Question.of(PublishedTables(reports, run), args))
    # With other settings the audit would say something else than the report does.
    settings_then = settings_of_run(args, asked.published)
    checking = _Checking(args, settings_then, load_known_issues(None), asked)
    with TemporaryDirectory(prefix="rebalance-audit-") as folder:
        if is_input:
            answers = checking.answers(folder, args.dumps, args.snapshots)
        else:
            answers = checking.ask(folder)
    _tell(answers, args, settings)
    return {GONE: 0, NOT_YET: 5}.get(answers.state, 1)


@dataclass(frozen=True)
class _Question:
    """The findings that are asked about, all of one group, as the published run has them."""

    published: PublishedRun
    cluster: str
    group: str
    findings: Sequence[FindingRow]
    before: JudgedPlaces

    @classmethod
    def of(cls, tables: PublishedTables, args: Options) -> "_Question":
        """Looks the findings up; InputError where there are none."""
        names = (*GRADED_TABLES, FORMER_FINDINGS.name)
        if args.group is None:
            place = place_of_finding(tables, args.finding_id, names)
            every = read_rows(tables, {place}, names)
            found = [row for row in every if row.finding_id == args.finding_id]
            places = {place}
        else:
            places = _places_of_group(tables, args.group, args.topic, args.cluster)
            found = _counted(list(read_rows(tables, places)), args.group, tables.published.date)
            place = found[0].place
        findings, before = last_episodes(found), JudgedPlaces.of(tables, places)
        return cls(tables.published, place.cluster, place.consumer_group, findings, before)


def _places_of_group(
    tables: PublishedTables, group: str, topic: str | None, cluster: str | None
) -> set[Place]:
    """The topics of a group in the report, in one cluster; else InputError with the near names."""
    every = {place_of(row) for row in tables.read("group_health", PLACE).to_pylist()}
    for name, wanted in (("consumer_group", group), ("cluster", cluster), ("topic", topic)):
        if wanted is not None:
            there = {getattr(place, name) for place in every}
            every = {place for place in every if getattr(place, name) == wanted}
            if not every:
                raise InputError(
                    f"no {name.removeprefix('consumer_')} {shortened(wanted)} in the report of "
                    f"{tables.published.date}: {near_names(wanted, there)}"
                )
    clusters = sorted({place.cluster for place in every})
    if len(clusters) > 1:
        names = ", ".join(map(shortened, clusters))
        raise InputError(
            f"{shortened(group)} is in several clusters, {names}: say which", " with --cluster"
        )
    return every


def _counted(rows: Sequence[FindingRow], group: str, date: str) -> list[FindingRow]:
    found = counted_rows(rows)
    if not found:
        known = sorted({row.finding_id for row in rows if row.known_issue is not None})
        aside = f" (known issues do not, such as {known[0]}: check it by its id)" if known else ""
        raise InputError(
            f"nothing of {shortened(group)} counts in the report of {date}{aside}, so that nothing "
            "could be gone",
            "; rebalance-audit live --group audits the group as it is now",
        )
    return found


@dataclass(frozen=True)
class _Checking:
    """A question on its way to its answer."""

    args: Options
    settings: Settings
    known_issues: KnownIssues
    asked: _Question

    def ask(self, folder: str) -> CheckAnswers:
        """The answer of the cluster: round after round, until there is one, or time is over."""
        language, only = self.settings.console_language, (self.asked.cluster, self.asked.group)
        # Its own options of these names are no patterns.
        args = Options(**{**vars(self.args), **_NOT_GIVEN})
        tell = Progress(quiet=args.quiet).say
        every = _seconds_apart(self.settings.persistence_seconds)
        rounds, longest = _round_options(f"{folder}/dumps", every), vars(args)["for"]
        begins = time.monotonic()
        found: CheckAnswers | None = None
        while True:
            at = time.monotonic()
            try:
                options = collect_from(args, rounds, only)
            except NoSuchGroupError:
                return self._deleted()
            except StoppedError as error:
                raise TerminatedError from error
            except CollectError as error:
                if found is None:
                    raise
                tell(f"a round failed, the next one comes at its time: {visible(str(error))}")
            else:
                if longest is None:
                    longest = options.settling_seconds + 2 * self.settings.persistence_seconds
                found = self.answers(f"{folder}/{at}", [rounds["dumps"]], None)
            ends, following = begins + longest, at + every
            last = now() + timedelta(seconds=ends - time.monotonic())
            is_later = found.at is not None and to_datetime(found.at) > last
            if found.state != NOT_YET or following > ends or is_later:
                return found
            tell(language.of(found.sentence))
            time.sleep(max(0.0, following - time.monotonic()))

    def _deleted(self) -> CheckAnswers:
        deleted = NewLook(is_deleted=True)
        return CheckAnswers([answer(finding, deleted, 0) for finding in self.asked.findings])

    def answers(
        self, folder: str, dumps: Sequence[str] | None, snapshots: str | None
    ) -> CheckAnswers:
        """The answer by dumps or snapshot tables: audits them in a folder of its own, compares."""
        asked, begins, place = self.asked, now(), Location(folder)
        task = Task(
            Run(new_run_id(begins), begins),
            Location(snapshots) if snapshots else place / "snapshots",
            place / "reports",
            Window(future=future(self.settings)),
            self.settings,
            self.known_issues,
        )
        lacks, tables = list[Lack](), None
        gaps: Sequence[Gap] = ()
        choice = choose_engine(LOCAL, dumps, task.snapshots, master=None)
        with open_engine(choice, "check", dumps, task.snapshots, None, _QUIET) as engine:
            if dumps:
                with SnapshotWriter.open(task.snapshots, task.run.run_id, 0, _QUIET.say) as writer:
                    try:
                        ingest(engine, dumps, writer, self.settings, _QUIET)
                    except QuarantineError as error:
                        lacks.append(Lack(str(error)))
            try:
                published = audit(engine, task, _QUIET)
            except ContractError:
                raise
            except InputError as error:
                lacks.append(Lack(str(error)))
            else:
                tables = PublishedTables(Reports(task.reports), published)
                gaps = read_verdict(tables).gaps
        dossiers = read_dossiers(task.snapshots, self.settings, task.window, asked.group)
        dossier = dossiers.get(asked.cluster)
        if dumps and is_deleted(dumps, self.settings, dossier, asked.published, asked.findings):
            return self._deleted()
        places = {finding.place for finding in asked.findings}
        after = JudgedPlaces([], {}) if tables is None else JudgedPlaces.of(tables, places)
        compared = Comparison(
            asked.published,
            asked.before,
            after,
            frozenset(finding.finding_id for finding in asked.findings),
            dossier,
            gaps,
            self.settings.masking.to_masking(),
            lacks,
        )
        least = self.settings.persistence_seconds
        return CheckAnswers([answer(row, compared.look_at(row), least) for row in asked.findings])


def _tell(answers: CheckAnswers, args: Options, settings: Settings) -> None:
    """Prints the sentence; of several findings a line for each, or all of it as JSON."""
    language = settings.reader
    sentence = language.of(answers.sentence)
    if args.format == "json":
        give(json_text(_document(answers, sentence, language.of), indent=2))
        return
    say(visible(sentence))
    if len(parts := answers.parts) > 1:
        for part in parts:
            say(f"  {visible(language.of(part.sentence))}")


def _document(answers: CheckAnswers, sentence: str, of: Callable[[str], str]) -> dict[str, Any]:
    def time_of(at: int | None) -> str | None:
        return None if at is None else iso(to_datetime(at))

    return {
        "state": answers.state,
        "sentence": sentence,
        "can_be_said_at": time_of(answers.at),
        "findings": [
            {
                "finding_id": check_answer.finding.finding_id,
                "kind": check_answer.finding.kind,
                **check_answer.finding.place._asdict(),
                "broker_name": check_answer.finding.queue and check_answer.finding.queue[0],
                "queue_id": check_answer.finding.queue and check_answer.finding.queue[1],
                "known_issue": check_answer.finding.known_issue,
                "state": check_answer.state,
                "reason": of(check_answer.reason),
                "now": of(check_answer.now) or None,
                "can_be_said_at": time_of(check_answer.at),
            }
            for check_answer in answers.answers
        ],
    }


def _live(args: Options) -> int:
    """Collects and audits, at once and again; returns the exit code."""
    settings = settings_of(args)
    place = f"{args.output or 'out/live'}/{now():%Y%m%dT%H%M%S.%fZ}"
    seconds = settings.persistence_seconds if args.watch is None else args.watch
    every = _seconds_apart(seconds)
    given = _round_options(f"{place}/dumps", every)
    settling = collect_from(args, given).settling_seconds
    # From the end of the first round on: what lasts is to be seen over all the time watched.
    begins = time.monotonic()
    say("first verdict, from one round: nothing can be seen to last yet")
    code = _judge(args, settings, place)
    if not seconds:
        return code
    seconds = max(seconds, every)
    # What clients hold is to be seen over all that time, too. Who has just started could be stopped
    # by the question (``collect/rounds.py``); of those in the first round nobody knows since when.
    wait, rest = max(every, settling), seconds - (0 if settling else every)
    say(f"watching for {wait + rest:g} s, a round every {every:g} s")
    time.sleep(max(0.0, begins + wait - time.monotonic()))
    collect_from(args, {**given, "every_seconds": every, "for_seconds": rest + every / 2})
    say(f"second verdict, from {wait + rest:g} s")
    return _judge(args, settings, place)


def _judge(args: Options, settings: Settings, place: str) -> int:
    """Audits the dumps of a place and writes the page; returns the exit code."""
    # The lines of one odd member must not take the page away, which says what was not understood.
    settings = settings.model_copy(update={"allowed_quarantine_share": 1.0})
    given = ["run", "--dumps", f"{place}/dumps", "--output", place, "--engine", LOCAL, "--quiet"]
    run = parse_arguments(given)
    for name in ("settings", "set", "verbose", "fail_on"):
        setattr(run, name, getattr(args, name))
    code = Job.of(run, settings).run()
    page = ["report", "--reports", f"{place}/reports", "--output", f"{place}/report.html"]
    write_page(parse_arguments(page), settings)
    return code


def _seconds_apart(watched: float) -> float:
    """The seconds from one round to the next, of so many in which a cluster is watched."""
    return max(_LIVE_APART, watched / _LIVE_ROUNDS)


def _round_options(dumps: str, every: float) -> dict[str, Any]:
    """The options of one round among those that are so far apart."""
    return {
        "dumps": dumps,
        "every_seconds": None,
        "for_seconds": None,
        "running_infos_seconds": int(every) // 2,
    }

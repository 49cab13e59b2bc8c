"""Precision and recall of the audit over many simulated fleets: ``make truth``.

    python -m tests.simulation.score --fleets 402 --seed 1 --out build/truth
    python -m tests.simulation.score --only reconnecting --seed 10001 --keep --out build/one
    python -m tests.simulation.score --every 60 300 --lists-alone --fleets 390 --out build/lists

With ``--every`` all fleets are polled so often, and for each length of rounds the table of
docs/truth.md has a line.

All fleets are clusters of one folder of dumps, audited in one run. Every false row, every miss and
every wrong fault is a line of ``false.jsonl``, ``missed.jsonl`` and ``faults.jsonl``; a fleet's
name ends with the seed by which ``--only`` makes it again.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from io import StringIO
from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import Any

from jobs.cli import main as rebalance_audit
from jobs.storage import Location, Reports
from tests.simulation.clock import SECOND
from tests.simulation.fleets import AS_IT_IS, Fleet, Polling, draw_fleet
from tests.simulation.remedies import apply_at_the_end, is_healthy, worth_repairing
from tests.simulation.scoring import (
    DUPLICATE,
    ORPHANED,
    POSSIBLE_SHARE,
    RULES,
    STALLED,
    FaultRow,
    Judged,
    Missed,
    Row,
    Score,
    Spell,
    begins_rightly,
    clock_time,
    fault_of,
    is_caused_so,
    judge_row,
    row_of,
    score,
    span,
    told,
)
from tests.simulation.situations import MIXES, SITUATIONS
from tests.simulation.world import GROUP

_TABLES = {"orphaned_queues": ORPHANED, "duplicate_queues": DUPLICATE, "stalled_queues": STALLED}
#: Seeds of a run are this far apart from those of the next.
_SEEDS = 10_000
_OTHER_DRAWS = 10
_BINS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0)


Plan = tuple[str, tuple[str, ...], int]


def fleets_of(number: int, seed: int, only: str | None) -> Iterable[Plan]:
    """Name, situations and seed of each fleet: every situation by itself, and every mix; then all
    of them with the next seed. So a fleet stays what it is when situations are added.
    """
    plans = [(name,) for name in SITUATIONS] + list(MIXES)
    if only is not None:
        plans, first = [tuple(only.split("+"))], seed
    else:
        first = seed * _SEEDS
    for place in range(number):
        turn, which = divmod(place, len(plans))
        plan = plans[which]
        yield f"{'+'.join(plan)}-{first + turn}", plan, first + turn


def score_fleets(
    number: int,
    seed: int,
    out: Path,
    only: str | None,
    *,
    keep: bool,
    polling: Polling = AS_IT_IS,
) -> list[Score]:
    """Makes the fleets, audits them in one run, and scores each."""
    dumps = out / "dumps"
    for former in (dumps, out / "audit"):
        shutil.rmtree(former, ignore_errors=True)
    dumps.mkdir(parents=True)
    fleets, plans = [], {}
    for name, plan, own_seed in fleets_of(number, seed, only):
        situations = [SITUATIONS[each] for each in plan]
        fleet = draw_fleet(name, situations, own_seed, polling=polling)
        fleet.write(dumps)
        if keep:
            fleet.write_truth(out)
        fleets.append(fleet)
        plans[name] = (plan, own_seed)
    rows, faults = audited(dumps, out / "audit")
    if not keep:
        shutil.rmtree(dumps)
        shutil.rmtree(out / "audit" / "snapshots", ignore_errors=True)
    scores = [scored(fleet, rows[fleet.name, GROUP], faults[fleet.name, GROUP]) for fleet in fleets]
    for each in scores:
        plan, own_seed = plans[each.fleet.name]
        if polling == AS_IT_IS:
            _tell_chance(each, plan, own_seed)
            of_group = faults[each.fleet.name, GROUP]
            each.is_repaired = _repaired(each.fleet, plan, own_seed, of_group)
    return scores


def _repaired(
    fleet: Fleet, plan: tuple[str, ...], seed: int, faults: Sequence[FaultRow]
) -> bool | None:
    """Whether the remedies repair a fleet that is not healthy; None: nothing says so."""
    lasting = worth_repairing(faults)
    if not lasting or is_healthy(fleet, fleet.until) or any(pod.pops for pod in fleet.pods):
        return None
    situations = [SITUATIONS[name] for name in plan]
    after = draw_fleet(fleet.name, [*situations, apply_at_the_end(lasting)], seed)
    return is_healthy(after, after.until + after.goes_on_for)


def _tell_chance(each: Score, plan: tuple[str, ...], seed: int) -> None:
    """Marks false POSSIBLE rows that are true in the mean of other draws.

    What happens at random may not happen for a while: a row that says so was not wrong.
    """
    if all(judged.is_true or judged.row.certainty == "CERTAIN" for judged in each.rows):
        return
    situations = [SITUATIONS[name] for name in plan]
    others = [
        draw_fleet(each.fleet.name, situations, seed, draws=number)
        for number in range(1, _OTHER_DRAWS + 1)
    ]
    for place, judged in enumerate(each.rows):
        if not judged.is_true and judged.row.certainty == "POSSIBLE":
            shares = [judge_row(other, judged.row).so for other in others]
            claimed = POSSIBLE_SHARE * judged.row.share_of_time
            is_chance = sum(shares) / len(shares) >= claimed
            each.rows[place] = replace(judged, is_chance=is_chance)


#: Cluster and consumer group.
Of = tuple[str, str]


def audited(dumps: Path, output: Path) -> tuple[dict[Of, list[Row]], dict[Of, list[FaultRow]]]:
    """By group what an audit in this process publishes: rows of queues, and faults."""
    command = ["run", "--dumps", str(dumps), "--output", str(output), "--engine", "local"]
    with redirect_stdout(StringIO()):
        code = rebalance_audit([*command, "--quiet"])
    if code != 0:
        raise SystemExit(f"the audit of {dumps} ended with {code}")
    reports = Reports(Location(output / "reports"))
    published = reports.resolve(None)

    def table(name: str) -> list[dict[str, Any]]:
        values: list[dict[str, Any]] = reports.dataset(published, name).to_table().to_pylist()
        return values

    rows, faults = defaultdict(list), defaultdict(list)
    for name, kind in _TABLES.items():
        for values in table(name):
            rows[_of(values)].append(row_of(kind, values))
    for values in table("group_faults"):
        faults[_of(values)].append(fault_of(values))
    return rows, faults


def unread(output: Path) -> tuple[str, ...]:
    """What an audit published as not read, or as not audited: kinds of gaps, and coverages."""
    verdict = Reports(Location(output / "reports")).resolve(None).summary["verdict"]
    return *verdict["gaps"], *verdict["not_audited"]


def _of(values: dict[str, Any]) -> Of:
    return values["cluster"], values["consumer_group"]


def scored(fleet: Fleet, rows: Sequence[Row], faults: Sequence[FaultRow]) -> Score:
    stalls = [row for row in rows if row.kind == STALLED]
    return score(fleet, [row for row in rows if row not in stalls], stalls, faults)


# ---------------------------------------------------------------- figures


def wilson(true: int, of: int) -> tuple[float, float]:
    """Wilson's interval of 95 % for a share: it holds for few, and for all of them, too.

    >>> [round(each, 3) for each in wilson(99, 100)], [round(each, 3) for each in wilson(20, 20)]
    ([0.946, 0.998], [0.839, 1.0])
    """
    share, z = true / of, 1.96
    middle = share + z * z / (2 * of)
    width = z * sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    least, most = ((middle + side * width) / (1 + z * z / of) for side in (-1, 1))
    return max(least, 0.0), min(most, 1.0)


#: What is counted by itself, and is to be true: of a fleet whether each of it is.
_COUNTED: dict[str, Callable[[Score], list[bool]]] = {
    "CERTAIN": lambda each: each.certain,
    "CRITICAL": lambda each: each.lasting("CRITICAL"),
    "WARNING": lambda each: each.lasting("WARNING"),
}


def heads(extra: str) -> list[str]:
    """The head of the table of ``line_of``, in Markdown."""
    names = [extra, "fleets", *(f"lasting {name} true" for name in _COUNTED)]
    return [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]


def line_of(what: str, scores: Sequence[Score]) -> str:
    """Of all that lasts the share that is true, with Wilson's interval, how many, and in how many
    fleets one is false: what one fleet shows falsely it mostly shows of several queues.
    """
    cells = [what, str(len(scores))]
    for counted in _COUNTED.values():
        of_fleets = [counted(each) for each in scores]
        some = [is_true for of_fleet in of_fleets for is_true in of_fleet]
        if not some:
            cells.append("none")
            continue
        least, most = wilson(sum(some), len(some))
        false = sum(not all(of_fleet) for of_fleet in of_fleets)
        cells.append(
            f"{sum(some) / len(some):.1%} [{least:.1%}, {most:.1%}] of {len(some):,}; "
            f"false in {false}"
        )
    return f"| {' | '.join(cells)} |"


def line_of_seed(seed: int, scores: Sequence[Score]) -> str:
    """What docs/truth.md has of a seed: each a share in per cent, and of how many."""
    rows = [(each.fleet, judged) for each in scores for judged in each.rows]
    cells = [
        [judged.is_true for _, judged in rows if judged.row.certainty == "CERTAIN"],
        [judged.is_true for _, judged in rows if judged.row.certainty == "POSSIBLE"],
        [judged.is_close for _, judged in rows],
        [spell not in _spells(each.missed) for each in scores for spell in each.asked],
        [
            spell not in _spells(each.stalls_missed)
            for each in scores
            for spell in each.stalls_asked
        ],
        [is_true for each in scores for is_true in each.lasting("CRITICAL")],
        [is_caused_so(fleet, judged.row) for fleet, judged in rows if judged.is_true],
        [is_right for each in scores for row, is_right in each.faults if row.lasts],
        [each.is_repaired for each in scores if each.is_repaired is not None],
    ]
    told = [f"{100 * sum(of) / len(of):.1f} ({len(of):,})" if of else "-" for of in cells]
    return f"| {' | '.join([str(seed), *told])} |"


def _spells(missed: Sequence[Missed]) -> list[Spell]:
    return [each.spell for each in missed]


def figures(scores: Sequence[Score]) -> list[str]:
    """All that is printed."""
    rows = [judged for each in scores for judged in each.rows]
    parts = [_precision(rows), _recall(scores), _besides(scores), _right_faults(scores)]
    parts += [_reliability(rows), _by_situation(scores), _faults(scores)]
    return [RULES, *(line for part in parts for line in ("", *part))]


def _share(part: int, whole: int) -> str:
    return f"{part / whole:7.1%}" if whole else "      -"


def _precision(rows: Sequence[Judged]) -> list[str]:
    lines = ["lasting rows               rows   true"]
    for kind in (ORPHANED, DUPLICATE, "both"):
        for certainty in ("CERTAIN", "POSSIBLE"):
            of_kind = [each for each in rows if kind in (each.row.kind, "both")]
            some = [each for each in of_kind if each.row.certainty == certainty]
            true = sum(each.is_true for each in some)
            lines.append(f"  {kind:10} {certainty:10} {len(some):7} {_share(true, len(some))}")
    false = [each for each in rows if not each.is_true and each.row.certainty == "POSSIBLE"]
    chance = sum(each.is_chance for each in false)
    lines.append(
        f"  of the {len(false)} false POSSIBLE ones {chance} are chance: true in the mean of "
        f"{_OTHER_DRAWS} other draws of the clients"
    )
    return lines


def _recall(scores: Sequence[Score]) -> list[str]:
    lines = ["spells                    asked  found"]
    asked = [spell.kind for each in scores for spell in (*each.asked, *each.stalls_asked)]
    missed = [miss.spell.kind for each in scores for miss in (*each.missed, *each.stalls_missed)]
    for name in (ORPHANED, DUPLICATE, "both", STALLED):
        kinds = (ORPHANED, DUPLICATE) if name == "both" else (name,)
        of, not_found = (sum(kind in kinds for kind in some) for some in (asked, missed))
        lines.append(f"  {name:21} {of:7} {_share(of - not_found, of)}")
    reasons = Counter(spell.hidden for each in scores for spell in each.spells if spell.hidden)
    lines += [f"  not asked: {count:5}  {reason}" for reason, count in reasons.most_common()]
    return lines


def _besides(scores: Sequence[Score]) -> list[str]:
    """Whatever else a row says: how bad, why, since when; and the other rows."""
    rows = [(each, judged) for each in scores for judged in each.rows]
    true = [(each.fleet, judged.row) for each, judged in rows if judged.is_true]
    stalls = [judged for each in scores for judged in each.stalls]
    repaired = [each.is_repaired for each in scores if each.is_repaired is not None]
    shares = {
        "fleets that their remedies repair": repaired,
        "critical lasting rows that are true": [
            judged.is_true for _, judged in rows if judged.row.severity == "CRITICAL"
        ],
        "causes of true rows that are right": [is_caused_so(*each) for each in true],
        "true rows that begin rightly": [begins_rightly(*each) for each in true],
        "planted faults that begin rightly": [
            is_right for each in scores for _, is_right in each.begun
        ],
        "transient rows that are true": [j.is_true for each in scores for j in each.transient],
        "stalls that last and are true": [j.is_true for j in stalls if j.row.lasts],
        "stalls that do not last and are true": [j.is_true for j in stalls if not j.row.lasts],
    }
    lines = ["besides                                   of"]
    return lines + [
        f"  {name:38} {len(some):5} {_share(sum(some), len(some))}" for name, some in shares.items()
    ]


def _right_faults(scores: Sequence[Score]) -> list[str]:
    """Faults by time and member: a remedy repairs what its fault is right about."""
    lines = ["faults by time and member  lasting  right  transient  right"]
    judged = [each for score in scores for each in score.faults]
    for fault in [*sorted({row.fault for row, _ in judged}), "all"]:
        cells = []
        for lasts in (True, False):
            some = [
                is_right
                for row, is_right in judged
                if row.lasts == lasts and fault in (row.fault, "all")
            ]
            cells.append(f"{len(some):7} {_share(sum(some), len(some))}")
        lines.append(f"  {fault:24} {'   '.join(cells)}")
    return lines


def _reliability(rows: Sequence[Judged]) -> list[str]:
    lines = ["probability x share of time     rows   claimed       so   within a factor of two"]
    for low, high in pairwise(_BINS):
        some = [each for each in rows if low <= each.claimed < high or each.claimed == high == 1.0]
        if some:
            claimed = sum(each.claimed for each in some) / len(some)
            so = sum(each.so for each in some) / len(some)
            close = sum(each.is_close for each in some)
            lines.append(
                f"  {low:4.2f} to {high:4.2f} {len(some):20} {claimed:9.2f} {so:8.2f}   "
                f"{_share(close, len(some))}"
            )
    close = sum(each.is_close for each in rows)
    lines.append(f"  all {len(rows):28} {'':18}   {_share(close, len(rows))}")
    return lines


def _by_situation(scores: Sequence[Score]) -> list[str]:
    by_name: dict[str, list[Score]] = defaultdict(list)
    for each in scores:
        by_name[each.situation].append(each)
    width = max(map(len, by_name))
    lines = [f"{'situation':{width}}  CERTAIN   true  POSSIBLE   true  asked   found  faults"]
    for name, some in by_name.items():
        cells = []
        for certainty in ("CERTAIN", "POSSIBLE"):
            rows = [j for each in some for j in each.rows if j.row.certainty == certainty]
            cells.append(f"{len(rows):6} {_share(sum(j.is_true for j in rows), len(rows))}")
        asked = sum(len(each.asked) for each in some)
        missed = sum(len(each.missed) for each in some)
        faults = Counter(
            [f"-{fault}" for each in some for fault in sorted(each.faults_missed)]
            + [f"+{fault}" for each in some for fault in sorted(each.faults_wrong)]
        )
        named = " ".join(f"{fault}{'' if n == 1 else f' x{n}'}" for fault, n in faults.items())
        cells.append(f"{asked:5} {_share(asked - missed, asked)}")
        lines.append(f"{name:{width}}  {'  '.join(cells)}  {named}")
    return lines


def _faults(scores: Sequence[Score]) -> list[str]:
    lines = ["faults that last             asked  found  wrong"]
    asked = Counter(fault for each in scores for fault in each.faults_asked)
    missed = Counter(fault for each in scores for fault in each.faults_missed)
    wrong = Counter(fault for each in scores for fault in each.faults_wrong)
    for fault in sorted({*asked, *wrong}):
        found = asked[fault] - missed[fault]
        lines.append(f"  {fault:25} {asked[fault]:6} {found:6} {wrong[fault]:6}")
    return lines


# ---------------------------------------------------------------- what to look at


def write_details(scores: Sequence[Score], out: Path) -> None:
    """Every false row, every miss, every wrong fault."""
    _write(out / "false.jsonl", scores, _false_rows)
    _write(out / "missed.jsonl", scores, _misses)
    _write(out / "faults.jsonl", scores, _wrong_faults)


Lines = list[dict[str, Any]]


def _write(path: Path, scores: Sequence[Score], lines_of: Callable[[Score], Lines]) -> None:
    with path.open("w") as file:
        for each in scores:
            for line in lines_of(each):
                file.write(json.dumps({"fleet": each.fleet.name, **line}, default=sorted) + "\n")


def _false_rows(each: Score) -> Lines:
    return [
        {
            "kind": judged.row.kind,
            "queue": str(judged.row.queue),
            "so": round(judged.so, 3),
            "is_false": not judged.is_true,
            "is_chance": judged.is_chance,
            **told(judged.row),
            "readers": _readers(each.fleet, judged.row.queue, judged.row.start, judged.row.end),
            "habits": vars(each.fleet.habits),
        }
        for judged in each.rows
        if not (judged.is_true and judged.is_close)
    ]


def _misses(each: Score) -> Lines:
    def line(miss: Missed) -> dict[str, Any]:
        spell = miss.spell
        return {
            "kind": spell.kind,
            "queue": str(spell.queue),
            **span(spell.start, spell.end),
            "so": round(spell.so, 3),
            "covered": round(miss.covered, 3),
            "rows": [told(row) for row in miss.rows],
            "readers": _readers(each.fleet, spell.queue, spell.start, spell.end),
            "habits": vars(each.fleet.habits),
        }

    return [line(miss) for miss in (*each.missed, *each.stalls_missed)]


def _wrong_faults(each: Score) -> Lines:
    missed: Lines = [{"fault": fault, "was": "missed"} for fault in sorted(each.faults_missed)]
    wrong: Lines = [
        {
            "fault": row.fault,
            "was": "wrong",
            "topic": row.topic,
            **span(row.start, row.end),
            "persistence": row.persistence,
            "severity": row.severity,
            "client_ids": row.client_ids,
            "broker_names": row.broker_names,
        }
        for row, is_right in each.faults
        if not is_right
    ]
    not_caused: Lines = [
        {"fault": ",".join(judged.row.causes), "was": "cause", "queue": str(judged.row.queue)}
        for judged in each.rows
        if judged.is_true and not is_caused_so(each.fleet, judged.row)
    ]
    late: Lines = [
        {
            "fault": planted.fault,
            "was": "begins",
            "began": clock_time(max(planted.start, 0)),
            "seen": [
                clock_time(row.start)
                for row, _ in each.faults
                if row.fault in planted.names and row.lasts
            ],
        }
        for planted, is_right in each.begun
        if not is_right
    ]
    not_repaired: Lines = [
        {"fault": row.fault, "was": "not repaired", "remedy": row.remedy}
        for row, _ in each.faults
        if each.is_repaired is False and row.lasts and row.ongoing
    ]
    habits = {"habits": vars(each.fleet.habits)}
    return [line | habits for line in (*missed, *wrong, *not_caused, *late, *not_repaired)]


def _readers(fleet: Fleet, queue: Any, start: int, end: int) -> list[Any]:
    """Who could read the queue, at the start and at each change; the first dozen."""
    steps = fleet.truth.readers[queue]
    changes = [
        (clock_time(at), sorted(readers))
        for at, readers in zip(steps.times, steps.values, strict=True)
        if start < at <= end
    ]
    return [("at start", sorted(steps.at(start))), *changes[:12]]


def add_workers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workers", type=int, default=2, help="how many runs at a time")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--fleets", type=int, help="how many; else 402, or 1 with --only")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("build/truth"))
    parser.add_argument("--only", metavar="SITUATION", help="this one, or some with + between")
    parser.add_argument("--keep", action="store_true", help="keep dumps, truth and all tables")
    parser.add_argument(
        "--every", type=int, nargs="+", metavar="SECONDS", help="poll all fleets so often"
    )
    parser.add_argument(
        "--lists-alone", action="store_true", help="poll lists and routes, and nothing else"
    )
    add_workers(parser)
    options = parser.parse_args(arguments)
    began = time.monotonic()
    number = options.fleets or (1 if options.only else 390)
    if options.every:
        return _by_rounds(options, number)
    scores = score_fleets(number, options.seed, options.out, options.only, keep=options.keep)
    write_details(scores, options.out)
    lines = [*figures(scores), "", line_of_seed(options.seed, scores)]
    (options.out / "figures.txt").write_text("\n".join(lines) + "\n")
    sys.stdout.write("\n".join(lines) + f"\n\n{number} fleets, {time.monotonic() - began:.0f} s\n")
    return 0


def _by_rounds(options: argparse.Namespace, number: int) -> int:
    """For each length of rounds a line, with its details beside it."""
    lines = heads("rounds of")
    sys.stdout.write("\n".join(lines) + "\n")
    with ProcessPoolExecutor(options.workers) as pool:
        for line in pool.map(partial(_of_rounds, options, number), options.every):
            lines.append(line)
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
    (options.out / "by_rounds.md").write_text("\n".join(lines) + "\n")
    return 0


def _of_rounds(options: argparse.Namespace, number: int, every: int) -> str:
    out = options.out / f"{every}{'-lists-alone' if options.lists_alone else ''}"
    polling = Polling(every * SECOND, options.lists_alone)
    scores = score_fleets(
        number, options.seed, out, options.only, keep=options.keep, polling=polling
    )
    write_details(scores, out)
    (out / "figures.txt").write_text("\n".join(figures(scores)) + "\n")
    return line_of(f"{every} s, lists alone" if options.lists_alone else f"{every} s", scores)


if __name__ == "__main__":
    raise SystemExit(main())

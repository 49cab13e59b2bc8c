"""Times of single heartbeats are told from rounds, whatever the groups are like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest

from jobs.config.settings import Settings
from jobs.declared.dossier import Broker, Dossier, ListedMembers, PollRun
from jobs.declared.instants import SECOND, Instant
from jobs.engines.local import LocalEngine
from jobs.fold.kernel import Cutting
from jobs.judge.observe.event_times import times_of_group
from jobs.pipeline.ingest import read_dumps
from jobs.schemas import NO_ANSWER, NOT_ONLINE
from tests.support.folding import fold_slices

DATA = Path(__file__).parents[1] / "data"
ROUNDS = range(0, 1200 * SECOND, 60 * SECOND)
#: When who is in a broker's list.
Listing = tuple[Broker, Instant, frozenset[str]]


def group(listings: Sequence[Listing], others: Sequence[PollRun] = ()) -> Dossier:
    dossier = Dossier("C", "G", polls=list(others))
    ids = {members: f"list {n}" for n, members in enumerate(dict.fromkeys(m for *_, m in listings))}
    runs: dict[tuple[Broker, str], list[Instant]] = {}
    for broker, at, members in sorted(listings, key=lambda each: each[1]):
        runs.setdefault((broker, ids[members]), []).append(at)
    dossier.polls += [PollRun(*of, tuple(at), tuple(at)) for of, at in runs.items()]
    for members, id_ in ids.items():
        listed = ListedMembers(tuple(sorted(members)), tuple(f"{m}:1" for m in sorted(members)))
        dossier.list_members[id_] = lambda listed=listed: listed  # type: ignore[misc]
    return dossier


def rounds(
    members: int, brokers: int, there: Callable[[int, int], bool] = lambda *_: True
) -> list[Listing]:
    """All members at all brokers; ``there``: whether a broker, by number, gives its list in a
    round, by number.
    """
    everybody = frozenset(f"c{n}" for n in range(members))
    return [
        ((f"b{broker}", 0), at, everybody)
        for number, at in enumerate(ROUNDS)
        for broker in range(brokers)
        if there(number, broker)
    ]


def events(listings: Sequence[Listing], by: str, step: Instant, seed: int = 1) -> list[Listing]:
    """Each connection at a time of its own, 0 to 59 s later: by connection, client or broker."""
    dice = Random(seed)  # noqa: S311 - reproducible, not secret
    late: dict[object, Instant] = {}
    lists: dict[tuple[Broker, Instant], set[str]] = {}
    for broker, at, members in listings:
        for client in sorted(members):
            who = {"connection": (broker, client), "client": client, "broker": broker}[by]
            own = late.setdefault(who, dice.randrange(0, 60 * SECOND, step))
            lists.setdefault((broker, at + own), set()).add(client)
    return [(*of, frozenset(members)) for of, members in lists.items()]


@pytest.mark.parametrize("by", ["connection", "client", "broker"])
@pytest.mark.parametrize("step", [SECOND, SECOND // 1000], ids=["seconds", "milliseconds"])
@pytest.mark.parametrize(("members", "brokers"), [(3, 3), (9, 2), (1000, 3)])
def test_events_are_recognised(by: str, step: Instant, members: int, brokers: int) -> None:
    came = times_of_group(group(events(rounds(members, brokers), by, step)))
    assert came is not None
    assert came == (True, 60 * SECOND)


@pytest.mark.parametrize(
    "listings",
    [
        rounds(3, 2),
        rounds(1000, 3),
        rounds(1, 3),
        # A broker that answers each third round, and one of which each is missing by chance.
        rounds(3, 2, lambda number, broker: broker == 0 or number % 3 == 0),
        rounds(3, 3, lambda number, broker: (7 * number + broker) % 5 != 0),
        # One broker fails over to another, with a round in which both answer.
        rounds(3, 2, lambda number, broker: (number >= 9) if broker else (number < 10)),
        # Two collectors, each with two brokers, at times of their own.
        [
            (broker, at + (30 * SECOND if broker[0] > "b1" else 0), members)
            for broker, at, members in rounds(3, 4)
        ],
        # One of the members is there in each second round.
        [
            (broker, at, members - ({"c0"} if at % (120 * SECOND) else set()))
            for broker, at, members in rounds(3, 2)
        ],
    ],
)
def test_rounds_are_not(listings: list[Listing]) -> None:
    assert times_of_group(group(listings)) == (False, 0)


@pytest.mark.parametrize(
    "listings", [rounds(1, 1), rounds(5, 3)[:6], events(rounds(1, 1), "connection", 1), []]
)
def test_what_does_not_recur_beside_others_shows_nothing(listings: list[Listing]) -> None:
    assert times_of_group(group(listings)) is None


def test_polls_without_a_list_say_nothing_of_the_times_of_lists() -> None:
    polled = [
        PollRun(("b0", 0), answer, tuple(ROUNDS), tuple(ROUNDS))
        for answer in (NOT_ONLINE, NO_ANSWER)
    ]
    came = times_of_group(group(events(rounds(4, 1), "client", 1), polled))
    assert came is not None
    assert came.are_events


#: Of real clusters; any other dump has its rows in the tests of cases and of the field book.
DUMPS = [*sorted((DATA / "captures").iterdir()), DATA / "sample" / "dumps"]


@pytest.mark.parametrize("place", DUMPS, ids=lambda place: place.name)
def test_no_recorded_dump_is_taken_for_events(place: Path) -> None:
    settings = Settings()
    with LocalEngine() as engine:
        tables = read_dumps(engine, engine.list_files([str(place)]), settings).whole_tables(
            settings
        )
    cutting = Cutting(1, settings.heartbeat_expiry_seconds)
    slices = [(each.name, tables[each.name]) for each in cutting.tables()]
    shown = [times_of_group(each) for each in fold_slices(slices, cutting, 1).all()]
    assert not [each for each in shown if each and each.are_events]

"""Secrets in client ids, as a fault of the group and in the rows that leave the judgement."""

from __future__ import annotations

import pyarrow as pa

from jobs.config.masking import Masking
from jobs.declared.dossier import Dossier, ListedMembers, PollRun
from jobs.declared.kinds import SECRET_IN_CLIENT_ID
from jobs.judge.observe.core_verdict import AllocationRows
from jobs.judge.rules.client_ids import secrets
from jobs.judge.rules.found import FaultEpisode, GroupFindings
from jobs.schemas import ALLOCATIONS
from tests.judge.phases import at, case

MASKING = Masking()
PLAIN = "10.0.0.1@1#123456789"
ONE = "10.0.0.2@user|12345678|T|1"
OTHER = "10.0.0.3@user|12345678|T|1"


def dossier(*listed: tuple[int, tuple[str, ...]], topics: tuple[str, ...] = ("T",)) -> Dossier:
    """A broker that gave these ids at these seconds."""
    made = Dossier("C", "G")
    for second, client_ids in listed:
        list_id = "|".join(client_ids)
        made.list_topics[list_id] = topics
        made.list_members[list_id] = lambda ids=client_ids: ListedMembers(ids, ids)
        times = (at(second),)
        made.polls.append(PollRun(("broker-a", 0), list_id, times, times))
    return made


def faults(of: Dossier) -> tuple[FaultEpisode, ...]:
    snapshots = sorted({time for run in of.polls for time in run.times})
    return secrets(case(dossier=of, snapshots=snapshots), GroupFindings()).faults


def test_a_group_without_a_secret_has_no_fault() -> None:
    assert faults(dossier((0, (PLAIN,)))) == ()


def test_one_fault_tells_of_all_ids_with_a_secret_and_how_long_they_were_listed() -> None:
    (fault,) = faults(
        dossier((0, (PLAIN,)), (60, (PLAIN, ONE)), (120, (PLAIN,)), (180, (ONE, OTHER, ONE))),
    )
    assert (fault.fault, fault.topic, fault.client_ids) == (SECRET_IN_CLIENT_ID, "T", (ONE, OTHER))
    assert (fault.first_seen, fault.last_seen, fault.extent.snapshots) == (at(60), at(180), 2)
    assert fault.extent.share_of_time == 2 / 3
    assert fault.extent.ongoing
    assert "12345678" not in fault.evidence
    assert MASKING.mask(ONE) in fault.evidence


def test_ids_are_told_in_their_order() -> None:
    ids = [ONE.replace("0.2", f"0.{number}") for number in range(9, 1, -1)]
    (fault,) = faults(dossier((0, tuple(ids))))
    assert fault.client_ids == tuple(sorted(ids))


def test_it_lasts_though_it_was_listed_once_and_is_gone() -> None:
    (fault,) = faults(dossier((0, (ONE,)), (60, (PLAIN,))))
    assert (fault.extent.persistence, fault.extent.ongoing) == ("PERSISTENT", False)


def test_it_stands_with_the_first_topic_that_is_no_retry_topic() -> None:
    (fault,) = faults(dossier((0, (ONE,)), topics=("%RETRY%G", "B", "A")))
    assert fault.topic == "A"


def test_ids_are_masked_in_the_rows_of_allocations_and_known_to_the_rules() -> None:
    row = dict.fromkeys(ALLOCATIONS.schema.names, None)
    values = [row | {"client_id": each, "view_brokers": [], "queues": []} for each in (ONE, PLAIN)]
    rows = AllocationRows(pa.Table.from_pylist(values, ALLOCATIONS.schema), [1, 2])
    masked = rows.masked(MASKING)
    assert masked["client_id"].to_pylist() == [MASKING.mask(ONE), PLAIN]
    assert masked.schema == ALLOCATIONS.schema
    assert [allocated.client_id for made in rows.loaders() for allocated in made()] == [ONE, PLAIN]

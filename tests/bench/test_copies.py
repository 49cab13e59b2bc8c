"""Copies of a fleet: TINY some times over, as XL is of L. What is true of them, the audit finds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from jobs.storage import Location, Snapshots
from tests.bench.contenders import BY_NAME
from tests.bench.findings import differences, read_findings
from tests.bench.fleets import COPIED, SIZES, Tables, copy_fleet, copy_ids, plain

pytestmark = pytest.mark.spark
COPIES = 3


@pytest.fixture(scope="module")
def copied(tiny: Tables, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """TINY three times over, beside it: the original is found by its name."""
    of, tables = plain(SIZES["TINY"]), Tables(tiny.folder.parent / "plain-copied")
    copy_fleet(tiny, of, tables, replace(of, groups=COPIES * of.groups))
    original = tables.original()
    assert original == tiny
    copy_ids(original, tables)
    return tables


def distinct(folder: Path, column: str) -> set[str]:
    files = sorted(folder.rglob("*.parquet"))
    return set(ds.dataset(files, format="parquet").to_table([column])[column].to_pylist())


@pytest.mark.parametrize("size", COPIED)
def test_a_size_of_copies_differs_from_its_original_in_its_groups_alone(size: str) -> None:
    original = SIZES[COPIED[size]]
    assert SIZES[size].groups % original.groups == 0
    assert replace(SIZES[size], groups=original.groups) == original


@pytest.mark.parametrize("name", ["driver", "driver_ids"])
def test_the_audit_finds_what_is_true_of_copies(copied: Tables, tmp_path: Path, name: str) -> None:
    contender = BY_NAME[name]
    contender.module().run(
        None, copied.with_ids if contender.has_ids else copied.snapshots, tmp_path
    )
    contender.module().to_findings(tmp_path)
    true = read_findings(copied.true_findings)
    assert not differences(read_findings(tmp_path / "findings"), true)


def test_every_copy_has_groups_clients_and_findings_of_its_own(
    tiny: Tables, copied: Tables
) -> None:
    assert copied.heartbeats() == COPIES * tiny.heartbeats()
    for column in ("consumer_group", "client_id", "client_addr"):
        of_one, of_all = (distinct(t.snapshots / "heartbeats", column) for t in (tiny, copied))
        assert len(of_all) == COPIES * len(of_one), column
        assert of_one < of_all
    findings = [read_findings(tables.true_findings) for tables in (tiny, copied)]
    assert len(findings[1]) == COPIES * len(findings[0])


def test_copies_share_no_list_as_the_groups_of_a_larger_fleet_would_not(
    tiny: Tables, copied: Tables
) -> None:
    lists = [
        Snapshots.open(Location(tables.with_ids)).parquet("member_lists").to_table()
        for tables in (tiny, copied)
    ]
    ids = [set(table["list_id"].to_pylist()) for table in lists]
    assert len(ids[1]) == COPIES * len(ids[0])
    assert ids[1] >= distinct(copied.with_ids / "broker_polls", "list_id") - {None}
    members = [set(map(str, table["members"].to_pylist())) for table in lists]
    assert len(members[1]) == COPIES * len(members[0])


def test_values_are_those_of_the_original_but_for_the_names(tiny: Tables, copied: Tables) -> None:
    for table in ("heartbeats", "broker_polls", "topic_routes"):
        source = ds.dataset(sorted((tiny.snapshots / table).glob("*.parquet")), format="parquet")
        files = sorted((copied.snapshots / table).glob("copy-2-*.parquet"))
        copy = ds.dataset(files, format="parquet")
        assert copy.schema.equals(source.schema)
        named = ("consumer_group", "topic", "client_id", "client_addr", "subscriptions")
        others = [name for name in source.schema.names if name not in named]
        assert copy.to_table(others).equals(source.to_table(others))
        assert not copy.to_table().equals(source.to_table())

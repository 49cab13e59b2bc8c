"""One reader in Spark and in the driver, and one result however it is computed.

Rows are compared as texts with all their columns, the ids among them.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from tests.fuzz.nights import (
    changed_night,
    recorded_nights,
    report_rows,
    run_process,
    snapshot_rows,
    write_dump,
)

pytestmark = pytest.mark.house

#: Another one is in the environment of `make fuzz`.
SEED = int(os.environ.get("FUZZ_SEED", "1"))

Rows = dict[str, list[str]]

#: What a process finds around it, as different as can be.
USUAL = {"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
OTHERS = (
    {"PYTHONHASHSEED": "1", "LC_ALL": "C", "TZ": "Asia/Kathmandu"},
    {"PYTHONHASHSEED": "42", "LC_ALL": "POSIX", "TZ": "America/St_Johns"},
    {"PYTHONHASHSEED": "4294967295", "LC_ALL": "C.UTF-8", "TZ": "Pacific/Apia"},
)
#: Cores, partitions of an exchange, bytes of a block of a file.
SPARKS = ((1, 1, 1 << 27), (2, 7, 1 << 17), (2, 64, 1 << 27))


def rows_of(
    dump: Path, output: Path, environment: dict[str, str], spark: tuple[int, int, int] | None = None
) -> Rows:
    """All rows that a run over the dump writes, by table."""
    if spark is None:
        run_process(dump, output, "local", environment=environment)
    else:
        cores, partitions, block = spark
        conf = output.parent / f"{output.name}-conf"
        conf.mkdir()
        (conf / "spark-defaults.conf").write_text(
            f"spark.sql.shuffle.partitions {partitions}\n"
            f"spark.sql.files.maxPartitionBytes {block}\n"
        )
        environment = {**environment, "SPARK_CONF_DIR": str(conf)}
        run_process(dump, output, "spark", f"--master=local[{cores}]", environment=environment)
    reports = {f"reports/{name}": rows for name, rows in report_rows(output).items()}
    return {**snapshot_rows(output), **reports}


def assert_same(came: Rows, expected: Rows) -> None:
    assert came.keys() == expected.keys()
    for name, rows in expected.items():
        assert came[name] == rows, name


def test_changed_lines_give_the_same_rows_by_either_engine(tmp_path: Path, java: None) -> None:
    """The quarantine among them, with file, line number and reason."""
    random = Random(SEED)  # noqa: S311 - to be repeated
    nights = random.sample(recorded_nights(), 5)
    lines = changed_night([line for night in nights for line in night], random, share=0.5)
    write_dump(lines, tmp_path / "dump", random, files=7)

    expected = rows_of(tmp_path / "dump", tmp_path / "local", USUAL)

    assert len(expected["quarantine"]) > len(lines) / 10
    assert expected["reports/orphaned_queues"]
    for number, (spark, environment) in enumerate(zip(SPARKS, OTHERS, strict=True)):
        assert_same(
            rows_of(tmp_path / "dump", tmp_path / f"spark-{number}", environment, spark), expected
        )


def test_the_order_of_lines_and_files_changes_nothing(tmp_path: Path, java: None) -> None:
    random = Random(SEED)  # noqa: S311 - to be repeated
    lines = [line for night in recorded_nights() for line in night]
    write_dump(lines, tmp_path / "dump", random, files=3)
    expected = rows_of(tmp_path / "dump", tmp_path / "local", USUAL)
    assert expected["reports/duplicate_queues"]
    for number, (spark, environment) in enumerate(zip((None, SPARKS[1]), OTHERS, strict=False)):
        random.shuffle(lines)
        dump = tmp_path / f"dump-{number}"
        write_dump(lines, dump, random, files=9)
        assert_same(rows_of(dump, tmp_path / f"out-{number}", environment, spark), expected)

"""What dumps show is what their snapshot tables show as DataFrames: captures, cases, the field."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs import audit
from jobs.storage import Snapshots
from tests.support.truth import CAPTURES, SAMPLE_SETTINGS

pytestmark = [pytest.mark.spark, pytest.mark.house]

#: The captures are the sample, which is audited as a whole.
DUMPS = [
    CAPTURES,
    *sorted(CAPTURES.parent.glob("cases/*")),
    *sorted(CAPTURES.parent.glob("field/*")),
]
NAMES = (
    *("heartbeats", "topic_routes", "broker_polls", "route_polls", "route_contents"),
    *("queue_offsets", "client_states"),
)


@pytest.mark.parametrize("dumps", DUMPS, ids=lambda path: path.name)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_frames_show_what_the_dumps_of_their_rows_do(spark: SparkSession, dumps: Path) -> None:
    of_files = audit(str(dumps), SAMPLE_SETTINGS)
    tables = Snapshots.open(of_files._task.snapshots)
    there = [name for name in NAMES if tables.has(name)]
    frames = {name: spark.read.parquet(tables.table(name).uri) for name in there}
    of_frames = audit(frames, SAMPLE_SETTINGS)
    assert of_frames.keys() == of_files.keys()
    for name in of_files.keys() - {"quarantine", "runs"}:  # of lines, and of rows; of one run
        rows, wanted = (
            [row | {"run_id": None} for row in of[name].to_pylist()] for of in (of_frames, of_files)
        )
        assert rows == wanted, name

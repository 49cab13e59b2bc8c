"""A secret in a client id is in nothing that the audit publishes, shows, logs or posts."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from jobs.cli import main
from jobs.config.masking import Masking
from jobs.config.settings import Settings
from jobs.engines.local import LocalEngine
from jobs.engines.pieces import unpack_rows
from jobs.pipeline.audit import fold_inputs
from jobs.pipeline.inputs import Inputs, terms_of
from jobs.schemas import REPORT_TABLES
from jobs.storage import Snapshots
from tests.e2e.test_names import line
from tests.support import bodies
from tests.support.runs import task

pytestmark = pytest.mark.e2e

SECRET = "pa55w0rd-of-nobody"  # noqa: S105 - of nobody
#: Longer than what a picture has room for: a label is cut within the secret.
CLIENT_ID = f"10.42.0.11@a-rather-long-access-key-id|{SECRET}|INST%pay-topic|1"
SHOWN = Masking().mask(CLIENT_ID)
#: The same secret in another id.
LATE_ID = CLIENT_ID.replace("10.42.0.11", "10.42.0.12")
GROUP, TOPIC = "GID_pay", "pay-topic"
ROUNDS = 9


def dump() -> list[str]:
    """Two processes with one id that holds a secret, and one that joins late with it."""
    broker = {"broker_name": "broker-a", "broker_id": 0, "broker_addr": "10.0.0.1:10911"}
    asked = {"consumer_group": GROUP, **broker}
    route = bodies.route({"broker-a": {0: "10.0.0.1:10911"}}, 8)
    subscribed = bodies.subscriptions([TOPIC])
    started = {"PROP_CONSUMER_START_TIMESTAMP": "1795168000000"}
    info = {"properties": started, "subscriptionSet": subscribed, "mqTable": {}}
    lines = []
    for minute in range(ROUNDS):
        ids = [CLIENT_ID, CLIENT_ID, *[LATE_ID][: minute // 4]]
        lines += [
            line("topic_route", minute, route, namesrv_addr="ns:9876", topic=TOPIC),
            line(
                "consumer_connection",
                minute,
                bodies.members(
                    [(each, f"10.9.0.{number}:5000") for number, each in enumerate(ids)],
                    subscribed,
                    version=317,
                ),
                **asked,
            ),
            line("consumer_running_info", minute, info, client_id=CLIENT_ID, **asked),
        ]
    # A line that is not understood is published as it came, but for what must not be seen.
    return [*lines, line("consumer_connection", 1, f'{{"clientId": "{CLIENT_ID}",')]


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("secrets")
    (folder / "dump.jsonl").write_text("\n".join(dump()) + "\n")
    return folder


@pytest.fixture(scope="module", autouse=True)
def published(output: Path) -> Path:
    settings = ["--set", "allowed_quarantine_share=1.0"]
    dumps = str(output / "dump.jsonl")
    run = ["run", "--dumps", dumps, "--output", str(output), "--engine", "local", *settings]
    assert main(run) == 0
    return output / "reports"


def texts(folder: Path) -> dict[str, str]:
    """By path all that the files of a folder say."""
    return {
        str(path.relative_to(folder)): str(pq.read_table(path).to_pylist())
        if path.suffix == ".parquet"
        else path.read_text(errors="replace")
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_no_published_file_has_it_and_the_masked_id_is_where_it_was(published: Path) -> None:
    said = texts(published)
    assert not [path for path, text in said.items() if SECRET in text]
    late = Masking().mask(LATE_ID)
    showing = {
        path.partition("/")[0] for path, text in said.items() if SHOWN in text or late in text
    }
    assert showing >= {
        *("duplicate_queues", "group_faults", "stacked_client_ids", "allocations"),
        *("reassignments", "allocation_drift", "quarantine"),
    }


def test_what_the_shards_make_of_tables_does_not_have_it(output: Path) -> None:
    """Pieces of report tables leave a worker; what goes from worker to worker has the true id."""
    settings = Settings()
    to_do = task(output / "snapshots", output / "unused", settings=settings)
    with LocalEngine() as engine:
        inputs = Inputs(Snapshots.open(to_do.snapshots), settings)
        judged = fold_inputs(engine, inputs, to_do).judge(terms_of(settings), {}, settings)
        made: dict[str, str] = defaultdict(str)
        for piece in engine.collect(judged):
            made[piece.kind] += str(unpack_rows(piece.data).to_pylist())
    assert not [name for name, text in made.items() if SECRET in text]
    showing = {name for name, text in made.items() if SHOWN in text}
    assert showing >= {"duplicate_queues", "group_faults", "stacked_client_ids", "allocations"}


def test_the_fault_says_that_there_is_a_secret_and_lasts(published: Path) -> None:
    rows = pq.read_table(next((published / "group_faults").rglob("*.parquet"))).to_pylist()
    (fault,) = [row for row in rows if row["fault"] == "SECRET_IN_CLIENT_ID"]
    assert fault["client_ids"] == [SHOWN, Masking().mask(LATE_ID)]
    how = [fault[name] for name in ("persistence", "severity", "ongoing")]
    assert how == ["PERSISTENT", "WARNING", True]
    assert SHOWN in fault["evidence"]
    assert "then replace the secret" in fault["remedy"]


def test_the_snapshot_tables_keep_the_true_id(output: Path) -> None:
    tables = texts(output / "snapshots")
    (heartbeats,) = (name for name in tables if name.startswith("heartbeats/"))
    assert CLIENT_ID in tables[heartbeats]


ASKED = ("--dumps", "dump.jsonl", "--group", GROUP, "--topic", TOPIC)


@pytest.mark.parametrize(
    ("arguments", "shows_it"),
    [
        (("explain", *ASKED), True),
        (("what-if", *ASKED, "--leave", SHOWN), True),
        (("what-if", *ASKED, "--leave", SHOWN, "--format", "json"), True),
        (("what-if", *ASKED[:4], "--join", SHOWN, "--format", "json"), True),
        (("what-if", *ASKED, "--separate-ids"), True),
        (("what-if", *ASKED, "--leave", "10.42.0.11@a-rather-long-access-key-id|x"), True),
        (("report", "--reports", "reports", "--output", "page.html"), True),
        (("report", "--reports", "reports", "--format", "md", "--output", "page.md"), True),
        (("alert", "--reports", "reports", "--metrics", "audit.prom"), False),
        (("show", "group_faults", "--reports", "reports", "--format", "csv"), True),
        (("show", "summary", "--reports", "reports"), False),
        *(
            (("show", table.name, "--reports", "reports", "--format", "json"), False)
            for table in REPORT_TABLES
        ),
    ],
)
def test_no_command_shows_it(
    output: Path,
    arguments: tuple[str, ...],
    shows_it: bool,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(output)
    main(arguments)
    captured = capfd.readouterr()
    said = captured.out + captured.err
    written = (*output.glob("page.*"), *output.glob("*.prom"))
    said += "".join(path.read_text() for path in written)
    assert said
    assert SECRET not in said
    assert SECRET[:6] not in said
    if shows_it:
        assert "(secret " in said


def test_a_key_makes_another_hash_and_patterns_can_be_left_out(
    output: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "key").write_text("of this test\n")
    keyed = Masking(key=b"of this test").mask(CLIENT_ID)
    assert keyed != SHOWN
    arguments = ["explain", "--dumps", str(output / "dump.jsonl"), *ASKED[2:]]

    def said(setting: str) -> str:
        assert main([*arguments, "--set", setting]) == 0
        return capfd.readouterr().out

    assert keyed in said(f'masking.key_file="{tmp_path / "key"}"')
    assert SECRET in said("masking.defaults=[]")

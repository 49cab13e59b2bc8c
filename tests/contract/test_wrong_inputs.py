"""Wrong inputs: the first sentence says what is wrong, where, and what to do; the exit code whose
it is: 2 the command line or the settings, 3 the input, 4 a server or a disk.
"""

from __future__ import annotations

import json
import re
import shlex
import tarfile
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from jobs.cli import main
from tests.dumps.samples import BODIES, line

pytestmark = pytest.mark.long

CAPTURE = Path(__file__).parent.parent / "data" / "captures" / "S1" / "dump.jsonl.gz"
KINDS = ("consumer_connection", "topic_route", "heartbeat")


def dump(**overrides: object) -> str:
    return "".join(f"{line(kind, **overrides)}\n" for kind in KINDS)


def tar(text: bytes) -> bytes:
    """An archive with one dump in it."""
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        member = tarfile.TarInfo("dump.jsonl")
        member.size = len(text)
        archive.addfile(member, BytesIO(text))
    return packed.getvalue()


ROUTE = BODIES["topic_route"]
FUTURE = "2099-01-05T09:00:00Z"
#: By name what is in a file, beside the good ``whole.jsonl``.
FILES: Mapping[str, str | bytes] = {
    "whole.jsonl": dump(),
    "cut.jsonl.gz": CAPTURE.read_bytes()[: CAPTURE.stat().st_size // 2],
    "plain.jsonl.gz": dump(),
    "mqadmin.txt": "#Topic  #Broker Name  #QID  #Broker Offset\nT  broker-a  0  10\n",
    "rows.csv": "topic,broker,queue\nT,broker-a,0\n",
    "table.parquet": b"PAR1\x00\x05\xff\x05PAR1",
    "archive.zip": b"PK\x03\x04\x14\x00\xff\x00",
    "empty.jsonl": "",
    "list.json": f"[{line('topic_route')}]",
    "pretty.json": json.dumps(json.loads(line("topic_route")), indent=2),
    "prometheus.json": '{"status":"success","data":{"result":[]}}\n',
    "no_zone.jsonl": dump(collected_at="2026-01-05T09:00:00"),
    "number.jsonl": dump(collected_at=1767603600000),
    "future.jsonl": dump(collected_at=FUTURE).replace("2026-01-05T09:00:00Z", FUTURE),
    "no_cluster.jsonl": dump(cluster=None),
    "no_lists.jsonl": line("heartbeat"),
    "negative.jsonl": line("topic_route", body=ROUTE.replace(":4", ":-4")),
    "huge.jsonl": line("topic_route", body=ROUTE.replace(":4", ":99999999999")),
    "unit.jsonl": line("topic_route", body=ROUTE.replace(":4", ':"4 queues"')),
    "long_name.jsonl": line("topic_route", topic="T" * 9000),
    "two_clusters.jsonl": dump() + dump(cluster="D"),
    "escape.jsonl": dump(cluster="\x1b[31m<script>"),
    "utf16.jsonl": dump().encode("utf-16"),
    "dumps.tar": tar(dump().encode()),
    "broken.toml": 'language = "en"\nretries = = 3\n',
    "other_tool.toml": "[tool.ruff]\nline-length = 100\n",
    "negative.toml": "persistence_seconds = -5\n",
    "unit.toml": 'persistence_seconds = "3m"\n',
    "share.toml": "allowed_quarantine_share = 5\n",
    "huge.toml": f"persistence_seconds = {2**70}\n",
    "strategy.toml": '[[strategies]]\ngroups = "G"\nname = "STICKY"\n',
    "pattern.toml": '[[strategies]]\ngroups = "G_("\nname = "AVG"\n',
    "zone.toml": 'display_time_zone = "Beijing"\n',
    "issues.toml": '[[known_issues]]\ngroup = "G"\nreason = "OPS-1"\nexpires = "soon"\n',
    "no_secret.toml": '[alerts]\nservice = "SLACK"\nwebhook_file = "nothere.txt"\n',
    "bad_url.toml": '[alerts]\nservice = "SLACK"\nwebhook_file = "url.txt"\n',
    "url.txt": "hooks.slack.com/services/T/B/X\n",
    "account.yml": "accessKey: k\n",
    "clusters.toml": '[[clusters]]\nname = "c"\n',
}
#: What is wrong, and the command; the exit code, and the parts of the first sentence.
WRONG = r"""
# Dumps.
no such dump: run nothere/*.gz
    3 no dump at ... nothere/*.gz ... check the path
a folder without dumps: run nothing
    3 no dump at ... nothing: expected files of JSON Lines ... check the path
a gzip stream that is cut: run cut.jsonl.gz
    0 ends early ... cut.jsonl.gz ... lines ... copy the file again
a file that is named .gz and is not packed: run plain.jsonl.gz
    3 plain.jsonl.gz: it is not packed by gzip: give it a name without .gz; 1 of 1 lines,
a dump of nothing: run empty.jsonl
    3 empty.jsonl is empty (was the disk full?)
tables among the dumps: run .
    2 /o/snapshots would be written into ... keep the dumps in a folder of their own, or
tables below the dumps of a glob: ingest --dumps noth* --snapshots nothing/tables
    2 /nothing/tables would be written into ... where the dumps are read
the text of mqadmin: run mqadmin.txt
    3 mqadmin.txt line 1: expected one JSON object, came '#Topic ... docs/dumps.md has their
a CSV file: run rows.csv
    3 rows.csv line 1: expected one JSON object, came 'topic, ... name the folder of dumps
a table: run table.parquet
    3 table.parquet line 1 ... audit --snapshots reads tabl
a ZIP archive: run archive.zip
    3 archive.zip line 1: expected ... unpack it
a JSON list: run list.json
    3 list.json line 1: expected one JSON object, came '[{ ... as jq -c '.[]' does ... dumps.md
JSON over many lines: run pretty.json
    3 pretty.json line 1: expected one JSON object, came '{' ... as jq -c . does ... dumps.md
a dump in UTF-16: run utf16.jsonl
    3 utf16.jsonl line ... : expected UTF-8 text, came UTF-16 ... iconv -f UTF-16 -t UTF-8
dumps in a tar archive: run dumps.tar
    3 dumps.tar line 1: expected one JSON object, came ... unpack it
JSON of another tool: run prometheus.json
    3 prometheus.json line 1: expected kind to be one of heartbeat, ... came nothing
times without a zone: run no_zone.jsonl
    3 no_zone.jsonl line 1: expected collected_at to be a time as ISO 8601 with zone, came
    '2026-01-05T09:00:00' ... show quarantine lists them
times that are numbers: run number.jsonl
    3 number.jsonl line 1: expected collected_at to be a time ... came '1767603600000'
times of the future: run future.jsonl
    3 every snapshot at ... this machine's clock plus bounds.future_days = 1 ... set the clock
    right
no cluster: run no_cluster.jsonl
    3 no_cluster.jsonl line 1: expected cluster to be a text that is not empty, came noth
heartbeats alone: run no_lists.jsonl
    3 no list of members at ... lines of the kind consumer_connection ... collect asks broker
fewer queues than none: run negative.jsonl
    3 negative.jsonl line 1: body: expected ... readQueueNums ... of 0 to 2147483647
more queues than Java counts: run huge.jsonl
    3 huge.jsonl line 1: body: expected TopicRouteData, came ... docs/dumps.md
a number with its unit: run unit.jsonl
    3 unit.jsonl line 1: body: expected TopicRouteData, came ... docs/dumps.md
a name of 9,000 letters: run long_name.jsonl
    3 long_name.jsonl line 1: expected at most ... characters in ... bounds.name_length
a group of two clusters: explain --dumps two_clusters.jsonl --group G
    3 G is in several clusters, 'C', 'D' ... say which with --cluster
a cluster named by an attacker: explain --dumps escape.jsonl --group G --cluster C
    3 no cluster 'C' here with G: there is only '\x1b[31m<script>'
# Settings.
there is no such settings file: run whole.jsonl --settings nothere.toml
    2 No such file ... nothere.toml ... check the path
a folder as settings: run whole.jsonl --settings nothing
    2 nothing cannot be read: Is a directory ... check the path
broken TOML: run whole.jsonl --settings broken.toml
    2 expected TOML ... broken.toml ... (at line 2, column 11) ... mend it there
settings of another tool: run whole.jsonl --settings other_tool.toml
    2 settings other_tool.toml: ... tool: there is no such setting; is it the right file?
a negative setting: run whole.jsonl --settings negative.toml
    2 negative.toml: ... persistence_seconds: expected 0 or more, came -5
a setting with its unit: run whole.jsonl --settings unit.toml
    2 unit.toml: ... persistence_seconds: expected a whole number, came '3m'
a share above one: run whole.jsonl --settings share.toml
    2 share.toml: ... allowed_quarantine_share: expected 1.0 or less, came 5
a number of 70 bits: run whole.jsonl --settings huge.toml
    2 huge.toml: expected TOML: expected numbers of 64 bits, came a larger one
an unknown strategy: run whole.jsonl --settings strategy.toml
    2 strategies.0: unknown strategy 'STICKY': expected one of AVG, AVG_BY_CIRCLE,
a pattern that is none: run whole.jsonl --settings pattern.toml
    2 strategies.0.groups: expected a regular expression, came 'G_(': missing )
a zone that is none: run whole.jsonl --settings zone.toml
    2 display_time_zone: expected UTC, local or the name of a time zone such as ... Beijing
a known issue with a wrong name and no date: run whole.jsonl --known-issues issues.toml
    2 known issues issues.toml: ... 0.group: there is no such key: did you mean known_issues.0.gro
    ... expires
a setting that is misspelt: run whole.jsonl --set persistance_seconds=5
    2 --set persistance_seconds: there is no such ... did you mean persistence_seconds?
# Options.
a date with the day first: run whole.jsonl --date 05.01.2026
    2 --date: expected a date as YYYY-MM-DD, came '05.01.2026' ... run --help
a time that is a word: run whole.jsonl --since yesterday
    2 --since: expected a time ... came 'yesterday': write it as 2026-11-20T10:00:00Z
a date beside times: run whole.jsonl --date 2026-01-05 --since 2026-01-05
    2 expected --date or --since/--until, came both
a date of which there is nothing: run whole.jsonl --date 2020-01-01
    3 no snapshot from 2020-01-01T00:00:00Z to 2020-01-02T00:00:00Z, exclusive: the ...
    snapshots go from 2026-01-05T09:00:00Z ... so name another --date
a gate that there is not: run whole.jsonl --fail-on SEVERE
    2 --fail-on: expected some of INFO, WARNING, CRITICAL, INCOMPLETE ... came 'SEVERE'
a folder that is a file: run whole.jsonl --output url.txt
    2 --output: expected a folder, came the file 'url.txt' ... run --help
# Reports.
no reports yet: show orphaned_queues --reports nothing
    3 no published reports under ... /nothing: expected the folder that a run names
another folder of the run: report --reports out/snapshots
    3 no published reports under ... out/snapshots: expected the folder ... as out/reports
a date without a report: show orphaned_queues --reports out/reports --date 2020-01-01
    3 no published report of 2020-01-01 ... /out/reports; there is only 2026-01-05
a table that was cut: show group_health --reports cut/reports
    4 /cut/reports/group_health/dt=2026-01-05/ ... has 9 bytes, and ... restore the file, or r
an unknown file system: report --reports ftp://key:secret@h/x
    3 expected a path, or a URI such as s3://bucket/folder ... came ftp://h/x
half of a table's name: show orphaned --reports out/reports
    2 no table orphaned (did you mean orphaned_queues?) in the run of 2026-01-05 ... events
an unknown group: show orphaned_queues --reports out/reports --group H
    2 no group 'H' in the run of 2026-01-05: there is only 'G'
an unknown column: show orphaned_queues --reports out/reports --columns cluter
    2 no column cluter (did you mean cluster?) ... there are cluster, consumer_group
an unknown finding: report --reports out/reports --finding X
    3 no finding X in this run ... show TABLE --columns finding_id
a picture of many nights: report --reports out/reports --finding X --nights 3
    2 --nights: not allowed with argument --finding ... report --help
a picture as a ticket: report --reports out/reports --finding X --format markdown
    2 expected --finding without --format ... SVG
a picture as a PNG: report --reports out/reports --finding X --output x.png
    2 expected --output x.svg with --finding, came x.png ... SVG
# Alerts.
no URL of a webhook: alert --reports out/reports --webhook
    2 expected the webhook's URL in REBALANCE_AUDIT_WEBHOOK, or in the file ... came neither
a URL that is none: alert --reports out/reports --webhook --settings bad_url.toml
    2 alerts: expected the webhook's URL as https://host/path (what came is not shown)
no file of the secret: alert --reports out/reports --webhook --settings no_secret.toml
    2 alerts.webhook_file nothere.txt cannot be read: No such file ... into its first line
# A moment.
a group that the dumps have not: explain --dumps whole.jsonl --group H
    3 no group 'H' here: there is only 'G'
a topic that the group has not: explain --dumps whole.jsonl --group G --topic U
    3 no member of G subscribes to the topic 'U': there is only 'T'
a time before the dumps: explain --dumps whole.jsonl --group G --at 2020-01-01T00:00:00Z
    3 G has no snapshot up to 2020-01-01 ... its snapshots go from 2026-01-05T09:00:00
dumps and tables: explain --dumps whole.jsonl --group G --snapshots out/snapshots
    2 --snapshots: not allowed with argument --dumps ... explain --help
reports as tables: explain --snapshots out/reports --group G
    3 no table heartbeats at ... expected the folder of snapshot tables ... as out/snapshots
an unknown client leaves: what-if --dumps whole.jsonl --group G --topic T --leave 10.0.0.9@app
    2 expected a client of G to leave, came '10.0.0.9@app' ... '10.0.0.1@1'
a number where ids are meant: what-if --dumps whole.jsonl --group G --topic T --join 2
    2 --join: expected a client id ... came the number 2 ... write --join new-1 --join new-2; re
a strategy that RocketMQ has not: what-if --dumps whole.jsonl --group G --topic T --strategy sticky
    2 --strategy: unknown strategy 'sticky': expected one of AVG ... what-if --help
too many queues: what-if --dumps whole.jsonl --group G --topic T --queues 99999999
    2 --queues: expected 0 to 100000 queues, came 99999999
a broker that is there: what-if --dumps whole.jsonl --group G --topic T --add-broker broker-a=4
    2 expected the name of a new broker, came 'broker-a'
# Servers.
no nameserver is named: live --output o
    2 came neither ... --namesrv HOST:PORT ... give a nameserver of the cluster
no nameserver answers: collect --dumps d --namesrv 127.0.0.1:1 --timeout 0.5
    4 no nameserver answers ... 127.0.0.1:1 ... check the address
the address of a web page: collect --dumps d --namesrv http://127.0.0.1:9876
    2 --namesrv: expected host:port of a nameserver, came 'http:// ... without http://
a duration of no unit: collect --dumps d --namesrv h:1 --every 1x
    2 --every: expected a duration such as 60, 90s, 5m or 24h, came '1x'
half of an account: collect --dumps d --namesrv h:1 --account account.yml
    2 account.yml: expected an access key and a secret key, secretKey is empty
clusters without a nameserver: collect --dumps d --config clusters.toml
    2 settings clusters.toml: ... clusters.0.namesrv: expected a value, there is none
nothing like it to ask: collect --dumps d --namesrv h:1 --without lists
    2 without.0: expected 'routes', 'running-infos', 'offsets' or 'request-modes', came
"""


def cases() -> Iterator[Any]:
    """Command line, exit code and parts of each; ``run FILE`` is a quiet audit of that dump."""
    lines = [line for line in WRONG.splitlines() if line and not line.startswith("#")]
    for block in re.split(r"\n(?=\S)", "\n".join(lines)):
        asked, *said = block.split("\n    ")
        wrong, _, command = asked.partition(": ")
        arguments = shlex.split(command)
        if arguments[0] == "run":
            arguments[1:2] = ["--quiet", "--engine=local", "--output=o", "--dumps", arguments[1]]
        code, first = " ".join(said).split(" ", 1)
        yield pytest.param(arguments, int(code), first.split(" ... "), id=wrong)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files, what an audit makes of the good one, and that with a table that is cut."""
    folder = tmp_path_factory.mktemp("wrong")
    for name, content in FILES.items():
        data = content.encode() if isinstance(content, str) else content
        (folder / name).write_bytes(data)
    (folder / "url.txt").chmod(0o600)
    (folder / "account.yml").chmod(0o600)
    (folder / "nothing").mkdir()
    good = ["--dumps", str(folder / "whole.jsonl"), "--output", str(folder / "out")]
    assert main(["run", *good, "--engine", "local", "--quiet"]) == 0
    copytree(folder / "out", folder / "cut")
    for table in folder.glob("cut/reports/group_health/*/*/*.parquet"):
        table.write_bytes(b"PAR1 PAR1")
    return folder


@pytest.mark.parametrize(("arguments", "code", "parts"), list(cases()))
def test_the_first_sentence_says_what_where_and_what_to_do(
    arguments: list[str],
    code: int,
    parts: list[str],
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setenv("XDG_STATE_HOME", str(place))
    assert main(arguments) == code
    errors = capsys.readouterr().err.split("rebalance-audit: ")
    # Which files are read is not part of what is wrong.
    first = next(each for each in errors if each and not each.startswith("reads "))
    assert [each for each in parts if each not in first] == []

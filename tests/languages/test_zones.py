"""The reader's time zone: every surface has its times in it, and what programs read has UTC."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from jobs.cli import main
from jobs.config.settings import Settings
from jobs.declared.instants import SECOND
from jobs.languages.language import language
from jobs.rendering.page import to_html
from jobs.verdict.silence import missed_rounds
from rebalance_core.texts import Text, decode, encode
from tests.cases.small_dumps import MEMBERS, MINUTES, members, route
from tests.jobs.rendering.test_page import a_night, report
from tests.support.published import finding

#: The first round is at 02:55 in Berlin, in summer; the sixth is at 02:00 there, in winter.
BEGIN = datetime(2026, 10, 25, 0, 55, tzinfo=UTC)
TIMES = re.compile(r"2026-11-20T10:[0-9:.]+Z")
BERLIN, SHANGHAI = "Europe/Berlin", "Asia/Shanghai"


def moved(match: re.Match[str]) -> str:
    since = datetime.fromisoformat(match[0]) - datetime(2026, 11, 20, 10, tzinfo=UTC)
    return (BEGIN + since).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which the list of broker-b lacks a member from the third round on, 00:57 in UTC."""
    folder = tmp_path_factory.mktemp("zones")
    lines = [
        each
        for minute in MINUTES
        for each in (
            route(60 * minute, "broker-a", "broker-b"),
            members(60 * minute, "broker-a", MEMBERS),
            members(60 * minute, "broker-b", MEMBERS if minute < 2 else MEMBERS[1:]),
        )
    ]
    text = "".join(f"{json.dumps(each)}\n" for each in lines)
    (folder / "d.jsonl").write_text(TIMES.sub(moved, text), encoding="utf-8")
    assert main([*run(folder), "--quiet"]) == 0
    return folder


def run(folder: Path) -> list[str]:
    dumps = ["--dumps", str(folder / "d.jsonl"), "--engine", "local"]
    return ["run", *dumps, "--output", str(folder / "out")]


def answer(capsys: pytest.CaptureFixture[str], zone: str, *arguments: str) -> tuple[str, str]:
    """What a command says to a reader of this zone, and beside it."""
    capsys.readouterr()
    assert main([*arguments, "--set", f'display_time_zone="{zone}"']) == 0
    said = capsys.readouterr()
    return said.out, said.err


#: 00:57 in UTC, on the console and as a part of each other surface.
AT_0057 = {
    "UTC": ("2026-10-25 00:57:00", "2026-10-25 00:57 UTC", "2026-10-25T00:57:00.000Z"),
    BERLIN: (
        *("2026-10-25 02:57:00 UTC+02:00", "2026-10-25 02:57 UTC+02:00"),
        "2026-10-25T02:57:00.000+02:00",
    ),
    SHANGHAI: (
        *("2026-10-25 08:57:00", "2026-10-25 08:57 UTC+08:00", "2026-10-25T08:57:00.000+08:00"),
    ),
}


@pytest.mark.parametrize(("zone", "code"), [("UTC", "en"), (BERLIN, "zh"), (SHANGHAI, "en")])
def test_every_surface_has_the_times_of_the_reader(
    folder: Path, capsys: pytest.CaptureFixture[str], zone: str, code: str
) -> None:
    day, minute, iso = AT_0057[zone]
    reports = ["--reports", str(folder / "out" / "reports"), "--language", code]
    page, _ = answer(capsys, zone, "report", *reports, "--output", "-")
    assert f'<time datetime="2026-10-25T00:57:00Z">{day}</time>' in page
    heads = {"en": f"When ({zone})", "zh": f"时间（{zone}）"}
    assert heads[code] in page
    ticket, _ = answer(capsys, zone, "report", *reports, "--format", "markdown", "--output", "-")
    assert day in ticket
    assert heads[code] in ticket
    assert minute in answer(capsys, zone, "alert", *reports)[0]
    snapshots = ["--snapshots", str(folder / "out" / "snapshots"), "--language", code]
    asked = ["explain", "--group", "G", *snapshots, "--at", iso]
    text, beside = answer(capsys, zone, *asked)
    assert iso in text
    assert "is read as" not in beside
    of_change = ["what-if", *asked[1:], "--unify-list", "broker-b"]
    assert iso in answer(capsys, zone, *of_change)[0]


def test_the_pages_of_nights_and_the_picture_of_a_finding_have_them_too(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    zone, (day, _, _) = BERLIN, AT_0057[BERLIN]
    reports = ["--reports", str(folder / "out" / "reports")]
    answer(capsys, zone, "report", *reports, "--nights", "2", "--output", str(tmp_path))
    page = (tmp_path / "dt=2026-10-25.html").read_text(encoding="utf-8")
    assert f'<time datetime="2026-10-25T00:57:00Z">{day}</time>' in page
    table, _ = answer(capsys, "UTC", "show", "duplicate_queues", "--format", "json", *reports)
    finding = json.loads(table.splitlines()[0])["finding_id"]
    picture, _ = answer(capsys, zone, "report", *reports, "--finding", finding, "--output", "-")
    assert f"{day} to " in " ".join(re.sub("<[^>]+>", " ", picture).split())
    assert f"when ({zone})" in picture


def test_every_time_of_a_page_is_the_readers_and_is_the_browsers_moment() -> None:
    """Also in a card that is closed, and of what passed."""
    tables = a_night(8, 6)
    passed = finding(3, topic="U", persistence="TRANSIENT", severity="INFO", ongoing=False)
    tables["orphaned_queues"].append({**passed, "status": None})
    page = to_html(report(top=0, **tables), "r", language=language("en", SHANGHAI))
    times = re.findall('<time(?: datetime="(.*?)")?>(.*?)</time>', page)
    assert len(times) > 15
    for machine, shown in times:
        local = datetime.fromisoformat(machine).astimezone(ZoneInfo(SHANGHAI))
        assert f"{local:%Y-%m-%d %H:%M:%S}".endswith(shown)
    for part in ('<details class="problem', 'id="passed"'):
        assert "<time" in page.partition(part)[2].partition("</details>")[0]


def test_what_the_input_lacks_is_said_in_the_zone_of_the_reader() -> None:
    (gap,) = missed_rounds({"C": [n * 60 * SECOND for n in (0, 1, 2, 3, 4, 5, 6, 30)]}, 180)
    said = language("en", SHANGHAI).of(gap.text)
    assert said.endswith("from 1970-01-01 08:06:00 UTC+08:00 to 1970-01-01 08:30:00 UTC+08:00")


def test_the_end_of_a_run_has_the_zone_and_its_times(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for zone in ("UTC", BERLIN):
        day, _, _ = AT_0057[zone]
        text, _ = answer(capsys, zone, *run(folder), "--set", "persistence_seconds=60")
        assert f"  when:   since {day}, " in text
        assert text.startswith(f"times: {zone}\n") is (zone != "UTC")


def test_what_programs_read_is_the_same_in_every_zone(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reports = ["--reports", str(folder / "out" / "reports")]
    for command in (
        ["show", "group_faults", "--format", "csv", *reports],
        ["show", "duplicate_queues", "--format", "json", *reports],
        ["alert", "--metrics", "-", *reports],
    ):
        assert len({answer(capsys, zone, *command)[0] for zone in AT_0057}) == 1


def test_a_time_without_a_zone_is_the_readers_and_that_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshots = ["--snapshots", str(folder / "out" / "snapshots")]
    asked = ["explain", "--group", "G", *snapshots, "--at"]
    text, beside = answer(capsys, SHANGHAI, *asked, "2026-10-25 08:57")
    assert "2026-10-25T08:57:00.000+08:00" in text
    said = "--at 2026-10-25 08:57 is read as Asia/Shanghai, which is 2026-10-25T00:57:00.000Z"
    assert said in beside
    window = ["--since", "2026-10-25 08:57", "--until", "2026-10-25 08:58", "--dry-run"]
    text, beside = answer(capsys, SHANGHAI, *run(folder), *window)
    assert "2026-10-25T00:57:00Z to 2026-10-25T00:58:00Z" in text
    for option, local, iso in (("since", "08:57", "00:57"), ("until", "08:58", "00:58")):
        said = f"--{option} 2026-10-25 {local} is read as Asia/Shanghai, which is 2026-10-25T{iso}"
        assert said in beside
    text, beside = answer(capsys, "UTC", *asked, "2026-10-25 00:57")
    assert "2026-10-25T00:57:00.000Z" in text
    assert "is read as" not in beside


def test_that_no_snapshot_is_so_early_is_said_in_the_zone_of_the_reader(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the zone in which ``--at`` was typed, and with its name."""
    snapshots = ["--snapshots", str(folder / "out" / "snapshots")]
    asked = ["explain", "--group", "G", *snapshots, "--at", "2026-01-01 00:00"]
    for zone, named in ((SHANGHAI, f" ({SHANGHAI})"), ("UTC", "")):
        assert main([*asked, "--set", f'display_time_zone="{zone}"']) == 3
        *_, said = capsys.readouterr().err.splitlines()
        came = "2026-01-01T00:00:00.000" + ("+08:00" if named else "Z")
        assert f"G has no snapshot up to {came}: its snapshots go from 2026-10-25T0" in said
        assert said.endswith(f"{named}")
        assert ("Z" in said) is not bool(named)


def test_a_published_text_remembers_its_times() -> None:
    #: 00:30 and 01:30 in UTC, both 02:30 in Berlin.
    summer, winter = 1_792_888_200_000_000, 1_792_891_800_000_000
    template = "from {since:clock} to {until:clockZ}, in {at:month_minute}"
    text = Text(template, since=summer, until=winter, at=summer)
    assert text == "from 00:30:00 to 01:30:00 UTC, in 10-25 00:30"
    read = decode(encode({"why": text}), {"why": str(text)})["why"]
    assert read is not None
    for reader, said in (
        (("en", SHANGHAI), "from 08:30:00 to 09:30:00 UTC+08:00, in 10-25 08:30"),
        (("zh", BERLIN), "from 02:30:00 UTC+02:00 to 02:30:00 UTC+01:00, in 10-25 02:30 UTC+02:00"),
    ):
        assert language(*reader).of(read) == said


def test_a_time_that_a_stranger_changed_is_shown_as_it_is() -> None:
    for value in ("x", 1e300, float("nan")):
        assert Text("at {at:clock}", at=value) == f"at {value}"
    assert Text("at {at:strange}", at=1) == "at 1"


def test_local_is_the_zone_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", ":Asia/Shanghai")
    settings = Settings(display_time_zone="local")
    assert str(settings.reader.zone) == SHANGHAI


def test_the_zone_of_the_reader_does_not_change_what_a_run_finds() -> None:
    assert Settings(display_time_zone=BERLIN).fingerprint() == Settings().fingerprint()

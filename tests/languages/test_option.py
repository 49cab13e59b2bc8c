"""``--language`` and the setting: in which language a command answers."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.cli import main
from jobs.config.choices import LANGUAGES
from jobs.config.settings import load_settings
from jobs.errors import SettingsError
from jobs.storage import Reports
from tests.support.truth import CAPTURES

ROOT = Path(__file__).parent.parent.parent
S2 = ["--dumps", str(CAPTURES / "S2"), "--group", "G_S2", "--topic", "T_S2"]


def out(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    main([*arguments, "--quiet"])
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "chinese"),
    [
        ([], False),
        (["--language", "zh"], True),
        (["--set", "language=zh"], True),
        (["--set", "language=zh", "--language", "en"], False),
        (["--set", "language=en", "--language", "zh"], True),
    ],
)
def test_the_option_goes_before_the_setting(
    arguments: list[str], chinese: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    text = out(capsys, "explain", *S2, *arguments)
    assert ("谁消费什么" in text) == chinese
    assert ("Who takes what" in text) != chinese


def test_what_if_answers_in_the_language(capsys: pytest.CaptureFixture[str]) -> None:
    assert "没有变化" in out(capsys, "what-if", *S2, "--separate-ids", "--language", "zh")


def test_what_if_as_json_is_the_same_in_every_language(capsys: pytest.CaptureFixture[str]) -> None:
    """A program reads it: its keys and texts are English."""
    asked = ["what-if", *S2, "--at", "2026-11-21T02:05:10Z", "--separate-ids", "--format", "json"]
    english, chinese = (out(capsys, *asked, "--language", code) for code in ("en", "zh"))
    assert json.loads(english)["topics"]
    assert chinese == english


def test_an_alert_is_in_the_language(audited: Reports, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["alert", "--reports", str(audited.root)]
    assert "7 topics of 5 groups have new findings" in out(capsys, *asked)
    assert "5 个消费者组的 7 个主题有新问题" in out(capsys, *asked, "--language", "zh")


@pytest.mark.long
@pytest.mark.parametrize(
    ("nights", "number", "code", "tag"),
    [([], 1, "en", "en"), (["--nights", "3"], 2, "zh", "zh-CN")],
)
def test_a_page_is_in_the_language(
    nights: list[str], number: int, code: str, tag: str, audited: Reports, tmp_path: Path
) -> None:
    asked = ["report", *nights, "--reports", str(audited.root), "--output", f"{tmp_path}/pages/"]
    assert main([*asked, "--language", code, "--quiet"]) == 0
    pages = sorted((tmp_path / "pages").glob("*.html"))
    assert len(pages) == number
    for page in pages:
        assert f'<html lang="{tag}"' in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("code", ["fr", "ZH", "zh-CN", ""])
def test_a_language_that_is_not_there_is_refused_with_those_that_are(
    code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", *S2, "--language", code]) == 2
    assert "(choose from 'en', 'zh')" in capsys.readouterr().err
    with pytest.raises(SettingsError, match=r"language: .*expected one of the languages en, zh"):
        load_settings(None, [f'language="{code}"'])


def test_the_language_of_the_reader_does_not_change_what_a_run_finds() -> None:
    """Else --since last would begin anew for another language."""
    prints = {load_settings(None, [f"language={code}"]).fingerprint() for code in LANGUAGES}
    assert len(prints) == 1


@pytest.mark.long
def test_a_language_is_read_from_the_zip_that_spark_submit_gets(tmp_path: Path) -> None:
    """Its files are no files there."""
    for package in ("jobs", "rebalance_core"):
        shutil.copytree(ROOT / package, tmp_path / "in" / package)
    zipped = shutil.make_archive(str(tmp_path / "audit"), "zip", tmp_path / "in")
    code = (
        f"import sys; sys.path.insert(0, {zipped!r})\n"
        "from jobs.languages.language import language\n"
        "assert '.zip' in language.__wrapped__.__code__.co_filename\n"
        "sys.stdout.buffer.write(language('zh')('Who takes what').encode())\n"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, check=True)
    assert done.stdout.decode() == "谁消费什么"

"""Wrong inputs: the first sentence says what is wrong, where, and what to do."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from jobs.cli import main

CAPTURE = Path(__file__).parent.parent / "data" / "captures" / "S1" / "dump.jsonl.gz"
TOML = "nightly.toml"

#: By what is wrong the options, and the parts of the first sentence: what, where, what to do.
WRONG: dict[str, tuple[list[str], tuple[str, ...]]] = {
    "no nameserver is named": (
        ["live"],
        ("came neither", "--namesrv HOST:PORT", "give a nameserver of the cluster"),
    ),
    "no nameserver answers": (
        ["live", "--namesrv", "127.0.0.1:1"],
        ("no nameserver answers", "127.0.0.1:1", "check the address"),
    ),
    "there is no such settings file": (
        ["run", "--dumps", "whole.jsonl.gz", "--settings", "nothere.toml"],
        ("No such file", "nothere.toml", "check the path"),
    ),
    "broken TOML": (
        ["run", "--dumps", "whole.jsonl.gz", "--settings", TOML],
        ("expected TOML", f"{TOML}", "(at line 2, column 11)", "mend it there"),
    ),
    "a gzip stream that is cut": (
        ["run", "--dumps", "cut.jsonl.gz"],
        ("ends early", "cut.jsonl.gz", "lines", "copy the file again"),
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_the_first_sentence_says_what_where_and_what_to_do(
    wrong: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    content = CAPTURE.read_bytes()
    Path("whole.jsonl.gz").write_bytes(content)
    Path("cut.jsonl.gz").write_bytes(content[: len(content) // 2])
    Path(TOML).write_text('language = "en"\nretries = = 3\n', encoding="utf-8")
    assert gzip.decompress(content)
    options, parts = WRONG[wrong]
    output = ["--output", "out"] + (["--engine", "local"] if options[0] == "run" else [])
    main([*options, *output, "--quiet"])
    first = capsys.readouterr().err.splitlines()[0]
    assert [each for each in parts if each not in first] == []

"""The changelog stays short: a release has few bullets, a change one line in its own file."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_a_release_is_at_most_thirty_bullets():
    releases = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]
    assert releases
    for release in releases:
        assert len(re.findall(r"^- ", release, re.MULTILINE)) <= 30, release.splitlines()[0]


def test_a_change_is_one_line_in_a_file_of_its_own():
    for change in (ROOT / "docs").glob("changes/*"):
        lines = change.read_text().splitlines()
        assert len(lines) == 1 and len(lines[0]) <= 160, change.name

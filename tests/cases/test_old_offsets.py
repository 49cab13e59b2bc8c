"""Offsets that end before the lists do: what waited in an orphan waits still."""

from __future__ import annotations

import json

import pytest

from jobs.cli import main
from tests.cases.small_dumps import MEMBERS, MINUTES, asked, holds, offsets

#: What the four members hold, by a strategy of their own: broker-a's queue 3 is read twice, and
#: broker-b's queue 2 by nobody.
_HELD = [
    [("broker-a", 0), ("broker-a", 1)],
    [("broker-a", 2), ("broker-a", 3)],
    [("broker-b", 0), ("broker-b", 1)],
    [("broker-a", 3), ("broker-b", 3)],
]


def lines(*, is_orphan_read):
    """Ten messages a minute come to each queue; broker-b gives no offsets after minute 5."""
    for minute in MINUTES:
        yield from asked(minute)
        for number, client_id in enumerate(MEMBERS):
            yield holds(60 * minute + 3 + number, client_id, _HELD[number], "CompanyStrategy")
        read = dict.fromkeys(range(4), (10 * minute, 10 * minute))
        yield offsets(60 * minute + 10, "broker-a", read)
        if minute <= 5:
            orphan = {2: (10 * minute, 10 * minute if is_orphan_read else 1)}
            yield offsets(60 * minute + 11, "broker-b", read | orphan)


@pytest.mark.parametrize(
    ("is_orphan_read", "said"),
    [
        (False, "At least 49 messages wait (no offsets of 4 of 8 queues)."),
        (True, "No message is known to wait (no offsets of 4 of 8 queues)."),
    ],
)
def test_explain_says_what_waits_at_least(tmp_path, capsys, monkeypatch, is_orphan_read, said):
    path = tmp_path / "dump.jsonl"
    found = lines(is_orphan_read=is_orphan_read)
    path.write_text("".join(json.dumps(each) + "\n" for each in found))
    monkeypatch.chdir(tmp_path)

    assert main(["explain", "--dumps", str(path), "--group", "G"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert said in text
    queue = "Not consumed at 2026-11-20T10:14:00.000Z broker-b 2: 49 messages "
    assert (queue in text) is not is_orphan_read

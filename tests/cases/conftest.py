"""The audit of lines that a test makes."""

from __future__ import annotations

import json

import pytest

from tests.support.audited import audit_dumps


@pytest.fixture
def audit(tmp_path):
    """The report tables of these lines."""

    def audited(lines):
        path = tmp_path / "dump.jsonl"
        path.write_text("".join(json.dumps(each) + "\n" for each in lines))
        found = audit_dumps([path])
        assert found["quarantine"] == []
        return found

    return audited

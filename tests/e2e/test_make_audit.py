"""``make audit``: what a user sees first are findings, and pip's words only where it fails."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e

#: A Python that makes an environment of itself, and a pip that has much to say of everything.
PYTHON = """\
#!/bin/sh
if [ "$2" = venv ]; then
    mkdir -p "$3/bin" && cp "$0" "$3/bin/python"
    printf '#!/bin/sh\\necho "the findings"\\n' > "$3/bin/rebalance-audit"
    chmod +x "$3/bin/rebalance-audit"
    exit
fi
for each in 1 2 3 4 5 6 7 8 9; do echo "Collecting package $each"; done
case "$*" in *"$REFUSES"*) echo "ERROR: no matching distribution" >&2; exit 1; esac
"""


@pytest.mark.parametrize(
    ("refuses", "code", "collected"),
    [("nothing", 0, 0), ("build.lock", 2, 9), ("local.lock", 2, 9), ("--editable", 2, 18)],
)
def test_pip_is_heard_where_it_fails(
    tmp_path: Path, repository: Path, refuses: str, code: int, collected: int
) -> None:
    python = tmp_path / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    venv = tmp_path / "venv"
    command = ["make", "-C", str(repository), "audit", "ENGINE=local"]
    done = subprocess.run(
        [*command, f"PYTHON={python}", f"VENV={venv}", f"OUT={tmp_path / 'out'}"],
        env={"PATH": os.environ["PATH"], "REFUSES": refuses},
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    assert (done.returncode, said.count("Collecting")) == (code, collected)
    assert ("the findings" in said) is (code == 0)
    if code:
        log = f"{venv}/{'builds' if refuses == 'build.lock' else 'installed-local'}.log"
        assert "ERROR: no matching distribution" in said
        assert f"the same is in {log}" in said
        assert not Path(log).with_suffix("").exists()  # the next make tries again
    else:
        assert "Installing into" in said
        assert "Collecting package 9" in (venv / "installed-local.log").read_text()

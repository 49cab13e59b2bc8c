"""Which worker of pytest-xdist runs which tests.

Groups by mark (``--dist loadgroup``) do nothing with pytest 9.2 and pytest-xdist 3.8: the plugin
writes them into a field of the item that pytest no longer reads.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

#: Folders whose files share an audit: each worker would make it anew.
AUDITED_ONCE = ("tests/e2e", "tests/languages")


class SparkTogether(LoadScopeScheduling):  # type: ignore[misc]
    """What starts Spark is one unit, and each such folder; of all others every file is one."""

    def schedule(self) -> None:
        """Called when all workers have collected, and said what starts Spark."""
        said = [json.loads(path.read_text()) for path in _folder().iterdir()]
        self.on_spark = {name for names in said for name in names}
        super().schedule()

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        folder = file.rpartition("/")[0]
        return "spark" if nodeid in self.on_spark else folder if folder in AUDITED_ONCE else file


def _folder() -> Path:
    return Path(os.environ["TESTS_ON_SPARK"])

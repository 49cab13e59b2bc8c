"""Storage on any file system, and how what is written there is published.

``Location`` is the one class that touches files other than through Spark. ``Publication`` makes a
run the one that counts, under a lease, by a manifest and a pointer; ``Reports`` and ``Snapshots``
are the two folders that are published so.
"""

from .location import Location
from .manifest import TableFiles
from .publication import PublishedRun
from .reports import ReportHistory, Reports
from .snapshots import Snapshots, SnapshotWriter, new_run_id

__all__ = [
    "Location",
    "PublishedRun",
    "ReportHistory",
    "Reports",
    "SnapshotWriter",
    "Snapshots",
    "TableFiles",
    "new_run_id",
]

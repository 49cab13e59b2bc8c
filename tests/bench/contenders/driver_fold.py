"""The fold alone in this very process: from the snapshot tables to one dossier for each group."""

from __future__ import annotations

from pathlib import Path

from jobs.fold.local import fold
from jobs.pipeline.audit_on_driver import read_sources
from jobs.pipeline.continuing import Inputs
from jobs.storage import Location, Snapshots
from jobs.window import Window
from tests.support.fleet import fleet_settings


def run(_: None, snapshots: Path, output: Path) -> None:
    """Writes nothing: what the rest costs is in ``driver``."""
    sources = read_sources(Inputs(Snapshots.open(Location(snapshots)), fleet_settings()), Window())
    fold(sources.lists, sources.routes, sources.client_states, sources.queue_offsets)

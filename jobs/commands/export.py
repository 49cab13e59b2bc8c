"""``export``: published reports as tables of a lake."""

from rebalance_core.english import count

from ..arguments import Options
from ..errors import AuditError, DamagedError, SettingsError
from ..lakes.delta import DeltaLake
from ..lakes.export import export
from ..lakes.iceberg import IcebergLake
from ..output import say
from ..progress import complain
from ..storage import Location
from .common import folder_of, reports_of, settings_of


def run(args: Options) -> int:
    """Does what the options say; returns the exit code."""
    settings = settings_of(args)
    folder = folder_of("reports", args, settings)
    if args.delta and folder.holds(Location(args.delta)):
        raise SettingsError(
            f"expected --delta to name a folder outside of the reports at {folder}, came "
            f"{Location(args.delta)}: whoever reads the reports would count each row twice"
        )
    reports = reports_of(args, settings)
    every = reports.published() if args.all_dates else [reports.resolve(args.date)]
    lake = DeltaLake(args.delta) if args.delta is not None else IcebergLake(args.iceberg)
    damaged = 0
    for each in [published.date for published in every]:
        try:
            done = export(reports, each, lake)
        except DamagedError as error:
            if not args.all_dates:
                raise
            complain(f"{each} was not exported: {error}")
            damaged += 1
            continue
        say(f"exported {each}, run {done.run_id}: {count(done.rows, 'row')} into {lake}")
    if damaged:
        raise AuditError(
            f"{damaged} of {count(len(every), 'date')} not exported: see the lines before"
        )
    return 0

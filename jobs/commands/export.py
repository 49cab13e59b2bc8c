"""``export``: published reports as tables of a lake."""

from ..arguments import DATE, REPORTS, SETTINGS, Options, Parser, add_options

EXAMPLE = "export --reports out/reports --delta lake/audit"
DETAIL = """
Each report table becomes one table of all dates, with a column date. The rows of a date are
replaced in one commit: a date that is exported again counts once. It needs the extra delta or
iceberg. The address of an Iceberg catalog comes from ~/.pyiceberg.yaml or from the environment
(PYICEBERG_CATALOG__C__URI)."""


def add_arguments(command: Parser) -> None:
    """Adds the options of the command."""
    add_options(command, REPORTS)
    place = command.add_mutually_exclusive_group(required=True)
    add_options(place, "--delta DIR  gets a Delta table for each report table")
    add_options(place, "--iceberg C.N  the catalog, and the namespace in it")
    dates = command.add_mutually_exclusive_group()
    add_options(dates, DATE + "--all-dates  every date that is published")
    add_options(command, SETTINGS)


def run(args: Options) -> int:
    """Does what the options say; returns the exit code."""
    from rebalance_core.english import count

    from ..errors import AuditError, DamagedError, SettingsError
    from ..output import say
    from ..progress import complain
    from ..storage import Location
    from .common import folder_of_reports, reports_of, settings_of

    settings = settings_of(args)
    from ..lakes.delta import DeltaLake
    from ..lakes.export import export
    from ..lakes.iceberg import IcebergLake

    folder = folder_of_reports(args, settings)
    if args.delta and folder.holds(Location(args.delta)):
        raise SettingsError(
            f"expected --delta to name a folder outside of the reports at {folder}, came "
            f"{Location(args.delta)}: whoever reads the reports would count each row twice"
        )
    reports = reports_of(args, settings)
    every = reports.published() if args.all_dates else [reports.resolve(args.date)]
    dates = [each.date for each in every]
    lake = DeltaLake(args.delta) if args.delta is not None else IcebergLake(args.iceberg)
    damaged = 0
    for each in dates:
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
            f"{damaged} of {count(len(dates), 'date')} not exported: see the lines before"
        )
    return 0

"""``prune``: what is too old, or left over, is removed."""

import re

from ..arguments import SETTINGS, Options, Parser, UsageError, add_options

EXAMPLE = "prune --keep 90d --reports out/reports --dry-run"
DETAIL = """
Days are counted back from the last date that is there, which stays. Only files with the names of
the audit's or the collector's files are removed. Without --reports, --snapshots and --dumps the
reports of paths.reports are meant. To keep the three for different times, use three commands."""


def add_arguments(command: Parser) -> None:
    """Adds the options of the command."""
    table = """
    --keep T  how long, as 90d or 12w; default: retention.keep_days
    --reports DIR  published dates, with pages and notes of alerts
    --snapshots DIR  what failed ingests left; the last ingest stays
    --dumps DIR  whole days of the collector's rounds, on this machine
    --dry-run  print what would be removed; remove nothing
    """
    add_options(command, table + SETTINGS, keep=_days)


def _days(text: str) -> int:
    match = re.fullmatch(r"([1-9]\d{0,4})([dw])", text, re.ASCII)
    if match is None:
        raise UsageError(
            f"expected a number of days or weeks from 1 on, such as 90d or 12w, came {text!r}"
        )
    return int(match[1]) * (7 if match[2] == "w" else 1)


def run(args: Options) -> int:
    """Does what the options say; returns the exit code."""
    from pathlib import Path

    from ..collect.retention import prune_dumps
    from ..errors import AuditError, InputError, SettingsError
    from ..output import say
    from ..progress import complain
    from ..storage import Location, Reports, new_run_id
    from ..storage.retention import Pruned, Retention, prune_reports, prune_snapshots
    from .clock import now
    from .common import folder_of_reports, settings_of

    def there(folder: Location) -> Location:
        if not folder.is_folder():
            raise InputError(f"expected a folder, there is none: {folder}")
        return folder

    settings = settings_of(args)
    keep_days = args.keep or settings.retention.keep_days
    if keep_days is None:
        raise SettingsError("expected --keep, or retention.keep_days in the settings, came neither")
    today = now()
    retention = Retention(keep_days, today, new_run_id(today), args.dry_run)
    pruned: dict[str, Pruned] = {}
    if args.reports or not (args.snapshots or args.dumps):
        reports = folder_of_reports(args, settings)
        pruned[str(reports)] = prune_reports(Reports(there(reports)), retention)
    if args.snapshots:
        snapshots = Location(args.snapshots)
        pruned[str(snapshots)] = prune_snapshots(there(snapshots), retention)
    if args.dumps:
        pruned[args.dumps] = prune_dumps(Path(args.dumps), retention)
    for place, of_place in pruned.items():
        say(f"{place}:")
        for line in [*of_place.lines(dry_run=args.dry_run)] or ["nothing to remove"]:
            say(f"  {line}")
        for line in of_place.failed:
            complain(line)
    if args.dry_run:
        say("dry run: nothing was removed")
    if any(each.failed for each in pruned.values()):
        raise AuditError("not all was removed: see the lines before; the next prune goes on")
    return 0

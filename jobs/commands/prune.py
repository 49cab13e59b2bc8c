"""``prune``: what is too old, or left over, is removed."""

from pathlib import Path

from ..collect.dump_folder import prune_dumps
from ..config.window import now
from ..console.arguments import Options
from ..console.output import say
from ..console.progress import complain
from ..errors import AuditError, InputError, SettingsError
from ..storage import Location, Reports
from ..storage.location import check_bucket
from ..storage.retention import PruneResult, Retention, prune_reports, prune_snapshots
from .common import folder_of, settings_of


def run(args: Options) -> int:
    """Does what the options say; returns the exit code."""
    settings = settings_of(args)
    keep_days = args.keep or settings.retention.keep_days
    if keep_days is None:
        raise SettingsError("expected --keep, or retention.keep_days in the settings, came neither")
    retention = Retention(keep_days, now(), args.dry_run)
    pruned: dict[str, PruneResult] = {}
    if args.reports or not (args.snapshots or args.dumps):
        reports = folder_of("reports", args, settings)
        pruned[str(reports)] = prune_reports(Reports(_there(reports)), retention)
    if args.snapshots:
        snapshots = Location(args.snapshots)
        pruned[str(snapshots)] = prune_snapshots(_there(snapshots), retention)
    if args.dumps:
        pruned[args.dumps] = prune_dumps(Path(args.dumps), retention)
    for place, pruned_there in pruned.items():
        say(f"{place}:")
        for line in [*pruned_there.lines(dry_run=args.dry_run)] or ["nothing to remove"]:
            say(f"  {line}")
        for line in pruned_there.failed:
            complain(line)
    if args.dry_run:
        say("dry run: nothing was removed")
    if any(prune_result.failed for prune_result in pruned.values()):
        raise AuditError("not all was removed: see the lines before; the next prune goes on")
    return 0


def _there(folder: Location) -> Location:
    if not folder.is_folder():
        check_bucket(folder)
        raise InputError(f"expected a folder, there is none: {folder}")
    return folder

"""``alert``: a published run for chats, on-call tools and Prometheus."""

import os

from ..alerts.alerting import Sender, Shown, alert
from ..config.window import now
from ..console.arguments import Options
from ..console.output import text_file_at
from ..console.progress import complain
from ..errors import SettingsError
from .common import reports_of, say_beside, settings_of


def run(args: Options) -> int:
    """Does what the options say; returns the exit code."""
    settings = settings_of(args)
    shown = Shown(args.again, args.service)
    if any(shown) and (args.webhook or args.metrics):
        raise SettingsError("expected --again and --service alone: they print, and send nothing")
    reports = reports_of(args, settings)
    metrics = text_file_at(args.metrics) if args.metrics else None
    say_what = say_beside(args, args.metrics)
    sender = Sender(settings.alerts, os.environ, now(), complain, settings.reader)
    for line in alert(reports, args.date, sender, metrics, webhook=args.webhook, shown=shown):
        say_what(line)
    return 0

"""``alert``: a published run for chats, on-call tools and Prometheus."""

import os

from ..alerts.alerting import Sender, alert
from ..console.arguments import Options
from ..console.output import text_file_at
from ..console.progress import complain
from .clock import now
from .common import reports_of, say_beside, settings_of


def run(args: Options) -> int:
    """Does what the options say; returns the exit code."""
    settings = settings_of(args)
    reports = reports_of(args, settings)
    metrics = text_file_at(args.metrics) if args.metrics else None
    say_what = say_beside(args, args.metrics)
    sender = Sender(settings.alerts, os.environ, now(), complain, settings.reader)
    for line in alert(reports, args.date, sender, metrics, webhook=args.webhook):
        say_what(line)
    return 0

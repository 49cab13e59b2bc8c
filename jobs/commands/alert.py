"""``alert``: a published run for chats, on-call tools and Prometheus."""

from ..arguments import DATE, LANGUAGE, REPORTS, SETTINGS, Options, Parser, add_options

EXAMPLE = "alert --reports out/reports --metrics rebalance.prom --webhook"
DETAIL = """
Without --metrics and --webhook the message is printed. [alerts] in the settings says where it goes
and what is sent; docs/alerts.md has an example for each service. The URL comes from the environment
(REBALANCE_AUDIT_WEBHOOK) or from the file that alerts.webhook_file names. The published run stays
as it is. Exit code 2: there is no URL; 4: nobody took the message."""


def add_arguments(command: Parser) -> None:
    """Adds the options of the command."""
    table = """
    --metrics FILE  gets the metrics, *.prom, in one step; -: standard output
    --webhook  send what is new and was not sent yet
    """
    add_options(command, REPORTS + DATE + table + LANGUAGE + SETTINGS)


def run(args: Options) -> int:
    """Does what the options say; returns the exit code."""
    import os

    from ..alerts.alert import Sender, alert
    from ..languages.language import language
    from ..output import text_file_at
    from ..progress import complain
    from .clock import now
    from .common import reports_of, say_beside, settings_of

    settings = settings_of(args)
    reports = reports_of(args, settings)
    metrics = text_file_at(args.metrics) if args.metrics else None
    say_what = say_beside(args, args.metrics)
    in_language = language(settings.language)
    sender = Sender(settings.alerts, os.environ, now(), complain, in_language)
    for line in alert(reports, args.date, sender, metrics, webhook=args.webhook):
        say_what(line)
    return 0

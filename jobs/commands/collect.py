"""``collect``: the answers of nameservers and brokers as dumps."""

from ..arguments import Options, Parser, add_options
from .servers import SERVERS, collect_from, duration

EXAMPLE = "collect --namesrv 10.0.0.1:9876 --namesrv 10.0.0.2:9876 --dumps dumps/ --every 60"
DETAIL = """
It changes nothing in the cluster, and finds the brokers by the nameservers. It needs --namesrv or
--config, and --dumps.
The keys of an account (ACL) come from the environment (REBALANCE_AUDIT_ACCESS_KEY and
REBALANCE_AUDIT_SECRET_KEY) or from --account. P is a regular expression over the whole name."""


def add_arguments(command: Parser) -> None:
    """Adds the options of the command."""
    table = """
    --dumps DIR  gets a file a round, in folders by date
    --every T  a round every 60, 5m, ...; default: one round
    --for T  how long, as 24h; default: until SIGTERM
    --metrics FILE  gets the collector's metrics, *.prom, after a round
    --quiet  only what fails
    """
    add_options(
        command, SERVERS + table, timeout=duration, rate=float, every=duration, **{"for": duration}
    )


def run(args: Options) -> int:
    """Collects as the options say; returns the exit code."""
    given = {
        "dumps": args.dumps,
        "every_seconds": args.every,
        "for_seconds": vars(args)["for"],
        "metrics": args.metrics,
    }
    collect_from(args, {name: value for name, value in given.items() if value is not None})
    return 0

"""``collect``: the answers of nameservers and brokers as dumps."""

import asyncio
import os
from typing import Any

from ..collect.collect_options import CollectOptions, load_options
from ..collect.collector import collect
from ..config.window import now
from ..console.arguments import Options
from ..console.progress import Progress, complain
from ..declared.instants import to_instant


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


def collect_from(
    args: Options, given: dict[str, Any], only: tuple[str, str] | None = None
) -> CollectOptions:
    """Collects from the servers that the arguments name; returns the options of all that.

    ``given`` goes before a file's options; ``only``: a cluster and a group, and no others.
    """
    asked = {"timeout_seconds": args.timeout, "parallel": args.parallel, "rate": args.rate}
    cluster = {
        "namesrv": args.namesrv,
        "name": args.name,
        "clusters": args.cluster,
        "groups": args.group,
        "topics": args.topic,
        "without": args.without,
        "account_file": args.account,
        "tls": {} if args.tls else None,
    }
    options = load_options(
        args.config,
        {**given, **{name: value for name, value in asked.items() if value is not None}},
        {name: value for name, value in cluster.items() if value not in (None, [], ())},
    )
    if only is not None:
        options = options.only(*only)
    say = Progress(quiet=args.quiet).say
    asyncio.run(collect(options, os.environ, lambda: to_instant(now()), say, complain))
    return options

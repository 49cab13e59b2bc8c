"""Which servers ``collect`` and ``live`` ask, how, and of what."""

from typing import Any

from ..arguments import Options, UsageError

#: The servers, how they are asked, and of what.
SERVERS = """
    --namesrv A*  host:port of a nameserver; give the option once for each
    --config FILE  a file with clusters, as docs/collect/collect.toml
    --name C  the cluster's name in the dumps; default: RocketMQ's name
    --cluster P  only these of RocketMQ's clusters
    --group P*  only these consumer groups; repeatable
    --topic P  only the routes of these topics
    --without PART*  do not ask routes, running-infos, offsets or request-modes; repeatable
    --timeout T  how long to wait for an answer; default: 5 s
    --parallel N  requests at a time to an address; default: 4
    --rate N  requests a second to an address; default: no limit
    --account FILE  a file with accessKey: and secretKey:, as conf/tools.yml
    --tls  encrypt; the file of --config has the certificates
"""


def duration(text: str) -> float:
    """Seconds, as 60, 5m or 24h say."""
    from ..collect.options import seconds_of

    try:
        return seconds_of(text)
    except ValueError as error:
        raise UsageError(str(error)) from error


def collect_from(args: Options, given: dict[str, Any]) -> None:
    """Collects from the servers that the arguments name; ``given`` goes before a file's options."""
    import asyncio
    import os

    from ..collect.collector import collect
    from ..collect.options import load_options
    from ..instants import to_instant
    from ..progress import Progress, complain
    from .clock import now

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
        {name: value for name, value in cluster.items() if value not in (None, [])},
    )
    say = Progress(quiet=args.quiet).say
    asyncio.run(collect(options, os.environ, lambda: to_instant(now()), say, complain))

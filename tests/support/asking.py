"""A client as the collector makes it of its options, with those that a test chooses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jobs.collect.client import VERSION, RemotingClient
from jobs.collect.collect_options import Cluster, CollectOptions
from jobs.collect.frames import Account

NAMESRVS = ("ns1:9876", "ns2:9876")


def client_of(
    clock: Callable[[], int], account: Account | None = None, version: int = VERSION, **given: Any
) -> RemotingClient:
    """``given``: options of the whole and of the one cluster, by their names in a file.

    Who was just seen is asked, too, unless they say otherwise.
    """
    given = {"running_infos_after_seconds": 0, **given}
    of_cluster = {name: given.pop(name) for name in [*given] if name in Cluster.model_fields}
    cluster = Cluster.model_validate({"namesrv": NAMESRVS, **of_cluster})
    options = CollectOptions.model_validate({"dumps": "none", "clusters": [cluster], **given})
    return RemotingClient(options, cluster, clock, account, version=version)

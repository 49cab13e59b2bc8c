"""Answers of masters -> whether each has a configuration of a group (a subscription group), as rows
of ``client_states``.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from rebalance_core.grouping import grouped

from ..declared.instants import Instant
from ..dumps.statement import Configured
from ..schemas import CONFIGURED, NOT_CONFIGURED

#: A master that gave none of so many last answers of its cluster's rounds may be gone for good.
_LAST_ROUNDS = 4


class ConfigAnswer(NamedTuple):
    """An answer of a master, with those of its groups that none of the cluster always has."""

    collected_at: Instant
    groups: frozenset[str]


class ClusterConfigs(NamedTuple):
    """The groups that the masters of a cluster have a configuration of.

    ``always``: those that one of them, which answered to the end, has in each of its answers, as
    nearly all are. ``answers``: by master and round.
    """

    always: frozenset[str]
    answers: dict[tuple[str, Instant], ConfigAnswer]

    @classmethod
    def by_cluster(cls, configured: Configured) -> "dict[str, ClusterConfigs]":
        """The configurations of each cluster."""
        every = [(key[0], asked) for key, answers in configured.items() for asked in answers]
        rounds = grouped((cluster, round_) for cluster, (_, round_) in every)
        ends = {cluster: sorted({*each})[-_LAST_ROUNDS:][0] for cluster, each in rounds.items()}
        present = {(cluster, name) for cluster, (name, at) in every if at >= ends[cluster]}
        in_each: dict[tuple[str, str], set[str]] = {}
        for (cluster, groups), answers in configured.items():
            for name in {name for name, _ in answers}:
                in_each.setdefault((cluster, name), {*groups}).intersection_update(groups)
        by_cluster = grouped((key[0], in_each[key]) for key in sorted(present))
        found = {
            cluster: cls(frozenset[str]().union(*of_masters), {})
            for cluster, of_masters in by_cluster.items()
        }
        for (cluster, groups), answers in configured.items():
            always, of_cluster = found[cluster]
            others = frozenset(groups) - always
            for of_round, collected_at in answers.items():
                answer = ConfigAnswer(collected_at, others)
                # Of two answers in one round the later one counts.
                of_cluster[of_round] = max(answer, of_cluster.get(of_round, answer))
        return found

    def rows(self, cluster: str, group: str) -> Iterator[dict[str, Any]]:
        """The rows of a group; none of one that some master always has."""
        if group in self.always:
            return
        for (broker_name, round_), (collected_at, groups) in sorted(self.answers.items()):
            yield {
                "cluster": cluster,
                "snapshot_time": round_,
                "observed_at": collected_at,
                "source": CONFIGURED if group in groups else NOT_CONFIGURED,
                "consumer_group": group,
                "client_id": "",
                "broker_name": broker_name,
                "broker_id": 0,
            }

"""The intervals at which a Java client acts, as it has them by default.

They bound what a poll can show: a client that is asked sooner has not acted yet.
"""

from .instants import SECOND, Instant

#: Heartbeats to each broker (``ClientConfig.heartbeatBrokerInterval``).
HEARTBEAT_INTERVAL: Instant = 30 * SECOND
#: Questions to a nameserver for the route (``ClientConfig.pollNameServerInterval``).
ROUTE_INTERVAL: Instant = 30 * SECOND
#: Divisions of the queues (``RebalanceService.waitInterval``); they are divided anew also when a
#: broker notifies the client that the members changed.
REBALANCE_INTERVAL: Instant = 20 * SECOND
#: Commits of the offsets (``ClientConfig.persistConsumerOffsetInterval``).
COMMIT_INTERVAL: Instant = 5 * SECOND
#: The time within which all clients follow a change of the route or of the members: they hear of
#: it, and divide anew. What is found so soon after a change is explained by it.
FOLLOW_TIME: Instant = 60 * SECOND

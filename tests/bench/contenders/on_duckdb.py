"""DuckDB on one node: lists, slots, claims and episodes as one SQL query."""

from __future__ import annotations

from pathlib import Path

import duckdb

_QUERY = """
WITH known AS (
    SELECT snapshot_time, consumer_group, count(*) AS views,
        row_number() OVER (PARTITION BY consumer_group ORDER BY snapshot_time) AS place
    FROM broker_polls WHERE outcome <> 'NO_ANSWER' GROUP BY snapshot_time, consumer_group
),
topics AS (
    SELECT DISTINCT consumer_group, unnest(subscriptions).topic AS topic FROM heartbeats
),
-- Materialised: else the optimiser joins all groups with all queues of a snapshot first.
of_topics AS MATERIALIZED (
    SELECT snapshot_time, consumer_group, topic, views, place
    FROM known JOIN topics USING (consumer_group)
),
queues AS (
    SELECT snapshot_time, topic, broker_name, queue_id,
        row_number() OVER (route ORDER BY broker_name, queue_id) - 1 AS position
    FROM (
        SELECT snapshot_time, topic, broker_name, unnest(range(read_queue_nums)) AS queue_id
        FROM topic_routes WHERE perm & 4 <> 0
    )
    WINDOW route AS (PARTITION BY snapshot_time, topic)
),
lengths AS (
    SELECT snapshot_time, topic, sum(read_queue_nums)::BIGINT AS q
    FROM topic_routes WHERE perm & 4 <> 0 GROUP BY ALL
),
listed AS (
    SELECT snapshot_time, consumer_group, broker_name, strategy, subscriptions,
        snapshot_time - last_heartbeat_at <= INTERVAL 130 SECONDS AS heard,
        rank() OVER (list ORDER BY client_id) - 1 AS slot,
        count(*) OVER list AS n
    FROM heartbeats
    WINDOW list AS (PARTITION BY snapshot_time, consumer_group, broker_name)
),
takers AS (
    SELECT * EXCLUDE (subscriptions, heard), unnest(subscriptions).topic AS topic
    FROM listed WHERE heard
),
claims AS (
    SELECT snapshot_time, consumer_group, broker_name, topic, unnest(
        CASE WHEN strategy = 'AVG_BY_CIRCLE' THEN range(slot, q, n)
        ELSE range(
            slot * (q // n) + least(slot, q % n),
            (slot + 1) * (q // n) + least(slot + 1, q % n))
        END) AS position
    FROM takers JOIN lengths USING (snapshot_time, topic)
),
owners AS (
    SELECT snapshot_time, consumer_group, topic, position, count(*) AS owners
    FROM claims GROUP BY snapshot_time, consumer_group, topic, position, broker_name
),
owned AS (
    SELECT snapshot_time, consumer_group, topic, position,
        count(*) FILTER (owners > 1) AS doubled
    FROM owners GROUP BY ALL
),
found AS (
    SELECT snapshot_time, consumer_group, topic, queues.broker_name, queue_id, place,
        IF(doubled IS NULL, 'ORPHANED', 'DUPLICATE') AS kind
    FROM of_topics JOIN queues USING (snapshot_time, topic)
    LEFT JOIN owned USING (snapshot_time, consumer_group, topic, position)
    WHERE doubled IS NULL OR doubled = views
),
islands AS (
    SELECT *, place - row_number() OVER (
        PARTITION BY consumer_group, topic, broker_name, queue_id, kind ORDER BY place) AS island
    FROM found
)
SELECT consumer_group, topic, broker_name, queue_id::INT AS queue_id, kind,
    min(snapshot_time) AS first_seen, max(snapshot_time) AS last_seen
FROM islands GROUP BY consumer_group, topic, broker_name, queue_id, kind, island
"""


def run(_: None, snapshots: Path, output: Path) -> None:
    """As many threads as there are cores; with more memory it would leave none to others."""
    (output / "findings").mkdir(parents=True, exist_ok=True)
    target = output / "findings" / "findings.parquet"
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET memory_limit = '8GB'")
        connection.execute(f"SET temp_directory = '{output / 'spilled'}'")
        for table in ("heartbeats", "broker_polls", "topic_routes"):
            connection.read_parquet(f"{snapshots / table}/*.parquet").create_view(table)
        connection.execute(f"COPY ({_QUERY}) TO '{target}' (FORMAT parquet)")

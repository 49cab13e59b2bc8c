"""A DAG for Airflow that audits a cluster each night; another cluster is another call.

Airflow's environment has the wheel: see docs/nightly.md. Spark has to reach the folders.
"""

from rebalance_audit.airflow import rebalance_audit_dag

DUMPS = "hdfs:///rebalance-audit/dumps"
OUTPUT = "hdfs:///rebalance-audit"
SETTINGS = "/etc/rebalance-audit/audit.toml"
ALERT = "print"

rebalance_audit_dag(
    "rebalance_audit",
    dumps=DUMPS,
    snapshots=f"{OUTPUT}/snapshots",
    reports=f"{OUTPUT}/reports",
    settings=SETTINGS,
    alert=ALERT,
)

"""The nightly audit as a DAG of Airflow's, for a file in the folder of the DAGs."""

from .dag import rebalance_audit_dag

__all__ = ["rebalance_audit_dag"]

"""spark-submit entry: ``spark-submit --py-files rebalance-audit.zip jobs/audit.py --help``."""

from rebalance_audit.cli import entry

if __name__ == "__main__":
    entry("audit")

"""Entry: ``spark-submit --py-files rebalance-audit.zip jobs/report.py --help``; needs no Spark."""

from rebalance_audit.cli import entry

if __name__ == "__main__":
    entry("report")

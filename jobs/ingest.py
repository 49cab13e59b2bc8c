"""spark-submit entry: ``spark-submit --py-files rebalance-audit.zip jobs/ingest.py --help``."""

from jobs.cli import entry

if __name__ == "__main__":
    entry("ingest")

"""Who does the work: this process, or several of them. Spark does it in ``spark/``."""

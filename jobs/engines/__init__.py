"""Engines that do the work: this process, or several of them. Spark's is in ``spark/``."""

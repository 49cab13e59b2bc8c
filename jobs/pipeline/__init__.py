"""Pipelines: the two jobs over storage, and the answers about one moment. Here the steps meet."""

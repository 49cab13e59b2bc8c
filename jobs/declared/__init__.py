"""Declarations that all follow: kinds, facts of a content, ids, the unit of time."""

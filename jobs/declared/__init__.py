"""Declarations that all follow: kinds, coverages, contents, dossiers, ids, the unit of time."""

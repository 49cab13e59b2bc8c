"""Statements of dumps -> snapshot tables."""

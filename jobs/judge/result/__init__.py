"""Findings and faults -> how bad each is, whether it is new, and the rows of every report table."""

"""Observations -> findings and faults: a module a rule, with its numbers and its exceptions.

``case`` is what a rule reads, ``found`` what it finds.
"""

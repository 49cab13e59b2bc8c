"""Observations -> findings and faults: each rule with its numbers and its exceptions.

``case`` is what a rule reads, ``found`` what it finds.

What showed an exception is named behind it: a class of RocketMQ with its versions; an issue, or a
story, of ``docs/field_book.md``; a capture (``S15``), a cluster (``reconnecting``) or a simulated
fleet (``unreachable_broker``) of ``tests/data``; or a test (``cases/test_deploys``).
"""

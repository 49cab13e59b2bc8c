"""dossiers -> histories: all that the audit publishes of a group, from all runs about it.

Plain Python: no Spark, no pandas, no clock, no files. Times are whole microseconds since 1970 UTC.

    dossier -> situations -> evaluated situations (the core) -> Case (timelines, holdings, ..)
    runs that show something -> Episode (key, Extent) -> QueueFinding, Stall or Fault
    rule: (Case, Found) -> Found with more, or with what is known better; severities come last
    Found -> rows (ids, statuses, known issues)

Four floors, each of which imports those before it: ``times``, ``observe``, ``rules``, ``result``.
``history`` has the rules in their order. Each is in a module with its numbers, its reasons and an
example. All that is found is frozen; ``result.rows`` makes rows of it once, after all rules.
"""

"""Worth of a run, decided once: what is wrong, what was not read, what was not audited.

Page, ticket, nights, console, exit code, alerts, metrics, the gate of the DAG and the report of
``audit()`` take it from here and decide nothing.
"""

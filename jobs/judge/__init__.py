"""dossiers -> histories: all that the audit publishes of a group, from all runs about it.

Plain Python: no Spark, no pandas, no clock, no files. Times are whole microseconds since 1970 UTC.
"""

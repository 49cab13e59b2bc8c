"""dossiers -> histories: all that the audit says of a group, from all that it knows of it.

Plain Python: no Spark, no pandas, no clock, no files. Times are whole microseconds since 1970 UTC.
"""

"""The room of Spark: nothing of it is imported anywhere else.

engine.py      the engine: shards, and the UDF that each question goes through
session.py     the session of a command, and what the jobs need of one
frames.py      DataFrames as snapshot tables, published reports as DataFrames
"""

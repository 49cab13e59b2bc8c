"""Published reports as tables of Delta Lake or Iceberg, each by the library of that format.

``export.py`` decides what is written, ``delta.py`` and ``iceberg.py`` write it, ``lake.py`` has
what they share.
"""

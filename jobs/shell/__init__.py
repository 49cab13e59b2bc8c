"""The room that the audits from Python share: the request, tables that are given, the answer.

``closing`` has the last lines of a run, of a command too.
"""

"""The room that the audits from Python share: the request, tables that are given, the answer."""

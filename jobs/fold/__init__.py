"""snapshot tables -> dossiers: what every witness reported and when; what is repeated, once.

The only step that sees every row. It compares no times, but within ``contents.is_expired``.
"""

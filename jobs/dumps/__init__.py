"""dumps -> records: every line of the operator's dumps, read or with a reason."""

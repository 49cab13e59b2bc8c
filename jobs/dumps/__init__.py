"""dumps -> statements: every line of the operator's dumps, read once, or with a reason."""

"""snapshots -> states, each distinct one evaluated once by the core."""

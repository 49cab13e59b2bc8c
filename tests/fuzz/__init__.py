"""Properties of every parser over changed and invented input; ``make fuzz`` runs them for long."""

"""What a run is given: settings, bounds, window, known issues, and what counts as a secret."""

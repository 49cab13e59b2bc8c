"""Configuration of a run: settings, bounds, window, known issues, and what counts as a secret."""

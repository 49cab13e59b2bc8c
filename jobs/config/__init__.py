"""Configuration of a run: settings, bounds, window, known issues, and how secrets are masked."""

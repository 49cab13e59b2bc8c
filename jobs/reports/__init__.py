"""episodes and states -> the published tables."""

"""records -> snapshot tables."""

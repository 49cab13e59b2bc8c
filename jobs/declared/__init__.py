"""What is declared once, and followed by all: kinds, facts of a content, ids, the unit of time."""

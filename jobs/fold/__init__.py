"""snapshot tables -> dossiers: what every witness said, and when, once however often it said it."""

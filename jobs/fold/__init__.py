"""snapshot tables -> dossiers: what every witness reported and when; what is repeated, once."""

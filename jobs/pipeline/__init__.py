"""Where the steps meet: the two jobs over storage, and what is asked of a moment."""

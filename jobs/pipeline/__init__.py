"""Where the steps meet: the audit over DataFrames, and the two jobs over storage."""

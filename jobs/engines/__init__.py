"""Who does the work: this process, several of them, or Spark. See ``engine``."""

"""states -> episodes: since when, until when, how lasting."""

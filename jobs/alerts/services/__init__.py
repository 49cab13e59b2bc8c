"""The services that take a message, a module each: its form, its limits, what it answers."""

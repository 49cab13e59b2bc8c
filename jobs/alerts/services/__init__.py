"""The services that take a message, the form, the limits and the answers of each."""

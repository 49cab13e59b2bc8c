"""a published run -> metrics for Prometheus, a message for a chat."""

"""rows of the report tables -> a published run: written, summed up, pointed to."""

"""The DAG that ships: a file for the scheduler's own folder, apart from the project."""

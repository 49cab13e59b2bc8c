"""The DAG that ships: a file for the scheduler's folder, apart from the project."""

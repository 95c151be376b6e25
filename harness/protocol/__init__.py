"""Messages between scheduler, workers and backends. Standard library only: workers run in the environment under test."""

"""Messages between the scheduler, workers and backends. The standard library only: workers run in the environment under test."""

"""What the scheduler, workers and backends say to each other. The standard library only: workers run in the environment under test."""

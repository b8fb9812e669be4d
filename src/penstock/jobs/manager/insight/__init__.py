"""What the console shows of a job beside its figures: advice, rules and queries, checkpoints, traces, profiles, Kafka."""

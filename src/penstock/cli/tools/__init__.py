"""Commands around flows: demo, doctor, benchmarks, verify, a Kafka broker."""

"""Writing to topics: producers, their buffers, sequence numbers and partitions."""

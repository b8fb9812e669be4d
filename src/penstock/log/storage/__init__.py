"""Files of a partition: segments, indexes, recovery, retention and compaction."""

"""A live run on Spark: one streaming query, its time and its ticks."""

"""The runtime on Spark: plan to DataFrames to a running query."""

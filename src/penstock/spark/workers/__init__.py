"""The Python workers and executors of Spark: found, asked, and given their Python."""

"""What runs inside a Spark task, in the Python worker."""

"""The hashes that Spark computes natively, for Python values and for whole Arrow columns; equal for every type of key."""

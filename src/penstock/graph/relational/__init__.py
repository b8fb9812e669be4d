"""Relational steps that are made of several: each function adds them to a builder and returns the port of the result."""

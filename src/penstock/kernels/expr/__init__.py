"""Expressions compiled to Python functions, with Spark's ANSI meaning."""

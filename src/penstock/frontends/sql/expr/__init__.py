"""Expressions: from the syntax tree to expressions of the graph."""

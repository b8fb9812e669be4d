"""Streaming SQL as a way to write a flow: statements become steps of the graph. Nothing here is imported before a statement is read."""

"""Connectors: what reads and writes the outside."""

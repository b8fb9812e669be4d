"""Descriptions of what a flow reads and writes."""

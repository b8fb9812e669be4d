"""Bolts, spouts and groupings."""

"""Spouts and bolts: named components, and groupings that say which task gets a tuple."""

"""Functions that are called from outside, as a chain of bolts."""

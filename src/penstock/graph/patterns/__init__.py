"""Patterns: one tree of stages that every front end writes, and the conditions in it, which may look at events taken before."""

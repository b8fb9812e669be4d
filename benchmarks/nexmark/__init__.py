"""Nexmark: the events of an auction house, and the queries over them."""

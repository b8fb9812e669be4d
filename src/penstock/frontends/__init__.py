"""Ways to write a graph."""

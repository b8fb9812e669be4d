"""A graph as JSON, text and SVG."""

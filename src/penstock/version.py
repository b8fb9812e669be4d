"""The one place that says which Penstock this is."""

__version__ = "0.1.0"

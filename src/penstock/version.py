"""Says, for all other modules, which Penstock this is."""

__version__ = "0.1.0"

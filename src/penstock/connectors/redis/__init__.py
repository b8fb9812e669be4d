"""Redis as source and sink."""

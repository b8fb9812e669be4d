"""Files as source and sink."""

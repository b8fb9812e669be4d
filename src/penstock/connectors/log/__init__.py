"""The embedded log as source and sink."""

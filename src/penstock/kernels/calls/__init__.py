"""Calls to services: many at a time, each with a timeout and retries, on an event loop beside the pass."""

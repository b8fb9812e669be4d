"""Streaming SQL."""

"""Patterns over a stream: how they are written, and the streams of their matches."""

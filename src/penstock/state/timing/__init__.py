"""Timers in files, by time."""

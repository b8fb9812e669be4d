"""Patterns and rules as text."""

"""The classes and functions a user writes for a step."""

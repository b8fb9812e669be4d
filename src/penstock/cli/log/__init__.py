"""Commands of the embedded log and its bridge."""

"""Rules as files: YAML, and rule text."""

"""Windows over time and by count."""

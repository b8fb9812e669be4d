"""Steps that look for patterns and apply rules."""

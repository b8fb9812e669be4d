"""Steps that several others make up, by subject."""

"""Steps that order, rank and deduplicate, and tables that change."""

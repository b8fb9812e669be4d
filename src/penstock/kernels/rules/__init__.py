"""What a rule set does: an index that finds the rules of a record, and the engine that lets them act."""

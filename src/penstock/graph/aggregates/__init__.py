"""What a step keeps of many records: aggregates, how they are written, and expressions over them."""

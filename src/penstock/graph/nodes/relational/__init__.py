"""Steps of relational queries: windows as fields of a row, rows seen over their neighbours, set operations, look-ups in a changing table."""

"""Standing queries: many queries of one shape as one plan, whose constants are rows."""

"""Row patterns: the preferred match of each row, as SQL's MATCH_RECOGNIZE defines it."""

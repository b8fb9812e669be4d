"""Records that are put aside: found, stored, replayed."""

"""Steps over tables that change: multisets of rows with signed counts, a batch at a time."""

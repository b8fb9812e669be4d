"""From plan to DataFrames: one function per kind of step, files named as in `graph/nodes`."""

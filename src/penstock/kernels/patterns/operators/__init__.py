"""The evaluator of event patterns: a running form of each operator of `graph/patterns/operators.py`, and a machine for each key."""

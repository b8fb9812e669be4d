"""Queries: SELECT and its clauses, set operations, subqueries."""

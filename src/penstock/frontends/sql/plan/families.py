"""All families of queries: each says, when it is imported, how its part of a query is planned. One more is a name here."""

from penstock.frontends.sql.plan import cql, match_recognize, over, select, set_operations, temporal

__all__ = ["cql", "match_recognize", "over", "select", "set_operations", "temporal"]

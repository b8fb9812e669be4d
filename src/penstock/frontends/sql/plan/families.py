"""All families of queries: each says, when it is imported, how its part of a query is planned. One more is a name here."""

from penstock.frontends.sql.plan.joins import temporal
from penstock.frontends.sql.plan.queries import select, set_operations
from penstock.frontends.sql.plan.relations import match_recognize
from penstock.frontends.sql.plan.windows import cql, over

__all__ = ["cql", "match_recognize", "over", "select", "set_operations", "temporal"]

"""All families of statements: each says, when it is imported, how its statements are read and what they do. One more is a name here."""

from penstock.frontends.sql.plan.statements import alters, functions
from penstock.frontends.sql.standing import groups

__all__ = ["alters", "functions", "groups"]

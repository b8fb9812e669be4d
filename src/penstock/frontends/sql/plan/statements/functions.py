"""CREATE FUNCTION ... LANGUAGE PYTHON."""

from __future__ import annotations

import importlib
from dataclasses import replace

from penstock.errors import PenstockError, SqlError
from penstock.frontends.sql.catalog.catalog import OwnFunction
from penstock.frontends.sql.plan.joins.table_functions import TableFunction
from penstock.frontends.sql.plan.statements.statements import ACTIONS, Script
from penstock.frontends.sql.text import statements as s
from penstock.graph.expr import AggregateFunction, ScalarFunction, aggregate_function, function
from penstock.graph.schema import returned_schema


def create_function(script: Script, statement: s.CreateFunction) -> None:
    """CREATE FUNCTION: the Python function of a module under a name."""
    known = script.session.catalog.functions
    if statement.name.lower() in known:
        if statement.if_not_exists:
            return
        raise script.text.error(statement.at, f"function {statement.name!r} is defined already")
    known[statement.name.lower()] = own_function(script, statement)


def own_function(script: Script, statement: s.CreateFunction) -> ScalarFunction | AggregateFunction | OwnFunction:
    """The function that a path such as `module.name` stands for."""
    found = _imported(script, statement)
    if isinstance(found, ScalarFunction | AggregateFunction):
        return replace(found, name=statement.name.lower())
    if not callable(found):
        raise script.text.error(statement.at, f"expected a function under {statement.target!r}, got {found!r}")
    try:
        if isinstance(found, type):
            return aggregate_function(name=statement.name)(found)
        rows = returned_schema(found, many=True)
        if rows is not None:
            return TableFunction(statement.name, found, rows)
        return function(name=statement.name)(found)
    except SqlError:
        raise
    except PenstockError as error:
        raise script.text.error(statement.at, str(error)) from None


def _imported(script: Script, statement: s.CreateFunction) -> object:
    module, _, name = statement.target.replace(":", ".").rpartition(".")
    if not module or not name:
        raise script.text.error(statement.at, f"expected a function as 'module.name', got {statement.target!r}")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise script.text.error(statement.at, f"cannot import {statement.target!r}: {error}") from None


ACTIONS[s.CreateFunction] = create_function

"""Expressions over the fields of a stream: read from text or built with operators, typed without Spark.

>>> from penstock.graph.schema import schema_of
>>> total = (col("price") * col("n")).alias("total")
>>> to_text(total), str(type_of_expr(total, schema_of("price double, n int")))
('price * n AS total', 'double')
"""

from penstock.graph.expr.build import Functions, When, as_expr, col, expr, fn, sql, when
from penstock.graph.expr.functions import AGGREGATES, FUNCTIONS
from penstock.graph.expr.infer import columns_of, resolve, type_of_expr
from penstock.graph.expr.model import Alias, Call, Case, Cast, Column, Expr, GetField, GetItem, Literal, Raw, lit
from penstock.graph.expr.parse import parse
from penstock.graph.expr.python import PythonCall, ScalarFunction, function
from penstock.graph.expr.python_aggregates import AggregateFunction, AggregateFunctionCall, aggregate_function
from penstock.graph.expr.text import Printer, name_of, to_text

__all__ = [
    "AGGREGATES",
    "FUNCTIONS",
    "AggregateFunction",
    "AggregateFunctionCall",
    "Alias",
    "Call",
    "Case",
    "Cast",
    "Column",
    "Expr",
    "Functions",
    "GetField",
    "GetItem",
    "Literal",
    "Printer",
    "PythonCall",
    "Raw",
    "ScalarFunction",
    "When",
    "aggregate_function",
    "as_expr",
    "col",
    "columns_of",
    "expr",
    "fn",
    "function",
    "lit",
    "name_of",
    "parse",
    "resolve",
    "sql",
    "to_text",
    "type_of_expr",
    "when",
]

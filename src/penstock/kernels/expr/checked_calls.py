"""Calls of Python functions for one record, whose results are checked."""

from __future__ import annotations

from penstock.graph.expr import ScalarFunction
from penstock.kernels.expr.python import One, call_of, misfit, skipping_nulls
from penstock.kernels.records.values import BadValue, checker_of


def checked_call(function: ScalarFunction) -> One:
    """A call for one record, checked; of a function of arrays with arrays of one value each."""
    if function.vectorized:
        from penstock.kernels.expr.python_arrays import with_arrays  # it loads pyarrow

        one = with_arrays(function)
        return skipping_nulls(one) if function.null_on_null else one
    call, check = call_of(function), checker_of(function.returns)

    def checked(*values: object) -> object:
        made = call(*values)
        try:
            return check([made])[0]
        except BadValue:
            raise misfit(function, made) from None

    return checked

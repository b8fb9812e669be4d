"""Every function that runs without Spark, gathered from the families.

`PLAIN` functions take values and are never called with None. `TYPED` makers choose such a function by the types.
`LAZY` makers get the compiled arguments themselves, because null means something to them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.graph.expr.coerce import TypedExpr
from penstock.kernels.expr import functions_json as json
from penstock.kernels.expr import functions_logic as logic
from penstock.kernels.expr import functions_math as math
from penstock.kernels.expr import functions_nested as nested
from penstock.kernels.expr import functions_text as text
from penstock.kernels.expr import functions_time as time

Run = Callable[[Any], Any]

PLAIN: dict[str, Callable[..., Any]] = {**math.PLAIN, **text.PLAIN, **time.PLAIN, **nested.PLAIN, **json.PLAIN}

TYPED: dict[str, Callable[[TypedExpr], Callable[..., Any]]] = {
    **logic.TYPED,
    **math.TYPED,
    **text.TYPED,
    **time.TYPED,
    **nested.TYPED,
}

LAZY: dict[str, Callable[[TypedExpr, list[Run]], Run]] = {**logic.LAZY, **text.LAZY, **nested.LAZY}

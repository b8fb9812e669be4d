"""The key hash of Python equals that of Spark, for every type of key."""

from __future__ import annotations

import datetime
import decimal
import random
from typing import Any

import pyarrow as pa
import pytest

from penstock.graph import types as t
from penstock.kernels.hashing.columns import MURMUR3, XXHASH64, hash_columns
from penstock.kernels.hashing.key_hash import key_hashes
from penstock.kernels.hashing.murmur import spark_hash
from penstock.kernels.records.arrow import arrow_type
from penstock.spark.lower.ownership import key_hash_sql

_ROLL = random.Random(7)
_UTC = datetime.UTC
TEXTS = ["", "a", "ab", "abc", "abcd", "ä€😀", *("x" * n for n in (7, 8, 9, 31, 32, 33, 63, 64, 100))]
DIGITS = ["0", "-1.25", "1.5", "0.0127", "0.0128", "-0.0129", "1234567890123456789012345678901234.1234"]
KEYS: dict[str, list[Any]] = {
    "string": [*TEXTS, *("".join(_ROLL.choice("abé€") for _ in range(_ROLL.randint(0, 80))) for _ in range(100))],
    "binary": [*(s.encode() for s in TEXTS), *(_ROLL.randbytes(n) for n in range(80))],
    "boolean": [True, False],
    "tinyint": [-128, -1, 0, 127],
    "smallint": [-32768, -1, 0, 32767],
    "int": [-(2**31), -1, 0, 1, 2**31 - 1],
    "bigint": [-(2**63), -1, 0, 1, 2**63 - 1],
    "float": [0.0, -0.0, 1.5, float("nan"), float("inf")],
    "double": [0.0, -0.0, 1.5, float("nan"), float("-inf")],
    "date": [datetime.date(1, 1, 1), datetime.date(1969, 12, 31), datetime.date(2030, 5, 5)],
    "timestamp": [datetime.datetime(1950, 1, 1, 1, 1, 1, 5, tzinfo=_UTC), datetime.datetime(2030, 1, 1, tzinfo=_UTC)],
    "timestamp_ntz": [datetime.datetime(1950, 1, 1, 1, 1, 1, 5), datetime.datetime(2030, 1, 1)],
    "decimal(5,2)": [decimal.Decimal("-1.25"), decimal.Decimal("999.99")],
    "decimal(18,4)": [decimal.Decimal("-1.25"), decimal.Decimal("99999999999999.9999")],
    "decimal(19,0)": [decimal.Decimal(-1), decimal.Decimal(9999999999999999999)],
    "decimal(38,4)": [*map(decimal.Decimal, DIGITS)],
}


def columns() -> dict[str, pa.Array]:
    """Every value of every type, with nulls between; all of one length."""
    rows = max(map(len, KEYS.values())) * 2 + 1
    made = {}
    for number, (kind, values) in enumerate(KEYS.items()):
        padded = [None if n % 3 == 2 else values[n % len(values)] for n in range(rows)]
        made[f"c{number}"] = pa.array(padded, arrow_type(t.parse_type(kind)))
    return made


def test_scalar_and_columnar_hashes_agree() -> None:
    for kind, values in KEYS.items():
        made = t.parse_type(kind)
        finite = [v for v in values if v == v]
        array = pa.array([None, *finite], arrow_type(made))
        expected = [spark_hash([v], [made]) for v in (None, *finite)]
        assert hash_columns([array], MURMUR3).tolist() == expected, kind
        assert hash_columns([array.slice(1)], MURMUR3).tolist() == expected[1:], f"a slice of {kind}"


@pytest.mark.spark
def test_python_and_spark_hash_every_type_of_key_alike(compiled_spark: Any) -> None:
    made = columns()
    frame = compiled_spark.createDataFrame(pa.table(made))
    each = [f"{how}({name}) as {how}_{name}" for name in made for how in ("hash", "xxhash64")]
    keys = [k for k, kind in zip(made, KEYS, strict=True) if kind not in ("float", "double")]
    found = frame.selectExpr(*each, key_hash_sql(tuple(keys))).toPandas()
    for (name, column), kind in zip(made.items(), KEYS, strict=True):
        assert hash_columns([column], MURMUR3).tolist() == found[f"hash_{name}"].tolist(), kind
        assert hash_columns([column], XXHASH64).tolist() == found[f"xxhash64_{name}"].tolist(), kind
    assert key_hashes([made[k] for k in keys], len(found)).tolist() == found["__key_hash"].tolist()

"""Texts as the values they stand for: what is none is an error, never something else."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.connectors.texts import from_text, shaped


def test_booleans_are_written_in_few_ways() -> None:
    given = pa.array(["t", "true", "1", "f", "false", "0", None])
    assert from_text(given, pa.bool_()).to_pylist() == [True, True, True, False, False, False, None]
    for odd in ("yes", "TRUE", ""):
        with pytest.raises(ValueError, match="is no boolean"):
            from_text(pa.array(["t", odd]), pa.bool_())


def test_values_inside_json_are_not_bent() -> None:
    assert shaped([True, "f", 1], pa.list_(pa.bool_())) == [True, False, True]
    assert shaped([1, 2.0, "3"], pa.list_(pa.int32())) == [1, 2, 3]
    with pytest.raises(ValueError, match=r"1\.9 is no whole number"):
        shaped([1.9], pa.list_(pa.int32()))
    with pytest.raises(ValueError, match="is no boolean"):
        shaped(["maybe"], pa.list_(pa.bool_()))

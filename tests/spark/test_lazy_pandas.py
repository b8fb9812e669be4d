"""Workers without pandas until a step wants it. Each case has a process of its own. No JVM."""

from __future__ import annotations

import subprocess
import sys

import pytest

PUT_OFF = "import sys\nimport pyarrow as pa\nfrom penstock.spark.tasks.lazy_pandas import put_off_pandas\n"


def run(program: str) -> str:
    """What a program prints."""
    return subprocess.run([sys.executable, "-c", PUT_OFF + program], capture_output=True, text=True, check=True).stdout


def test_arrays_are_made_without_pandas() -> None:
    out = run("put_off_pandas()\nprint(pa.array([1, None], pa.int8()).to_pylist(), 'pandas' in sys.modules)")
    assert out.split() == ["[1,", "None]", "False"]


def test_without_it_pyarrow_imports_pandas() -> None:
    """What this is for; should pyarrow stop doing so, it can go."""
    assert run("pa.array([1])\nprint('pandas' in sys.modules)").strip() == "True"


@pytest.mark.parametrize("imports", ["import pandas as pd", "import pandas.testing; pd = sys.modules['pandas']"])
def test_a_series_is_a_series_as_soon_as_pandas_is_imported(imports: str) -> None:
    series = "print(pa.array(pd.Series([1.0, float('nan')])).null_count, pd.__spec__.loader is not None)"
    assert run(f"put_off_pandas()\n{imports}\n{series}").split() == ["1", "True"]


def test_a_table_becomes_a_data_frame() -> None:
    frame = "print(pa.table({'a': [1]}).to_pandas()['a'].tolist(), pa.array(sys.modules['pandas'].Series([float('nan')])).null_count)"
    assert run(f"put_off_pandas()\n{frame}").split() == ["[1]", "1"]


def test_a_process_that_has_pandas_keeps_it() -> None:
    series = "print(pa.array(pd.Series([float('nan')])).null_count, len(sys.meta_path))"
    before = run(f"import pandas as pd\n{series}")
    assert run(f"import pandas as pd\nput_off_pandas()\nput_off_pandas()\n{series}") == before


def test_a_second_call_changes_nothing() -> None:
    assert (
        run("put_off_pandas()\nmany = len(sys.meta_path)\nput_off_pandas()\nprint(len(sys.meta_path) - many)").strip()
        == "0"
    )

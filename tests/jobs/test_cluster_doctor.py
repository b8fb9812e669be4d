"""The doctor for clusters: each check turns when, and only when, what it looks at turns."""

from __future__ import annotations

import pickle
import platform
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from penstock.cli.tools.doctor import doctor
from penstock.jobs.cluster import CHECKS, Cluster, StoreAnswer, _Trial
from penstock.spark.workers.cluster import WorkerAnswer
from penstock.spark.workers.probe import about
from penstock.storage import LocalStorage

WORKER = WorkerAnswer(
    address="10.0.0.7:1234",
    cores=4,
    host="w1",
    python=platform.python_version(),
    executable="/usr/bin/python3",
    java="17.0.9",
    imports={"pyspark": ("4.3.0", ""), "pyarrow": ("21.0.0", ""), "pandas": ("2.2", "")},
    store_error="",
    store_seconds=0.02,
    store_name="doctor/x",
)
CLUSTER = Cluster("spark://h:7077", "4.3.0", "17.0.9", (WORKER,), StoreAnswer("s3://b/flow", skew=0.0))


def status(cluster: Cluster) -> dict[str, str]:
    """The checks that are not fine, by their first word."""
    found = [check for make in CHECKS for check in make(cluster)]
    assert all(check.fix for check in found if not check.ok)
    return {check.name.split()[0]: check.status for check in found if not check.ok}


def changed(**fields: object) -> Cluster:
    return replace(CLUSTER, workers=(replace(WORKER, **fields),))  # type: ignore[arg-type]  # fields of the dataclass


def test_a_cluster_that_fits_has_nothing_to_mend() -> None:
    assert status(CLUSTER) == {}
    assert status(replace(CLUSTER, store=None)) == {}


@pytest.mark.parametrize(
    "cluster, expected",
    [
        (changed(python="3.6.1"), {"Python": "fail"}),
        (changed(imports={"pyspark": ("4.1.0", "")}), {"Spark": "fail"}),
        (changed(java="11.0.2"), {"Java": "fail"}),
        (changed(java="21.0.2"), {"Java": "warn"}),
        (changed(java=""), {"Java": "warn"}),
        (changed(imports={**WORKER.imports, "pyarrow": ("", "ModuleNotFoundError: x")}), {"imports": "fail"}),
        (changed(imports={**WORKER.imports, "pandas": ("", "ModuleNotFoundError: x")}), {"imports": "warn"}),
        (changed(skew=(-1.5, -2.0)), {"clock": "warn"}),
        (changed(skew=(40.0, 41.0)), {"clock": "fail"}),
        (changed(skew=(0.0, 9.0)), {}),
        (changed(store_error="StorageError: 403"), {"checkpoint": "fail"}),
        (changed(store_error="NotFound: doctor/driver"), {"checkpoint": "fail"}),
        (replace(CLUSTER, store=StoreAnswer("s3://b", missing=(WORKER.address,))), {"checkpoint": "fail"}),
        (replace(CLUSTER, store=StoreAnswer("s3://b", error="403")), {"checkpoint": "fail"}),
        (replace(CLUSTER, store=StoreAnswer("s3://b", skew=-90.0)), {"clock": "fail"}),
    ],
)
def test_each_check_turns_with_what_it_looks_at(cluster: Cluster, expected: dict[str, str]) -> None:
    assert status(cluster) == expected


def test_a_worker_says_what_it_is_and_tries_the_checkpoint(tmp_path: Path) -> None:
    with _Trial(tmp_path / "checkpoint") as trial:
        found = about(("json", "no_such_module"), trial.pickled, trial.prefix)
        assert found["imports"] == {
            "json": ["2.0.9", ""],
            "no_such_module": ["", "ModuleNotFoundError: No module named 'no_such_module'"],
        }
        store = found["store"]
        assert isinstance(store, dict)
        assert store["error"] == ""
        seen = trial.answer((replace(WORKER, store_name=store["name"]),))
        assert (seen.error, seen.missing) == ("", ())
        assert seen.skew is not None
        assert abs(seen.skew) < 5
        elsewhere = about((), pickle.dumps(LocalStorage(tmp_path / "another disk")), trial.prefix)["store"]
        assert isinstance(elsewhere, dict)
        assert elsewhere["error"].startswith("NotFound")
    assert list(tmp_path.iterdir()) == [], "nothing is left"


def test_a_checkpoint_that_the_driver_cannot_write_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with _Trial(tmp_path / "file" / "below") as trial:
        assert trial.error
        assert trial.pickled == b""


def test_a_checkpoint_without_a_master_is_wrong_usage() -> None:
    app = typer.Typer()
    app.command()(doctor)
    done = CliRunner().invoke(app, ["--checkpoint", "s3://b/flow"])
    assert done.exit_code == 2
    assert "expected --master URL with it" in done.output

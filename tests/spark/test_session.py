"""Whose settings count, and what is said when the JVM does not start."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import SetupError
from penstock.spark.jvm.gateway import KEEP, _new_log, not_started
from penstock.spark.jvm.session import _CHECKPOINTS, _read, _settings, _submitted, read_properties
from penstock.spark.workers.stand_in import in_user_directory, make_stand_in

PENSTOCK = str(Path(sys.executable).with_name("penstock"))


def test_the_users_settings_stand_above_penstocks() -> None:
    made = _settings("local[2]", {"spark.ui.enabled": "true", "spark.sql.shuffle.partitions": "7"})
    assert made["spark.ui.enabled"] == "true"
    assert made["spark.sql.shuffle.partitions"] == "7"
    assert made["spark.sql.session.timeZone"] == "UTC"


@pytest.mark.spark
def test_spark_writes_its_files_without_looking_for_links(penstock_spark: Any, tmp_path: Path) -> None:
    """Each look is a program of the system that is started: eight for each file."""
    jvm = penstock_spark._jvm
    managers = jvm.java.lang.Class.forName(f"{_CHECKPOINTS}.CheckpointFileManager$").getField("MODULE$").get(None)
    conf = penstock_spark._jsparkSession.sessionState().newHadoopConf()
    made = managers.create(jvm.org.apache.hadoop.fs.Path(f"file:{tmp_path}"), conf)
    assert made.getClass().getSimpleName() == "FileSystemBasedCheckpointFileManager"


@pytest.mark.parametrize(
    "given, expected",
    [
        ({}, "-XX:+UseParallelGC"),
        ({"spark.driver.memory": "8g"}, "-XX:+UseParallelGC"),
        ({"spark.driver.memory": "8193m"}, ""),
        ({"spark.driver.extraJavaOptions": "-XX:+UseG1GC -Da=1"}, "-XX:+UseG1GC -Da=1"),
    ],
)
def test_a_small_heap_is_collected_by_all_cores_unless_the_user_says_otherwise(
    given: dict[str, str], expected: str
) -> None:
    assert _settings("local[2]", given).get("spark.driver.extraJavaOptions", "") == expected


@pytest.mark.parametrize("master, partitions", [("local[1]", "1"), ("local[2,4]", "2"), ("local[6]", "6")])
def test_partitions_follow_the_cores_of_the_master(master: str, partitions: str) -> None:
    assert _settings(master, {})["spark.sql.shuffle.partitions"] == partitions


@pytest.mark.parametrize("master", ["yarn", "spark://h:7077", "k8s://https://h:6443", "k8s://https://127.0.0.1:6443"])
def test_nothing_binds_a_cluster_to_this_machine(master: str) -> None:
    made = _settings(master, {})
    bound = ("spark.driver.", "spark.authenticate", "spark.network.", "spark.python.unix.")
    assert [key for key in made if key.startswith(bound)] == []


def test_a_master_on_loopback_has_its_driver_there() -> None:
    assert _settings("spark://127.0.0.1:7077", {})["spark.driver.host"] == "127.0.0.1"


def test_the_stand_in_runs_this_python_where_the_user_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a b").mkdir()
    monkeypatch.chdir(tmp_path / "a b")
    directory = make_stand_in("environment/bin/python")
    command = ["./environment/bin/python", "-c", "import os, sys; print(os.getcwd(), sys.executable)"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"{tmp_path / 'a b'} {sys.executable}"
    options = in_user_directory({"spark.driver.extraJavaOptions": "-Dx=1"})["spark.driver.extraJavaOptions"]
    assert shlex.split(options) == [f"-Duser.dir={tmp_path / 'a b'}", "-Dx=1"]


def test_a_properties_file_is_read_as_spark_reads_it() -> None:
    text = "# c\n! c\n\nspark.a=1\nspark.b: 2\nspark.c   three words\n  spark.d = x=y\n"
    expected = {"spark.a": "1", "spark.b": "2", "spark.c": "three words", "spark.d": "x=y"}
    assert read_properties(text) == expected


def test_a_missing_properties_file_is_an_error_of_the_setup(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"gone.conf cannot be read: No such file"):
        _read(tmp_path / "gone.conf")


def test_what_pyspark_submit_args_say_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = "--master spark://h:7077 --conf spark.x=1 --conf 'spark.y=a b' pyspark-shell"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    assert _submitted() == {"spark.master": "spark://h:7077", "spark.x": "1", "spark.y": "a b"}


def test_old_logs_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    (tmp_path / "logs").mkdir()
    for at in range(KEEP + 5):
        for ending in ("log", "properties"):
            (tmp_path / "logs" / f"spark-20200101-0000{at:02d}-4194305.{ending}").touch()
    kept = _new_log()
    assert kept.exists()
    assert len(list((tmp_path / "logs").glob("*.log"))) == KEEP
    assert not (tmp_path / "logs" / "spark-20200101-000000-4194305.properties").exists()


def test_the_reason_is_the_last_thing_said_when_there_is_no_exception() -> None:
    said = "WARNING: Using incubator modules: x\nInvalid maximum heap size: -Xmxlots\nError: no JVM.\n"
    assert "did not start: Invalid maximum heap size: -Xmxlots\nError: no JVM. `" in not_started(said, "")


@pytest.mark.spark
@pytest.mark.parametrize(
    "master, said",
    [
        ("nowhere", "Master must either be yarn or start with spark"),
        ("yarn", "either HADOOP_CONF_DIR or YARN_CONF_DIR must be set"),
    ],
)
def test_a_jvm_that_does_not_start_is_one_sentence(tmp_path: Path, master: str, said: str) -> None:
    (tmp_path / "f.py").write_text(
        "import penstock as ps\nflow = ps.Flow('f')\nflow.source('s', ps.items([1], 'n int')).sink('o', ps.console())\n"
    )
    command = [PENSTOCK, "run", "-q", "--batch", "--master", master, "f.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Spark's JVM did not start: " in done.stderr
    assert said in done.stderr
    assert "\tat " not in done.stderr

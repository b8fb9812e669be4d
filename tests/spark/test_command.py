"""The command of the driver's JVM: the same that Spark's own scripts make, found out once."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from penstock.spark.jvm.command import DAEMON, DAEMON_MODULE, MAIN, jvm_command
from penstock.spark.jvm.java import Java, use_java
from penstock.spark.jvm.process import spark_home

SETTINGS = {
    "spark.driver.memory": "700m",
    "spark.app.name": "a name with 'quotes' and spaces",
    "spark.driver.extraJavaOptions": "-Dlog=/tmp/x.properties -Dtext='a b'",
}


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    for name in [n for n in os.environ if n.startswith(("SPARK_", "HADOOP_", "YARN_", "PYSPARK_SUBMIT"))]:
        monkeypatch.delenv(name)


def spying(java: Java, home: Path) -> Path:
    """A Java home whose `java` runs the launcher, and writes down what it would run instead of running it."""
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True)
    real = shlex.quote(str(java.home / "bin" / "java"))
    script.write_text(
        "#!/bin/bash\n"
        f'for word do [ "$word" = org.apache.spark.launcher.Main ] && exec {real} "$@"; done\n'
        f"printf '%s\\0' \"$@\" > {home}/words\nenv -0 > {home}/environment\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IEXEC)
    return home


@pytest.mark.spark
def test_it_is_what_spark_submit_would_run(tmp_path: Path) -> None:
    java = use_java()
    home = spying(java, tmp_path / "java")
    confs = [word for key, value in SETTINGS.items() for word in ("--conf", f"{key}={value}")]
    submit = [str(spark_home() / "bin" / "spark-submit"), *confs, "pyspark-shell"]
    subprocess.run(submit, check=True, env={**os.environ, "JAVA_HOME": str(home)}, stdin=subprocess.DEVNULL)
    wanted = (home / "words").read_text().split("\0")[:-1]
    exported = dict(line.split("=", 1) for line in (home / "environment").read_text().split("\0") if "=" in line)

    made = jvm_command(java, spark_home(), SETTINGS)
    assert made is not None
    own, theirs = list(made.words[1:]), list(wanted)
    assert own[own.index(MAIN) :] == theirs[theirs.index(MAIN) :]
    assert sorted(own[: own.index(MAIN)]) == sorted(theirs[: theirs.index(MAIN)])
    assert {name: exported[name] for name in made.environment} == made.environment


@pytest.mark.spark
def test_python_processes_do_not_compile_the_archives_of_spark_anew(penstock_spark: Any) -> None:
    """Those that plan reads and follow sources are Spark's own: what is on their path is all there is to say."""
    path = penstock_spark.sparkContext._jvm.PythonUtils.sparkPythonPath()
    assert not [entry for entry in path.split(":") if entry.endswith(".zip")]


def a_java(tmp_path: Path, says: str, code: int = 0) -> Java:
    """A Java whose launcher says this; each call leaves a line in `calls`."""
    script = tmp_path / "home" / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(f"#!/bin/sh\necho called >> {tmp_path}/calls\nprintf '{says}'\nexit {code}\n")
    script.chmod(0o755)
    return Java(tmp_path / "home", 17, "PATH", "Java 17", vector=True)


def spark(tmp_path: Path) -> Path:
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    (tmp_path / "spark" / "jars" / "spark-core_2.13-4.3.0.jar").write_bytes(b"x")
    return tmp_path / "spark"


def calls(tmp_path: Path) -> int:
    file = tmp_path / "calls"
    return len(file.read_text().splitlines()) if file.exists() else 0


def test_the_launcher_is_asked_once_for_each_size_of_memory(tmp_path: Path) -> None:
    home = spark(tmp_path)
    java = a_java(tmp_path, f"\\0\\n{tmp_path}/home/bin/java\\0-Xmx1g\\0{MAIN}\\0rest\\0")
    first = jvm_command(java, home, {"spark.driver.memory": "1g"})
    again = jvm_command(java, home, {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": "-Da=b"})
    assert first is not None
    assert again is not None
    assert first.words == (
        f"{tmp_path}/home/bin/java", "-Xmx1g", MAIN, "--conf", "spark.driver.memory=1g", "pyspark-shell",
    )  # fmt: skip
    assert again.words[:4] == (f"{tmp_path}/home/bin/java", "-Xmx1g", "-Da=b", MAIN)
    assert calls(tmp_path) == 1
    jvm_command(java, home, {"spark.driver.memory": "2g"})
    assert calls(tmp_path) == 2


def test_sparks_home_is_told_where_workers_may_have_another_python(tmp_path: Path) -> None:
    java, home = a_java(tmp_path, f"\\0\\n/bin/sh\\0{MAIN}\\0"), spark_home()
    assert (home.parent / "py4j").is_dir()
    told, installed = jvm_command(java, home, {}), jvm_command(java, home, {DAEMON_MODULE: DAEMON})
    elsewhere = jvm_command(java, spark(tmp_path), {DAEMON_MODULE: DAEMON})
    assert told is not None
    assert installed is not None
    assert elsewhere is not None
    assert told.environment == {**installed.environment, "SPARK_HOME": str(home)}
    assert elsewhere.environment["SPARK_HOME"] == str(tmp_path / "spark")


def test_a_java_that_has_gone_is_not_used_from_the_cache(tmp_path: Path) -> None:
    home = spark(tmp_path)
    java = a_java(tmp_path, f"\\0\\n{tmp_path}/gone/java\\0{MAIN}\\0")
    assert jvm_command(java, home, {}) is None
    assert jvm_command(java, home, {}) is None
    assert calls(tmp_path) == 2


@pytest.mark.parametrize(("says", "code"), [("no command", 0), (f"\\0\\n/bin/sh\\0{MAIN}\\0", 1)])
def test_without_an_answer_sparks_scripts_do_it(tmp_path: Path, says: str, code: int) -> None:
    assert jvm_command(a_java(tmp_path, says, code), spark(tmp_path), {}) is None


@pytest.mark.parametrize(
    "name", ["SPARK_CONF_DIR", "SPARK_SUBMIT_OPTS", "HADOOP_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "CLASSPATH"]
)
def test_where_the_user_has_a_say_sparks_scripts_do_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    home, java = spark(tmp_path), a_java(tmp_path, f"\\0\\n/bin/sh\\0{MAIN}\\0")
    assert jvm_command(java, home, {"spark.driver.host": "x"}) is not None
    assert jvm_command(java, home, {"spark.driver.extraClassPath": "/x"}) is None
    monkeypatch.setenv(name, "x")
    assert jvm_command(java, home, {}) is None
    monkeypatch.delenv(name)
    (home / "conf").mkdir()
    assert jvm_command(java, home, {}) is None


def test_a_harmless_variable_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, java = spark(tmp_path), a_java(tmp_path, f"\\0\\n/bin/sh\\0{MAIN}\\0")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    assert jvm_command(java, home, {}) is not None


def test_a_cache_that_cannot_be_written_costs_time_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "file"))
    home, java = spark(tmp_path), a_java(tmp_path, f"\\0\\n/bin/sh\\0{MAIN}\\0")
    assert jvm_command(java, home, {}) == jvm_command(java, home, {})
    assert calls(tmp_path) == 2

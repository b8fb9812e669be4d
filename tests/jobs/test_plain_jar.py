"""The JAR that executors get is made here, of what Spark's compiler has written."""

from __future__ import annotations

import zipfile
from pathlib import Path

from penstock.spark.jvm.plain_json import write_jar


def test_a_jar_has_each_class_at_its_path_and_is_the_same_whoever_writes_it(tmp_path: Path) -> None:
    classes = {"org.example.B": b"b", "org.example.A$Inner": b"a"}
    write_jar(tmp_path / "one.jar", classes)
    write_jar(tmp_path / "two.jar", dict(reversed(classes.items())))
    with zipfile.ZipFile(tmp_path / "one.jar") as jar:
        assert {name: jar.read(name) for name in jar.namelist()} == {
            "org/example/A$Inner.class": b"a",
            "org/example/B.class": b"b",
        }
    assert (tmp_path / "one.jar").read_bytes() == (tmp_path / "two.jar").read_bytes()
    assert len(list(tmp_path.iterdir())) == 2, "nothing is left beside them"

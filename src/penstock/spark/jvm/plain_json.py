"""Gives a session a SQL function that reads plain JSON from its bytes, several times as fast as `from_json` (decision 35).

The function is a few hundred lines of Java in `plain/`. The compiler that Spark brings along (Janino, which also compiles the code that Spark generates) makes classes of
them, and these are put beside Spark's own, so that every part of this JVM finds them. Executors of a cluster are JVMs of their own: they get the same classes in a JAR,
which Spark hands to each of them before its first task, also to one that joins late.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import os
import zipfile
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.connectors.parsing import PLAIN_JSON, PLAIN_SETTING
from penstock.errors import SetupError
from penstock.graph.run.master import is_in_one_jvm
from penstock.spark.jvm.cache import recall, remember
from penstock.spark.workers.files import files_directory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKAGE = "org.apache.spark.sql.catalyst.json"
_BESIDE = f"{_PACKAGE}.JacksonParser"
"""The class of Spark beside which ours are put."""
_FILES = ("PlainShape", "PlainJson", "PlainFunction")
"""Each names those before it."""
_LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""The time of every entry of a JAR: the same classes make the same file."""

log = logging.getLogger("penstock")


def offer_plain_json(spark: SparkSession) -> None:
    """Registers the function, once in a session, and says so in a setting, which sessions that are cloned from this one have too.

    Without it JSON is read as well, but slower; so nothing that goes wrong here ends a run.
    """
    if spark.conf.get(PLAIN_SETTING, ""):
        return
    try:
        _register(spark)
        if not is_in_one_jvm(str(spark.sparkContext.master)):
            send_classes(spark)
            _try_out(spark)
        spark.conf.set(PLAIN_SETTING, "true")
    except Exception as error:
        reason = next(iter(str(error).splitlines()), "")
        log.warning("JSON is read by from_json alone, which is slower: %s: %s", type(error).__name__, reason)
        spark.conf.set(PLAIN_SETTING, "false")


def _register(spark: SparkSession) -> None:
    """Has this session know the function that makes the expression; its classes are made where this JVM has none."""
    jvm: Any = spark._jvm
    name = f"{_PACKAGE}.{_FILES[-1]}"
    try:
        kind = jvm.java.lang.Class.forName(name)
    except Exception:
        _define(spark)
        kind = jvm.java.lang.Class.forName(name)
    function = kind.getDeclaredConstructor(None).newInstance(None)
    registry = spark._jsparkSession.sessionState().functionRegistry()
    registry.createOrReplaceTempFunction(PLAIN_JSON, function, "scala_udf")


def _define(spark: SparkSession) -> None:
    """Puts the classes beside Spark's."""
    jvm: Any = spark._jvm
    handles = jvm.java.lang.invoke.MethodHandles
    lookup = handles.privateLookupIn(jvm.java.lang.Class.forName(_BESIDE), handles.lookup())
    texts = _texts()
    kept = _recalled(spark, texts)
    if kept:
        for code in kept.values():
            lookup.defineClass(code)
        return
    made: dict[str, bytes] = {}
    for text in texts:
        for name, code in _compiled(jvm, text).items():
            lookup.defineClass(code)
            made[name] = code
    remember(_cached(spark, texts), [[name, base64.b64encode(code).decode()] for name, code in made.items()])


def send_classes(spark: SparkSession) -> None:
    """Adds a JAR of the classes to what every executor gets.

    It waits among Spark's own temporary files, which this user alone can read and which go when the JVM ends. Spark hands it on as it does the user's JARs, by the
    address, the secret and the encryption that tasks are sent with. A driver that comes back has another context, and makes it anew.
    """
    texts = _texts()
    jar = files_directory() / f"penstock-plain-{_digest(spark, texts)}.jar"
    if not jar.exists():
        classes = _recalled(spark, texts) or {n: c for text in texts for n, c in _compiled(spark._jvm, text).items()}
        write_jar(jar, classes)
    spark.sparkContext._jsc.addJar(str(jar))  # a second time nothing happens


def write_jar(path: Path, classes: Mapping[str, bytes]) -> None:
    """Writes classes, by their names, as a JAR, in one step."""
    aside = path.with_suffix(f".{os.getpid()}")
    with zipfile.ZipFile(aside, "w", zipfile.ZIP_DEFLATED) as jar:
        for name, code in sorted(classes.items()):
            jar.writestr(zipfile.ZipInfo(f"{name.replace('.', '/')}.class", _LONG_AGO), code, zipfile.ZIP_DEFLATED)
    aside.replace(path)


def _try_out(spark: SparkSession) -> None:
    """Has an executor read a record: Spark says of a JAR that it could not add, or that an executor did not take, in its own log alone.

    Raises:
        SetupError: It read something else.
    """
    text = "concat('{\"a\":', id + 7, '}')"
    read = spark.range(0, 1, 1, 1).selectExpr(f"{PLAIN_JSON}({text}, 'a bigint', current_timezone()).a as a").collect()
    if [row.a for row in read] != [7]:
        raise SetupError(f"expected an executor to read a = 7, got {read}")


def _texts() -> list[str]:
    return [resources.files("penstock.spark.jvm").joinpath(f"plain/{name}.java").read_text() for name in _FILES]


def _digest(spark: SparkSession, texts: list[str]) -> str:
    return hashlib.sha256("\n".join([spark.version, *texts]).encode()).hexdigest()[:32]


def _cached(spark: SparkSession, texts: list[str]) -> str:
    """Where the classes are kept, by what they were made of."""
    return f"plain/{_digest(spark, texts)}.classes.json"


def _recalled(spark: SparkSession, texts: list[str]) -> dict[str, bytes]:
    """The classes that an earlier run has compiled, by name, in the order in which they need each other; none where there was none."""
    kept: Any = recall(_cached(spark, texts))
    return {str(name): base64.b64decode(code) for name, code in kept}


def _compiled(jvm: Any, text: str) -> dict[str, bytes]:
    """The classes of a file by name: those inside another after it."""
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(text)
    found = {str(name): bytes(code) for name, code in compiler.getBytecodes().items()}
    return {name: found[name] for name in sorted(found)}

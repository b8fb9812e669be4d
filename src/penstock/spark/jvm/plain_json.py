"""Gives a session a SQL function that reads plain JSON from its bytes, several times as fast as `from_json` (decision 35).

The function is a few hundred lines of Java in `plain/`. The compiler that Spark brings along (Janino, which also compiles the code that Spark generates) makes classes of
them, and these are put beside Spark's own, so that every part of this JVM finds them. Executors of a cluster are JVMs of their own: there JSON is read by `from_json` alone.
"""

from __future__ import annotations

import base64
import hashlib
import logging
from importlib import resources
from typing import TYPE_CHECKING, Any

from penstock.connectors.parsing import PLAIN_JSON, PLAIN_SETTING
from penstock.graph.run.master import is_in_one_jvm
from penstock.spark.jvm.cache import recall, remember

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKAGE = "org.apache.spark.sql.catalyst.json"
_BESIDE = f"{_PACKAGE}.JacksonParser"
"""The class of Spark beside which ours are put."""
_FILES = ("PlainShape", "PlainJson", "PlainFunction")
"""Each names those before it."""

log = logging.getLogger("penstock")


def offer_plain_json(spark: SparkSession) -> None:
    """Registers the function, once in a session, and says so in a setting, which sessions that are cloned from this one have too.

    Without it JSON is read as well, but slower; so nothing that goes wrong here ends a run.
    """
    if spark.conf.get(PLAIN_SETTING, "") or not is_in_one_jvm(str(spark.sparkContext.master)):
        return
    try:
        made = _function(spark)
        registry = spark._jsparkSession.sessionState().functionRegistry()
        registry.createOrReplaceTempFunction(PLAIN_JSON, made, "scala_udf")
        spark.conf.set(PLAIN_SETTING, "true")
    except Exception as error:
        log.debug("JSON is read by from_json alone: %s", error)
        spark.conf.set(PLAIN_SETTING, "false")


def _function(spark: SparkSession) -> Any:
    """The function that makes the expression; its classes are made where this JVM has none."""
    jvm: Any = spark._jvm
    try:
        kind = jvm.java.lang.Class.forName(f"{_PACKAGE}.{_FILES[-1]}")
    except Exception:
        _define(jvm, spark.version)
        kind = jvm.java.lang.Class.forName(f"{_PACKAGE}.{_FILES[-1]}")
    return kind.getDeclaredConstructor(None).newInstance(None)


def _define(jvm: Any, version: str) -> None:
    """Puts the classes beside Spark's, from the cache or compiled."""
    beside = jvm.java.lang.Class.forName(_BESIDE)
    handles = jvm.java.lang.invoke.MethodHandles
    lookup = handles.privateLookupIn(beside, handles.lookup())
    texts = {name: resources.files("penstock.spark.jvm").joinpath(f"plain/{name}.java").read_text() for name in _FILES}
    key = hashlib.sha256("\n".join([version, *texts.values()]).encode()).hexdigest()[:32]
    kept = recall(f"plain/{key}.json")
    if kept:
        for each in kept:
            lookup.defineClass(base64.b64decode(str(each)))
        return
    made = [code for name in _FILES for code in _compiled(jvm, lookup, texts[name])]
    remember(f"plain/{key}.json", [base64.b64encode(code).decode() for code in made])


def _compiled(jvm: Any, lookup: Any, text: str) -> list[bytes]:
    """The classes of a file, defined: those inside another after it."""
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(text)
    found = {str(name): bytes(code) for name, code in compiler.getBytecodes().items()}
    made = [found[name] for name in sorted(found)]
    for code in made:
        lookup.defineClass(code)
    return made

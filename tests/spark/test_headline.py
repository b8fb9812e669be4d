"""What is shown of the wall of text that a failure of Spark is."""

from __future__ import annotations

from penstock.spark.failures import headline, start_failure

STACK = """An error occurred while calling None.org.apache.spark.sql.classic.SparkSession.
: java.lang.IllegalStateException: Cannot start.
java.base/jdk.internal.reflect.NativeConstructorAccessorImpl.newInstance0(Native Method)
org.apache.spark.api.java.JavaSparkContext.<init>(JavaSparkContext.scala:59)
\tat org.apache.spark.SparkContext.assertNotStopped(SparkContext.scala:140)
Caused by: java.io.IOException: first
\tat a.b.C(D.java:1)
Caused by: java.net.ConnectException: refused
\t... 4 more
"""


def test_a_headline_has_the_message_and_the_innermost_cause_without_frames() -> None:
    assert headline(STACK).splitlines() == [
        "An error occurred while calling None.org.apache.spark.sql.classic.SparkSession.",
        ": java.lang.IllegalStateException: Cannot start.",
        "Caused by: java.net.ConnectException: refused",
    ]


def test_a_master_that_does_not_answer_is_said() -> None:
    stopped = ValueError(STACK.replace("Cannot start", "Cannot call methods on a stopped SparkContext"))
    assert "no master answers at spark://h:7" in str(start_failure(stopped, "spark://h:7"))
    assert "no master answers" not in str(start_failure(stopped))

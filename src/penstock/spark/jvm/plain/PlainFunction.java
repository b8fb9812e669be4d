package org.apache.spark.sql.catalyst.json;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;

/** The SQL function that calls PlainJson: of a text, a schema and a time zone, of which the last two are constants. */
public final class PlainFunction extends AbstractFunction1 {
  public Object apply(Object given) {
    Seq arguments = (Seq) given;
    Object schema = ((Expression) arguments.apply(1)).eval(null);
    return new StaticInvoke(
        PlainJson.class,
        StructType.fromDDL(schema.toString()),
        "read",
        arguments,
        (Seq) Nil$.MODULE$,
        true,
        true,
        true,
        (Option) Option.empty());
  }
}

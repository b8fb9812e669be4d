package org.apache.spark.sql.catalyst.json;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** The fields of an object as PlainJson looks for them: names as bytes, types as numbers. */
public final class PlainShape {
  public static final int STRING = 0;
  public static final int LONG = 1;
  public static final int INT = 2;
  public static final int SHORT = 3;
  public static final int DOUBLE = 4;
  public static final int BOOLEAN = 5;
  public static final int DECIMAL = 6;
  public static final int STRUCT = 7;
  public static final int ARRAY = 8;
  public static final int TIMESTAMP = 9;
  public static final int LOCAL = 10;
  public static final int DATE = 11;

  private static final int MOST = 1000;
  private static final ConcurrentHashMap SHAPES = new ConcurrentHashMap();
  private static final Known[] LAST = new Known[16];

  public final byte[][] names;
  public final int[] kinds;
  public final int[] precisions;
  public final int[] scales;
  public final PlainShape[] parts;
  public final boolean isUtc;

  private PlainShape(StructField[] fields, boolean isUtc) {
    int many = fields.length;
    this.names = new byte[many][];
    this.kinds = new int[many];
    this.precisions = new int[many];
    this.scales = new int[many];
    this.parts = new PlainShape[many];
    this.isUtc = isUtc;
    for (int i = 0; i < many; i++) {
      this.names[i] = fields[i].name().getBytes(StandardCharsets.UTF_8);
      this.kinds[i] = kind(fields[i].dataType());
      if (this.kinds[i] == DECIMAL) {
        DecimalType of = (DecimalType) fields[i].dataType();
        this.precisions[i] = of.precision();
        this.scales[i] = of.scale();
      } else if (this.kinds[i] == STRUCT) {
        this.parts[i] = new PlainShape(((StructType) fields[i].dataType()).fields(), isUtc);
      } else if (this.kinds[i] == ARRAY) {
        DataType item = ((ArrayType) fields[i].dataType()).elementType();
        this.parts[i] = new PlainShape(new StructField[] {DataTypes.createStructField("", item, true)}, isUtc);
      }
    }
  }

  /** The shape of a schema, which is a constant of a query: mostly the same object as for the record before. */
  public static PlainShape of(UTF8String schema, UTF8String zone) {
    int slot = System.identityHashCode(schema) & 15;
    Known last = LAST[slot];
    return last != null && last.schema == schema && last.zone == zone ? last.shape : look(schema, zone, slot);
  }

  private static PlainShape look(UTF8String schema, UTF8String zone, int slot) {
    String key = zone.toString() + " " + schema.toString();
    PlainShape made = (PlainShape) SHAPES.get(key);
    if (made == null) {
      if (SHAPES.size() > MOST) {
        SHAPES.clear();
      }
      made = new PlainShape(StructType.fromDDL(schema.toString()).fields(), zone.toString().equals("UTC"));
      SHAPES.put(key, made);
    }
    LAST[slot] = new Known(schema, zone, made);
    return made;
  }

  private static int kind(DataType type) {
    if (type instanceof StructType) {
      if (((StructType) type).fields().length > 64) {
        throw new IllegalArgumentException("expected at most 64 fields, got " + type.catalogString());
      }
      return STRUCT;
    }
    if (type instanceof ArrayType) {
      return ARRAY;
    }
    if (type instanceof DecimalType) {
      return DECIMAL;
    }
    DataType[] plain = {
      DataTypes.StringType, DataTypes.LongType, DataTypes.IntegerType, DataTypes.ShortType, DataTypes.DoubleType, DataTypes.BooleanType
    };
    for (int i = 0; i < plain.length; i++) {
      if (type.equals(plain[i])) {
        return i;
      }
    }
    if (type.equals(DataTypes.TimestampType)) {
      return TIMESTAMP;
    }
    if (type.equals(DataTypes.TimestampNTZType)) {
      return LOCAL;
    }
    if (type.equals(DataTypes.DateType)) {
      return DATE;
    }
    throw new IllegalArgumentException("expected a type that is read plainly, got " + type.catalogString());
  }

  /** The number of the field of a name, the expected one first; -1 where there is none. */
  public int find(byte[] bytes, int from, int to, int expected) {
    for (int i = expected; i < names.length; i++) {
      if (Arrays.equals(names[i], 0, names[i].length, bytes, from, to)) {
        return i;
      }
    }
    for (int i = 0; i < expected; i++) {
      if (Arrays.equals(names[i], 0, names[i].length, bytes, from, to)) {
        return i;
      }
    }
    return -1;
  }

  /** A shape with the constants that it was found by. */
  private static final class Known {
    final UTF8String schema;
    final UTF8String zone;
    final PlainShape shape;

    Known(UTF8String schema, UTF8String zone, PlainShape shape) {
      this.schema = schema;
      this.zone = zone;
      this.shape = shape;
    }
  }
}

package org.apache.spark.sql.catalyst.json;

import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Reads a JSON object whose every part is plain, straight from its bytes; of any other text it says null, and nothing about what is wrong.
 *
 * What it takes, Spark's parser takes too, with the same values. All that is not plain is left to that one: a field that occurs twice, numbers with an exponent or
 * for times, \ u escapes, nested values that the schema does not know, anything after the object, bytes that are no UTF-8.
 */
public final class PlainJson {
  private static final Object NOT_PLAIN = new Object();
  private static final int MAX_NAME = 1000;
  private static final int MAX_DIGITS = 18;

  private final byte[] bytes;
  private final int end;
  private final UTF8String text;
  private int at;
  private boolean isValid;

  private PlainJson(UTF8String text) {
    this.text = text;
    Object base = text.getBaseObject();
    if (base instanceof byte[]) {
      this.bytes = (byte[]) base;
      this.at = (int) (text.getBaseOffset() - Platform.BYTE_ARRAY_OFFSET);
    } else {
      this.bytes = text.getBytes();
      this.at = 0;
    }
    this.end = this.at + text.numBytes();
  }

  /** The fields of a text; null where it is not plain. The schema and the time zone are constants of a query. */
  public static InternalRow read(UTF8String text, UTF8String schema, UTF8String zone) {
    PlainShape shape = PlainShape.of(schema, zone);
    PlainJson reader = new PlainJson(text);
    Object[] fields = reader.object(shape);
    return fields == null || !reader.isAtEnd() ? null : new GenericInternalRow(fields);
  }

  private boolean isAtEnd() {
    skipBlanks();
    return at == end;
  }

  private void skipBlanks() {
    while (at < end && (bytes[at] == ' ' || bytes[at] == '\n' || bytes[at] == '\r' || bytes[at] == '\t')) {
      at++;
    }
  }

  private boolean takes(char wanted) {
    if (at < end && bytes[at] == (byte) wanted) {
      at++;
      return true;
    }
    return false;
  }

  /** The values of an object's fields; null where it is not plain. */
  private Object[] object(PlainShape shape) {
    if (!takes('{')) {
      return null;
    }
    Object[] made = new Object[shape.kinds.length];
    skipBlanks();
    if (takes('}')) {
      return made;
    }
    long seen = 0L;
    int expected = 0;
    while (true) {
      int from = at + 1;
      int to = name();
      if (to < 0) {
        return null;
      }
      int field = shape.find(bytes, from, to, expected);
      if (field < 0) {
        if (!skipScalar()) {
          return null;
        }
      } else {
        long bit = 1L << field;
        Object value = (seen & bit) != 0L ? NOT_PLAIN : value(shape, field);
        if (value == NOT_PLAIN) {
          return null;
        }
        made[field] = value;
        seen |= bit;
        expected = field + 1;
      }
      skipBlanks();
      if (takes('}')) {
        return made;
      }
      if (!takes(',')) {
        return null;
      }
      skipBlanks();
    }
  }

  /** Goes over a name and its colon, to the value; where the name ends, or -1. */
  private int name() {
    if (!takes('"')) {
      return -1;
    }
    int from = at;
    if (!toQuote() || at - from > MAX_NAME) {
      return -1;
    }
    int to = at++;
    skipBlanks();
    if (!takes(':')) {
      return -1;
    }
    skipBlanks();
    return to;
  }

  /** Goes to the quote that ends a text without escapes. */
  private boolean toQuote() {
    byte[] all = bytes;
    int i = at;
    int stop = end;
    while (i < stop) {
      byte each = all[i];
      if (each == '"') {
        at = i;
        return true;
      }
      if (each == '\\') {
        at = i;
        return false;
      }
      if (each < 0x20 && (each >= 0 || !isText())) {
        at = stop;
        return false;
      }
      i++;
    }
    at = stop;
    return false;
  }

  /** Whether all bytes are UTF-8; asked at the first that is not ASCII. */
  private boolean isText() {
    if (!isValid) {
      isValid = text.isValid();
    }
    return isValid;
  }

  private Object value(PlainShape shape, int field) {
    if (at >= end) {
      return NOT_PLAIN;
    }
    byte first = bytes[at];
    if (first == 'n') {
      return takesWord("null") ? null : NOT_PLAIN;
    }
    switch (shape.kinds[field]) {
      case PlainShape.STRING:
        return first == '"' ? string() : NOT_PLAIN;
      case PlainShape.LONG:
        return whole(Long.MIN_VALUE, Long.MAX_VALUE) ? Long.valueOf(number) : NOT_PLAIN;
      case PlainShape.INT:
        return whole(Integer.MIN_VALUE, Integer.MAX_VALUE) ? Integer.valueOf((int) number) : NOT_PLAIN;
      case PlainShape.SHORT:
        return whole(Short.MIN_VALUE, Short.MAX_VALUE) ? Short.valueOf((short) number) : NOT_PLAIN;
      case PlainShape.DOUBLE:
        return real();
      case PlainShape.BOOLEAN:
        return truth(first);
      case PlainShape.DECIMAL:
        return decimal(shape.precisions[field], shape.scales[field]);
      case PlainShape.STRUCT:
        Object[] fields = object(shape.parts[field]);
        return fields == null ? NOT_PLAIN : new GenericInternalRow(fields);
      case PlainShape.ARRAY:
        return array(shape.parts[field]);
      default:
        return moment(shape, shape.kinds[field]);
    }
  }

  private Object truth(byte first) {
    if (first == 't' && takesWord("true")) {
      return Boolean.TRUE;
    }
    return first == 'f' && takesWord("false") ? Boolean.FALSE : NOT_PLAIN;
  }

  private boolean takesWord(String word) {
    if (end - at < word.length()) {
      return false;
    }
    for (int i = 0; i < word.length(); i++) {
      if (bytes[at + i] != (byte) word.charAt(i)) {
        return false;
      }
    }
    at += word.length();
    return true;
  }

  private Object string() {
    int from = ++at;
    if (toQuote()) {
      return UTF8String.fromBytes(bytes, from, at++ - from);
    }
    return at < end && bytes[at] == '\\' ? unescaped(from) : NOT_PLAIN;
  }

  /** A text with escapes of one character. */
  private Object unescaped(int from) {
    int known = at - from;
    byte[] made = new byte[end - from];
    System.arraycopy(bytes, from, made, 0, known);
    while (at < end) {
      byte each = bytes[at++];
      if (each == '"') {
        return UTF8String.fromBytes(made, 0, known);
      }
      if (each == '\\') {
        int meant = at < end ? "\"\\/bfnrt".indexOf(bytes[at++]) : -1;
        if (meant < 0) {
          return NOT_PLAIN;
        }
        each = (byte) "\"\\/\b\f\n\r\t".charAt(meant);
      } else if (each < 0x20 && (each >= 0 || !isText())) {
        return NOT_PLAIN;
      }
      made[known++] = each;
    }
    return NOT_PLAIN;
  }

  /** The number that was read last. */
  private long number;
  /** How many digits of it stand after a point. */
  private int scale;

  /** Reads digits, with a sign and a point where they may have one. */
  private boolean digits(boolean mayHavePoint) {
    boolean isNegative = takes('-');
    int from = at;
    int point = -1;
    long found = 0L;
    while (at < end) {
      byte each = bytes[at];
      if (each >= '0' && each <= '9') {
        if (at - from > MAX_DIGITS) {
          return false;
        }
        found = found * 10 + (each - '0');
      } else if (each == '.' && mayHavePoint && point < 0 && at > from) {
        point = at;
      } else {
        break;
      }
      at++;
    }
    int whole = (point < 0 ? at : point) - from;
    boolean isPadded = whole > 1 && bytes[from] == '0';
    if (whole == 0 || isPadded || point == at - 1 || whole > MAX_DIGITS) {
      return false;
    }
    scale = point < 0 ? -1 : at - point - 1;
    number = isNegative ? -found : found;
    return at < end && (bytes[at] == ',' || bytes[at] == '}' || bytes[at] == ']' || bytes[at] == ' ');
  }

  private boolean whole(long least, long most) {
    return digits(false) && number >= least && number <= most;
  }

  private Object real() {
    int from = at;
    if (!digits(true)) {
      return NOT_PLAIN;
    }
    if (scale < 0) {
      return Double.valueOf((double) number);
    }
    return Double.valueOf(new String(bytes, from, at - from, StandardCharsets.ISO_8859_1));
  }

  private Object decimal(int precision, int most) {
    if (!digits(true) || scale > most) {
      return NOT_PLAIN;
    }
    BigDecimal made = BigDecimal.valueOf(number, Math.max(scale, 0)).setScale(most);
    return made.precision() > precision ? NOT_PLAIN : Decimal.apply(made, precision, most);
  }

  private Object array(PlainShape item) {
    if (!takes('[')) {
      return NOT_PLAIN;
    }
    ArrayList made = new ArrayList();
    skipBlanks();
    if (!takes(']')) {
      while (true) {
        Object each = value(item, 0);
        if (each == NOT_PLAIN) {
          return NOT_PLAIN;
        }
        made.add(each);
        skipBlanks();
        if (takes(']')) {
          break;
        }
        if (!takes(',')) {
          return NOT_PLAIN;
        }
        skipBlanks();
      }
    }
    return new GenericArrayData(made.toArray());
  }

  /** A value of a field that the schema lacks. */
  private boolean skipScalar() {
    if (at >= end) {
      return false;
    }
    byte first = bytes[at];
    if (first == '"') {
      return string() != NOT_PLAIN;
    }
    if (first == 'n') {
      return takesWord("null");
    }
    return first == 't' || first == 'f' ? truth(first) != NOT_PLAIN : digits(true);
  }

  /** A date, or a moment as 2026-05-01 12:30:00 with a T or a blank in the middle, at most six digits after a point, and perhaps a Z. */
  private Object moment(PlainShape shape, int kind) {
    if (!takes('"')) {
      return NOT_PLAIN;
    }
    int from = at;
    int day = day(from);
    if (day == Integer.MIN_VALUE) {
      return NOT_PLAIN;
    }
    at = from + 10;
    if (kind == PlainShape.DATE) {
      return takes('"') ? Integer.valueOf(day) : NOT_PLAIN;
    }
    if (!takes(' ') && !takes('T')) {
      return NOT_PLAIN;
    }
    long micros = clock();
    if (micros < 0L) {
      return NOT_PLAIN;
    }
    boolean isZoned = kind == PlainShape.TIMESTAMP && takes('Z');
    if (!takes('"') || (kind == PlainShape.TIMESTAMP && !isZoned && !shape.isUtc)) {
      return NOT_PLAIN;
    }
    return Long.valueOf(day * 86400000000L + micros);
  }

  /** Days since 1970 of a date that begins at an index; the least number where there is none. */
  private int day(int from) {
    if (end - from < 11 || bytes[from + 4] != '-' || bytes[from + 7] != '-') {
      return Integer.MIN_VALUE;
    }
    int year = two(from) * 100 + two(from + 2);
    int month = two(from + 5);
    int day = two(from + 8);
    if (two(from) < 0 || two(from + 2) < 0 || year < 1 || month < 1 || month > 12 || day < 1 || day > length(year, month)) {
      return Integer.MIN_VALUE;
    }
    int shifted = month > 2 ? month - 3 : month + 9;
    int years = month > 2 ? year : year - 1;
    int days = (153 * shifted + 2) / 5 + day - 1;
    return years * 365 + years / 4 - years / 100 + years / 400 + days - 719468;
  }

  private static int length(int year, int month) {
    if (month == 2) {
      return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28;
    }
    return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
  }

  /** A number of two digits; far below zero where there is none. */
  private int two(int from) {
    int tens = bytes[from] - '0';
    int ones = bytes[from + 1] - '0';
    return tens < 0 || tens > 9 || ones < 0 || ones > 9 ? -100000 : tens * 10 + ones;
  }

  /** Goes over the time of a day; its microseconds, or -1. */
  private long clock() {
    if (end - at < 9 || bytes[at + 2] != ':' || bytes[at + 5] != ':') {
      return -1L;
    }
    int hour = two(at);
    int minute = two(at + 3);
    int second = two(at + 6);
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) {
      return -1L;
    }
    at += 8;
    return takes('.') ? fraction((hour * 60 + minute) * 60 + second) : ((hour * 60 + minute) * 60 + second) * 1000000L;
  }

  private long fraction(int seconds) {
    int micros = 0;
    int many = 0;
    while (at < end && bytes[at] >= '0' && bytes[at] <= '9' && many < 6) {
      micros = micros * 10 + (bytes[at++] - '0');
      many++;
    }
    if (many == 0) {
      return -1L;
    }
    while (many++ < 6) {
      micros *= 10;
    }
    return seconds * 1000000L + micros;
  }
}

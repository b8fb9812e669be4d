"""The expressions that are compared with Spark, by the schema they need."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from penstock.graph.schema import Schema, schema_of


@dataclass(frozen=True)
class Suite:
    """Expressions over the same rows."""

    schema: Schema
    rows: list[tuple[Any, ...]]
    expressions: tuple[str, ...]


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def _utc(*parts: int) -> datetime.datetime:
    return datetime.datetime(*parts, tzinfo=datetime.UTC)  # type: ignore[arg-type,misc]


NUMBERS = Suite(
    schema_of(
        "t tinyint, s smallint, i int, l bigint, f float, d double, p decimal(10,2), q decimal(38,10), b boolean, w string"
    ),
    [
        (1, 2, 3, 4, 1.5, 2.25, Decimal("12.34"), Decimal("1.0000000001"), True, " 7 "),
        (-5, -300, -70000, -5000000000, -0.1, -1e-5, Decimal("-0.01"), Decimal("-123456789.5"), False, "-12"),
        (0, 0, 0, 0, 0.0, -0.0, Decimal("0.00"), Decimal(0), True, "0"),
        (
            100,
            30000,
            2000000000,
            9000000000000000000,
            3.4e38,
            1e300,
            Decimal("99999999.99"),
            Decimal(10**15),
            False,
            "99",
        ),
        (7, 8, 25, 35, float("nan"), float("nan"), Decimal("2.50"), Decimal("0.5"), True, "5"),
        (7, 8, 15, 45, float("inf"), float("-inf"), Decimal("2.45"), Decimal("0.0000000005"), False, "6"),
        (None, None, None, None, None, None, None, None, None, None),
    ],
    _lines(
        """
        t + 1
        t + 1Y
        t - s
        s + i
        i - 5
        cast(i as bigint) * 3
        l - 1
        i * 1L
        i + l % 1000
        i + f
        f + f
        f * 2.5F
        f + d
        d + 1
        d * 2
        d - 0.5
        d / 3
        i / 7
        t / 2Y
        f / 2
        l / 3
        p + 1
        p - i
        p + l
        p * p
        p * 2
        p / 3
        p / 7.13
        p + 0.001
        p * 1.5
        p * d
        p + f
        q + p
        q * 0.1
        q / 3
        q / 1234567890.123
        p % 3
        p % 0.7
        i % 7
        -i % 7
        i % -7
        l % 1000
        d % 2.5D
        t % 3Y
        mod(i, 4)
        pmod(i, 7)
        pmod(i, -7)
        pmod(l, 1000)
        pmod(d, 3D)
        pmod(p, 3)
        i div 7
        l div 3
        p div 3
        p div 0.7
        -i
        -l
        -d
        -p
        -f
        +i
        negative(i)
        w + 1
        w * 2.5
        w / 4
        w div 2
        w % 5
        -w
        null + i
        i + null
        i = 3
        i == 3.0
        i <> 3
        i != l
        i < l
        i <= 3.5
        i > d
        i >= p
        d = d
        d < 5
        d > 5
        d >= d
        f = 1.5
        f = d
        p = 12.34
        p < q
        q > 0
        w = 7
        w < 6
        w >= 5.5
        b = true
        b = 'true'
        b < true
        i <=> 3
        i <=> null
        d <=> d
        d <=> cast('NaN' as double)
        i in (3, 25, 1000)
        i in (3, null)
        i not in (3, 25)
        i not in (3, null)
        i in (3.0, l)
        l in (4, i)
        w in (7, 99)
        d in (2.25, cast('NaN' as double))
        p in (12.34, 2.5)
        i between 3 and 25
        i not between 0 and 25
        p between -1 and 12.5
        d between -1e0 and 3
        b and i > 0
        b or i > 0
        not b
        not b and null
        null or b
        null and b
        !b
        b is true
        b is not true
        b is false
        b is not false
        i is null
        i is not null
        isnull(i)
        isnotnull(i)
        i is distinct from 3
        i is not distinct from 3
        isnan(d)
        isnan(f)
        isnan(i)
        abs(i)
        abs(t)
        abs(d)
        abs(p)
        abs(w)
        abs(f)
        ceil(i)
        ceil(i / 7)
        ceil(cast(i as float))
        ceil(p)
        ceiling(q)
        ceil(w)
        floor(i)
        floor(i / 7)
        floor(-0.5D)
        floor(cast('NaN' as double))
        q * q
        q + q
        q - 0.00000000001
        q / nullif(q, 0)
        p / nullif(p, 0)
        q % 0.3
        -q
        abs(q)
        floor(p)
        floor(q)
        floor(-2.5)
        round(i)
        round(i, -1)
        round(l / 7, 2)
        round(d, 1)
        round(d, -1)
        round(f, 1)
        round(p)
        round(p, 1)
        round(p, 5)
        round(p, -1)
        round(q, 9)
        round(2.5D)
        round(-2.5D)
        round(1.005D, 2)
        round(cast(25 as tinyint), -1)
        bround(i, -1)
        bround(d, 1)
        bround(p, 1)
        bround(2.5D)
        bround(p)
        sqrt(d)
        round(sin(i), 9)
        round(cos(i), 9)
        round(tan(d), 6)
        sin(cast('inf' as double))
        cot(0.0D)
        round(asin(t / 200.0D), 9)
        asin(2.0D)
        round(acos(t / 200.0D), 9)
        round(atan(d), 9)
        round(atan2(i, 2), 9)
        round(sinh(t / 100.0D), 9)
        sinh(1000.0D)
        cosh(-1000.0D)
        round(tanh(f), 9)
        round(degrees(t), 6)
        round(radians(t), 9)
        bin(i)
        bin(l)
        chr(i)
        chr(65)
        sqrt(i)
        sqrt(p)
        pow(i, 2)
        power(d, 2)
        pow(d, 0.5)
        pow(2, -1)
        pow(0, -1)
        pow(-8, 1D / 3)
        pow(0D, 0D)
        exp(i / 1e6)
        exp(d)
        exp(1)
        ln(d)
        ln(i)
        log(p)
        log10(i)
        log10(1000)
        log2(i)
        log2(8)
        sign(i)
        sign(d)
        signum(p)
        sign(f)
        greatest(i, l)
        greatest(i, 5, null)
        greatest(d, 1)
        greatest(p, i)
        greatest(d, f)
        least(i, l, 0)
        least(d, 1.5)
        least(p, q)
        least(d, f)
        greatest(b, false)
        coalesce(i, 0)
        coalesce(i, l, 1)
        coalesce(p, i)
        coalesce(f, i)
        coalesce(d, p)
        coalesce(null, i)
        coalesce(w, i)
        nullif(i, 3)
        nullif(i, l)
        nullif(d, d)
        nullif(p, 2.5)
        nvl(i, -1)
        nvl(i, 1.5)
        ifnull(l, i)
        nvl2(i, l, -1)
        nvl2(i, 'some', 'none')
        if(i > 3, 'big', 'small')
        if(b, i, l)
        if(b, p, i)
        if(null, 1, 2)
        case when i > 3 then 'big' when i < 0 then 'neg' end
        case when b then i else l end
        case when b then i else p end
        case i when 3 then 'three' when 25 then 'many' else 'other' end
        cast(i as string)
        cast(d as string)
        cast(f as string)
        cast(p as string)
        cast(q as string)
        cast(b as string)
        cast(l as double)
        cast(l as float)
        cast(i as decimal(12,2))
        cast(t as bigint)
        cast(p as int)
        cast(p as double)
        cast(p as decimal(10,1))
        cast(p as bigint)
        cast(p as float)
        cast(cast(i as double) as int)
        cast(cast(f as double) as float)
        cast(f as double)
        cast(d as float)
        cast(b as int)
        cast(b as double)
        cast(b as decimal(3,1))
        cast(i as boolean)
        cast(d as boolean)
        cast(p as boolean)
        cast(w as int)
        cast(w as double)
        cast(w as float)
        cast(w as decimal(5,1))
        cast(w as bigint)
        cast(w as tinyint)
        w::int + 1
        i::string
        try_cast(d as int)
        try_cast(l as int)
        try_cast(f as bigint)
        try_cast(i as tinyint)
        try_cast(p as decimal(3,2))
        try_cast(q as decimal(10,8))
        try_cast(w as boolean)
        try_cast(d as decimal(10,2))
        cast(i as timestamp)
        cast(p as timestamp)
        cast(i / 7 as timestamp)
        hex(i)
        hex(l)
        concat(i, '-', d, '-', p, '-', b)
        i || ':' || f
        upper(b)
        length(i)
        struct(i, l as big, i + 1)
        named_struct('a', i, 'b', d)
        array(i, l)
        array(d, f)
        array(p, q)
        map('i', i, 'j', 5)
        timestamp_seconds(i)
        timestamp_seconds(p)
        timestamp_millis(i)
        timestamp_micros(l div 1000000)
        """
    ),
)

LITERALS = Suite(
    schema_of("id bigint"),
    [(0,)],
    _lines(
        r"""
        1
        2147483647
        2147483648
        -2147483648
        -9223372036854775808
        9223372036854775808
        1.5
        0.50
        .5
        1.
        100.00
        0.001
        1e0
        1.5D
        1.5F
        1.5BD
        5L
        5S
        5Y
        -5
        - 5
        -(5)
        - -5
        2 - -1
        true
        FALSE
        null
        'text'
        "text"
        'it''s'
        'it\'s'
        'back\\slash'
        'new\nline\ttab'
        'caf\u00e9 é'
        'a%b\%c\_d'
        r'raw\d'
        X'48656C'
        date '2024-02-29'
        date '2024-2-3'
        timestamp '2024-02-29 12:34:56.789'
        timestamp '2024-02-29'
        timestamp '2024-02-29T12:34:56+02:00'
        timestamp '2024-02-29 12:34:56 Europe/Paris'
        1 + 2 * 3
        (1 + 2) * 3
        10 - 4 - 3
        2 * 3 % 4
        7 div 2 * 2
        1 = 1 and 2 = 2 or false
        not true or true
        not 1 = 2
        1 + 1 = 2 is true
        'a' || 'b' || 'c'
        1.1 + 2.22
        1.1 * 2.22
        1 / 3.0
        1.0 / 3
        10.00 / 4
        1.5 % 0.4
        1 + 1.5
        100 * 0.01
        1.23456789012345678901234567 * 9.87654321098765432109876543
        12345678901234567890.123 / 0.00007
        cast('1e3' as double)
        cast(' 1.5 ' as double)
        cast('inf' as double)
        cast('-Infinity' as double)
        cast('nan' as double)
        cast('1.5d' as double)
        cast('12.345' as decimal(5,2))
        cast('12.345' as decimal(5,1))
        cast('1e2' as decimal(5,1))
        cast('-0.005' as decimal(5,2))
        cast('+5' as int)
        cast('yes' as boolean)
        cast(' F ' as boolean)
        cast('0' as boolean)
        cast('2024-01-05' as date)
        cast(' 2024-01-05 ' as date)
        cast('2024-1-5 10:00' as date)
        cast('2024-03' as date)
        cast('2024' as date)
        cast('2024-01-05T01:02:03Z' as date)
        cast('2024-01-05 01:02:03.123456789' as timestamp)
        cast('2024-01-05 01:02' as timestamp)
        cast('2024-01-05 1:2:3' as timestamp)
        cast('2024-01-05T01:02:03Z' as timestamp)
        cast('2024-01-05 01:02:03 UTC+3' as timestamp)
        cast('2024-01-05 01:02:03-08:30' as timestamp)
        cast('2024-01' as timestamp)
        cast('2024-01-05 01:02:03' as timestamp_ntz)
        cast(1.5 as timestamp)
        cast(-1.5D as timestamp)
        cast(-1 as timestamp)
        cast(timestamp '2024-01-05 01:02:03.5' as bigint)
        cast(timestamp '1969-12-31 23:59:59.5' as bigint)
        cast(timestamp '2024-01-05 01:02:03.5' as double)
        cast(timestamp '2024-01-05 01:02:03.5' as decimal(20,3))
        cast(timestamp '2024-01-05 01:02:03.5' as date)
        cast(timestamp '2024-01-05 01:02:03.500' as string)
        cast(timestamp '2024-01-05 01:02:03' as string)
        cast(date '2024-01-05' as timestamp)
        cast(date '2024-01-05' as string)
        cast('abc' as binary)
        cast(X'6162' as string)
        cast(1.9D as int)
        cast(-1.9D as int)
        cast(1.9 as int)
        cast(1e10 as decimal(20,2))
        cast(0.1 as double)
        cast(0.1F as decimal(10,5))
        cast(123456.789 as float)
        cast(1e7 as string)
        cast(9999999D as string)
        cast(1e-3 as string)
        cast(1e-4 as string)
        cast(123456789.125D as string)
        cast(1.0E-10 as string)
        cast(1e100 as string)
        cast(0D as string)
        cast(-0D as string)
        cast(3.4e38F as string)
        cast(1.1F as string)
        cast(1e10F as string)
        cast(array(1, null, 3) as string)
        cast(array('a', 'b') as string)
        cast(map('a', 1, 'b', null) as string)
        cast(struct(1, 'x', null) as string)
        cast(array(1, 2) as array<string>)
        cast(array('1', '2') as array<int>)
        cast(struct(1, 'x') as struct<a:bigint,b:string>)
        cast(map('1', 2) as map<int,double>)
        cast(null as int)
        cast(null as array<int>)
        try_cast('x' as int)
        try_cast('1.5' as int)
        try_cast('99999999999' as int)
        try_cast('x' as date)
        try_cast('2024-13-01' as date)
        try_cast('x' as timestamp)
        try_cast('x' as double)
        try_cast('maybe' as boolean)
        try_cast('1234.5' as decimal(3,1))
        'abc' < 'abd'
        'a' < 'B'
        'Z' < 'é'
        X'01' < X'02'
        date '2024-01-01' < '2024-02-01'
        timestamp '2024-01-01 00:00:00' = '2024-01-01'
        date '2024-01-01' = timestamp '2024-01-01 00:00:00'
        array(1, 2) = array(1, 2)
        array(1, 2) < array(1, 3)
        array(1, null) = array(1, null)
        array(1, null) < array(1, 1)
        struct(1, 'a') = struct(1, 'a')
        struct(1, 'a') < struct(1, 'b')
        array(1) = array(1L)
        if(true, 1, 'abc')
        coalesce(1, 'abc')
        coalesce(date '2024-01-01', timestamp '2024-01-02 00:00:00')
        coalesce(date '2024-01-01', '2024-01-02')
        array(1, 2L, 3.5)
        array(1, '2')
        array('1', 1, 1.5)
        coalesce('1', 1, 1.5D)
        coalesce(1, 1.5, '1')
        array(1, '1', 1.5)
        array(null, 1)
        array()
        array(array(1), array(2L))
        named_struct('a', null)
        repeat('ab', 3)
        md5('abc')
        md5('')
        md5(X'0102')
        sha('abc')
        sha1('é')
        sha2('abc', 0)
        sha2('abc', 224)
        sha2('abc', 256)
        sha2('abc', 384)
        sha2('abc', 512)
        sha2('abc', 100)
        hex('é')
        hex(X'00FF')
        hex(0)
        base64('hello')
        base64(X'FFFE')
        base64(repeat('hello', 30))
        left(X'010203', 2)
        reverse(X'010203')
        2Y / 1.5
        2S + 1.5
        null / 1.5
        null + 1.5
        null * 1.5
        1.5 % null
        null div 1.5
        null div 2
        crc32('hello')
        length(X'000102')
        substring(X'0102030405', 2, 3)
        concat(X'01', X'02')
        concat(X'61', 'b')
        to_date('2024-05-01')
        to_date('05/06/2024', 'MM/dd/yyyy')
        to_date('5/6/2024', 'M/d/yyyy')
        to_date('01Jan2024', 'ddMMMyyyy')
        to_date('24-05-06', 'yy-MM-dd')
        to_timestamp('2024-05-01 10:11:12')
        to_timestamp('2024-05-01T10:11:12.345', "yyyy-MM-dd'T'HH:mm:ss.SSS")
        to_timestamp('20240501101112', 'yyyyMMddHHmmss')
        to_timestamp('2024-05-01 03:04 PM', 'yyyy-MM-dd hh:mm a')
        to_timestamp('10:11', 'HH:mm')
        to_timestamp(5)
        to_timestamp(date '2024-01-01')
        unix_timestamp('2024-05-01 10:11:12')
        unix_timestamp('01.05.2024', 'dd.MM.yyyy')
        timestamp_seconds(1.5)
        timestamp_seconds(-1.25D)
        timestamp_millis(1714557072123)
        timestamp_micros(-1)
        date '2024-01-31' + 1
        1 + date '2024-02-28'
        date '2024-03-01' - 1
        date '2024-01-01' + interval 2 days
        date '2024-01-01' + interval 1 week
        date '2024-01-01' + interval 36 hours
        date '2024-01-01' - interval 1 minute
        timestamp '2024-01-01 00:00:00' + interval 10 seconds
        timestamp '2024-01-01 00:00:00' - interval 1 hour 30 minutes
        timestamp '2024-01-01 00:00:00' + interval '1.5' second
        timestamp '2024-01-01 00:00:00' + interval '2 days'
        timestamp '2024-01-01 00:00:00' + interval -5 milliseconds
        interval 1 day + timestamp '2024-01-01 00:00:00'
        timestamp '2024-01-01 00:00:00' + interval 3 microseconds
        greatest('b', 'a', null)
        greatest(date '2024-01-01', timestamp '2024-01-01 00:00:01')
        least(array(1, 2), array(1))
        'abc' like 'a%'
        'abc' like '_b_'
        'a%c' like 'a\\%c'
        'abc' like 'a\\%c'
        'a\nb' like 'a%b'
        'ABC' like 'abc'
        'ABC' ilike 'a%'
        'abc' not like 'b%'
        'abc' rlike '^a.c$'
        'abc' rlike 'b'
        'abc' not rlike 'z'
        '12ab' rlike '^\\d+'
        '١٢' rlike '\\d'
        'a.b' rlike 'a\\.b'
        regexp('abc', 'b')
        regexp_like('abc', '[x-z]')
        'x1' rlike '\\p{Alpha}\\p{Digit}'
        split('axxbc', 'x*')
        regexp_replace('abbc', 'b*', '-')
        concat(array('1'), array(2))
        get_json_object('{"a":[null,{"b":null}]}', '$.a[0]')
        get_json_object('{"a":[null,{"b":null}]}', '$.a[1].b')
        get_json_object('{"a":[null,{"b":null}]}', '$.a')
        get_json_object('{"a":-0.0, "b":1.0E10}', '$.b')
        get_json_object('{"a":1', '$.a')
        json_string('a"b\\\\/🙂\\u001f\n')
        json_string(1e308D)
        json_string(-0D)
        json_string(1.50BD)
        json_string(true)
        json_string(cast(null as int))
        get_json_object('{"a":"x/y\\\\u00e9"}', '$')
        get_json_object('{"a":1,"a":2}', '$.a')
        get_json_object('{"a":[1e308,4.9e-324,-0.0,1.50,{"b":1,"b":2},{},[]]}', '$.a')
        get_json_object('{"a":["🙂é","\\\\u001f\\\\u000b"]}', '$.a')
        get_json_object('{"a":"🙂\\\\ud83d"}', '$.a')
        get_json_object('{"a":[1e400]}', '$.a')
        get_json_object(concat('{"a":', repeat('[', 1100), repeat(']', 1100), '}'), '$.a')
        get_json_object(repeat('{"a":', 100000), '$.a')
        get_json_object('', '$.a')
        """
    ),
)

TEXTS = Suite(
    schema_of("a string, b string, n int, v binary"),
    [
        ("hello world", "o", 3, b"hello"),
        ("  Trim me  ", "m", -2, b""),
        ("", "", 0, b"\x00\xff"),
        ("a,b,,c,", ",", 5, b"abc"),
        ("Ünïcödé straße", "ß", 2, "é".encode()),
        ("\U0001f600 smile \U0001f601", "\U0001f601", -1, b"x" * 10),
        ("line1\nline2", "l", 100, b"\n"),
        ("aaa", "aa", 1, b"a"),
        (None, "x", None, None),
        ("x", None, 2, b"x"),
    ],
    _lines(
        r"""
        upper(a)
        lower(a)
        ucase(a)
        lcase(a)
        length(a)
        length(v)
        char_length(a)
        character_length(a)
        len(a)
        trim(a)
        ltrim(a)
        rtrim(a)
        substring(a, 2)
        substring(a, 2, 3)
        substring(a, 0, 3)
        substring(a, -3, 2)
        substring(a, -30, 25)
        substring(a, n, 4)
        substring(a, 1, n)
        substr(a, n)
        substr(a, 100, 2)
        left(a, 3)
        left(a, n)
        right(a, 3)
        right(a, n)
        concat(a, b)
        concat(a, n, v)
        concat(a)
        a || '-' || b
        concat_ws('-', a, b, n)
        concat_ws(b, a, 'z')
        concat_ws('-')
        concat_ws(',', split(a, ' '), b, array('q', null))
        replace(a, b)
        replace(a, b, 'XY')
        replace(a, 'a', '')
        translate(a, 'lo', '12')
        translate(a, 'aeiou', '')
        split(a, ',')
        split(a, ' ')
        split(a, '[,l]')
        split(a, 'l', 2)
        split(a, ',', 0)
        split(a, '')
        split(a, '', 3)
        split(a, '\\s+')
        split(a, '(?=l)')
        split_part(a, ',', 2)
        split_part(a, ' ', -1)
        split_part(a, b, 1)
        substring_index(a, b, 1)
        substring_index(a, 'l', 2)
        substring_index(a, 'l', -2)
        substring_index(a, 'aa', 1)
        substring_index(a, ',', n)
        regexp_replace(a, 'l+', 'L')
        regexp_replace(a, '(\\w)(\\w)', '$2$1')
        regexp_replace(a, '[aeiou]', '<$0>')
        regexp_replace(a, '\\s', '\\$')
        regexp_replace(a, '(l)|(o)', '[$1$2]')
        regexp_replace(a, '.', 'x')
        regexp_replace(a, '(?i)L', '_')
        regexp_extract(a, '(\\w+) (\\w+)', 1)
        regexp_extract(a, '(\\w+) (\\w+)', 2)
        regexp_extract(a, '(l+)')
        regexp_extract(a, '(l)|(z)', 2)
        regexp_extract(a, '^.', 0)
        regexp_extract(a, '(?<first>\\w)', 1)
        a rlike 'l+'
        a rlike '^\\s'
        a rlike '2$'
        rlike(a, b)
        regexp(a, 'o')
        regexp_like(a, '^[a-z ]+$')
        a like '%o%'
        a like '_e%'
        a like '%'
        a like ''
        like(a, '%l_')
        ilike(a, 'HELLO%')
        a ilike '%E%'
        a not like '%l%'
        contains(a, b)
        startswith(a, 'h')
        endswith(a, b)
        instr(a, b)
        instr(a, 'l')
        locate(b, a)
        locate('l', a, 4)
        locate('l', a, 0)
        locate(b, a, n)
        locate('l', a, null)
        initcap(b)
        unhex(hex(a))
        unhex('zz')
        unhex('abc')
        unbase64(base64(v))
        url_encode(a)
        url_encode('a b*c~d/é')
        url_decode(url_encode(a))
        regexp_extract_all(a, '([a-m])', 1)
        regexp_extract_all(a, 'o', 0)
        regexp_extract_all('a1b22', '([a-z])([0-9]+)', 2)
        locate('', a, 3)
        locate(b, a, 2)
        position('o', a)
        lpad(a, 14)
        lpad(a, 4, 'xy')
        lpad(a, n, '*')
        lpad(a, 15, 'xyz')
        lpad(a, 15, '')
        rpad(a, 14, '.')
        rpad(a, 15, 'xyz')
        rpad(a, n)
        rpad(a, 15, '')
        reverse(a)
        repeat(b, n)
        repeat(a, 2)
        initcap(a)
        initcap('hELLO wORLD-foo bar_baz')
        ascii(a)
        ascii(b)
        md5(a)
        sha1(a)
        sha2(a, 256)
        sha2(a, n)
        hex(a)
        hex(v)
        crc32(a)
        crc32(v)
        base64(a)
        base64(v)
        a = b
        a < b
        a >= 'a'
        a in ('x', 'aaa')
        a not in ('x', b)
        a in ('x', null)
        a between 'a' and 'i'
        a <=> b
        coalesce(a, b)
        coalesce(a, b, 'none')
        nullif(a, 'x')
        nvl(b, 'nil')
        greatest(a, b)
        least(a, b, 'm')
        case a when 'x' then 1 when 'aaa' then 3 else 0 end
        if(a is null, 'none', a)
        if(length(a) > 5, left(a, 5), a)
        cast(a as binary)
        cast(v as string)
        try_cast(a as int)
        try_cast(a as date)
        v = cast(a as binary)
        v < X'62'
        substring(v, 2, 2)
        concat(v, v)
        upper(lower(a)) = upper(a)
        struct(a, b as bee, n)
        array(a, b)
        array(a, b)[0]
        """
    ),
)

TIMES = Suite(
    schema_of("ts timestamp, d date, n int, z timestamp_ntz, x string"),
    [
        (
            _utc(2024, 2, 29, 12, 34, 56, 789123),
            datetime.date(2024, 2, 29),
            1,
            datetime.datetime(2024, 2, 29, 1, 2, 3),
            "2024-02-29 12:00:00",
        ),
        (
            _utc(1969, 12, 31, 23, 59, 59, 500000),
            datetime.date(1969, 12, 31),
            -40,
            datetime.datetime(1969, 12, 31, 23, 59, 59, 1),
            "1969-12-31",
        ),
        (_utc(2000, 1, 1), datetime.date(2000, 1, 1), 0, datetime.datetime(2000, 1, 1), "2000-01-01T00:00:00Z"),
        (
            _utc(2023, 12, 31, 0, 0, 1),
            datetime.date(2023, 1, 1),
            365,
            datetime.datetime(2023, 6, 15, 12),
            "2023-6-7 1:2:3.4",
        ),
        (_utc(1600, 7, 4, 5, 6, 7, 8), datetime.date(1600, 7, 31), 7, datetime.datetime(1600, 7, 4), "1600-07-04"),
        (None, None, None, None, None),
    ],
    _lines(
        """
        year(ts)
        year(d)
        year(x)
        month(ts)
        month(d)
        day(ts)
        dayofmonth(d)
        hour(ts)
        hour(d)
        hour(x)
        minute(ts)
        second(ts)
        second(z)
        dayofweek(d)
        dayofweek(ts)
        weekday(d)
        dayofyear(d)
        weekofyear(d)
        quarter(d)
        last_day(d)
        add_months(d, n)
        add_months(ts, -1)
        date_trunc('year', ts)
        date_trunc('YYYY', ts)
        date_trunc('yy', ts)
        date_trunc('quarter', ts)
        date_trunc('month', ts)
        date_trunc('mon', ts)
        date_trunc('mm', ts)
        date_trunc('week', ts)
        date_trunc('day', ts)
        date_trunc('DD', d)
        date_trunc('hour', ts)
        date_trunc('minute', ts)
        date_trunc('second', ts)
        date_trunc('millisecond', ts)
        date_trunc('microsecond', ts)
        date_trunc('decade', ts)
        date_trunc('hour', x)
        trunc(d, 'year')
        trunc(d, 'month')
        trunc(d, 'week')
        trunc(d, 'quarter')
        trunc(ts, 'MM')
        trunc(d, 'day')
        to_date(ts)
        to_date(d)
        to_date(x)
        to_date(z)
        to_timestamp(x)
        to_timestamp(d)
        to_timestamp(z)
        to_timestamp(ts)
        unix_timestamp(ts)
        unix_timestamp(d)
        unix_seconds(ts)
        unix_millis(ts)
        unix_micros(ts)
        timestamp_seconds(unix_timestamp(ts))
        d + interval 1 month
        d - interval 13 months
        ts + interval 1 year
        ts - interval 1 year 2 months
        z + interval -1 month
        interval 2 months + d
        date_add(d, 1)
        date_add(d, n)
        date_add(ts, 1)
        date_add(x, 1)
        dateadd(d, 3)
        date_sub(d, n)
        datediff(d, ts)
        datediff(ts, d)
        datediff(d, '2024-01-01')
        date_diff(d, x)
        d + n
        d - n
        d + 1
        n + d
        d + interval 1 day
        d + interval 90 minutes
        d - interval 2 weeks
        ts + interval 10 seconds
        ts - interval 1 day 2 hours
        ts + interval 1500 milliseconds
        z + interval 1 hour
        ts < timestamp '2001-01-01 00:00:00'
        ts = d
        ts > d
        ts >= '2000-01-01'
        d < '2001-01-01'
        d = date '2000-01-01'
        d in (date '2000-01-01', '2024-02-29')
        d between '1900-01-01' and '2010-01-01'
        ts between timestamp '1900-01-01' and timestamp '2010-01-01'
        z < timestamp '2001-01-01 00:00:00'
        z = d
        greatest(d, ts)
        least(d, date '2010-01-01')
        coalesce(ts, d)
        cast(ts as string)
        cast(d as string)
        cast(z as string)
        cast(ts as date)
        cast(d as timestamp)
        cast(z as timestamp)
        cast(z as date)
        cast(d as timestamp_ntz)
        cast(ts as bigint)
        cast(ts as double)
        cast(ts as decimal(20,6))
        cast(x as timestamp)
        cast(x as date)
        date_format(ts, 'yyyy-MM-dd HH:mm:ss.SSS')
        date_format(ts, 'd/M/yy h:mm a')
        date_format(ts, 'EEE, dd MMM yyyy')
        date_format(ts, 'EEEE MMMM')
        date_format(d, "yyyy'W'")
        date_format(ts, 'HHmmss SSSSSS')
        concat(ts, ' ', d)
        array(ts, d)
        struct(ts, d)
        if(n > 0, ts, d)
        case when n > 0 then d else ts end
        """
    ),
)

NESTED = Suite(
    schema_of(
        "a array<int>, w array<string>, f array<double>, m map<string,int>, k map<int,string>, "
        "s struct<x:int,y:struct<z:string,when:timestamp>>, aa array<array<int>>, st array<struct<p:int,q:string>>, "
        "j string, n int"
    ),
    [
        (
            [3, 1, 2, 1],
            ["b", "a", None],
            [1.5, float("nan"), -0.0, 0.0],
            {"a": 1, "b": 2},
            {1: "one", 2: "two"},
            {"x": 1, "y": {"z": "deep", "when": _utc(2024, 1, 1)}},
            [[1, 2], [3]],
            [{"p": 2, "q": "b"}, {"p": 1, "q": None}, {"p": 2, "q": "a"}],
            '{"a": {"b": [1, 2.50, "x", null]}, "t": "text", "n": 12345678901234567890, "u": "é\\"q"}',
            1,
        ),
        (
            [None, 5, None, 5],
            ["z"],
            [float("nan"), None, float("nan")],
            {"a": None},
            {1: None},
            {"x": None, "y": None},
            [[1], None],
            [{"p": None, "q": "n"}, None],
            '[{"a": 1e3}, {"a": true}] trailing',
            2,
        ),
        (
            [7],
            [None],
            [float("inf")],
            {"b": 5},
            {2: "b"},
            {"x": 5, "y": {"z": None, "when": None}},
            [],
            [],
            "not json",
            -1,
        ),
        ([None], [], [], {}, {}, None, [[]], [{"p": 9, "q": "q"}], '{"a": null, "b": {"c": false}}', 1),
        (None, None, None, None, None, None, None, None, None, None),
    ],
    _lines(
        r"""
        a[0]
        a[n - n]
        m['a']
        m['zz']
        m.b
        k[1]
        k[1L]
        k[2Y]
        s.x
        s.y.z
        s.y.when
        s['x']
        s.y
        s
        st
        m
        aa
        f
        if(size(aa) > 0, aa[0], null)
        size(a)
        size(m)
        size(aa)
        cardinality(w)
        element_at(a, 1)
        element_at(a, -1)
        element_at(m, 'a')
        element_at(k, 2)
        element_at(m, 'none')
        array_contains(a, 1)
        array_contains(a, 5L)
        array_contains(w, 'a')
        array_contains(f, cast('NaN' as double))
        array_contains(f, 0D)
        array_contains(a, n)
        array_position(a, 1)
        array_position(w, 'zz')
        array_remove(a, 1)
        array_remove(w, 'a')
        array_remove(f, 1.0D)
        array_distinct(a)
        array_distinct(w)
        array_distinct(f)
        array_distinct(aa)
        array_distinct(st)
        array_join(w, ',')
        array_join(w, '-', 'NULL')
        array_join(a, ';')
        sort_array(a)
        sort_array(a, false)
        sort_array(w)
        sort_array(f)
        sort_array(f, false)
        sort_array(aa)
        sort_array(st)
        array_min(a)
        array_max(a)
        array_min(f)
        array_max(f)
        array_max(w)
        array_union(a, array(1, 9))
        array_union(a, array(1L))
        array_except(a, array(1))
        array_except(f, array(0D))
        array_union(f, array(-0D))
        array_intersect(f, array(0D, cast('NaN' as double)))
        array_except(a, array(null, 2))
        array_intersect(a, array(1, 5, null))
        arrays_overlap(a, array(1, 5))
        arrays_overlap(a, array(99))
        arrays_overlap(a, array(99, null))
        slice(a, 1, 2)
        slice(a, -1, 1)
        slice(a, 2, 0)
        slice(w, 2, 5)
        flatten(aa)
        reverse(a)
        concat(a, array(n))
        concat(a, array(1L))
        map_keys(m)
        map_values(m)
        map_keys(k)
        map_values(k)
        map_contains_key(m, 'a')
        map_contains_key(k, 1)
        map_entries(m)
        map_entries(k)
        map_from_arrays(array('x', 'y'), array(n, 1))
        json_string(a)
        json_string(f)
        json_string(w)
        json_string(m)
        json_string(named_struct('a', n, 'b', array(1.50BD, null), 'c', cast(null as string)))
        map('x', n, 'y', a[0])
        a = array(7)
        a < array(5)
        aa = array(array(1, 2), array(3))
        s = s
        s.y = s.y
        s <=> s
        s < s
        f = f
        a in (array(7), array(null))
        coalesce(a, array(0))
        coalesce(s.x, n)
        if(n > 0, a, array(1L))
        a is null
        cast(a as string)
        cast(f as string)
        cast(w as string)
        cast(m as string)
        cast(s as string)
        cast(st as string)
        cast(a as array<bigint>)
        cast(a as array<string>)
        cast(s as struct<x:string,y:struct<z:string,when:string>>)
        cast(k as map<string,string>)
        concat_ws(',', w)
        struct(a, s)
        named_struct('list', a, 'map', m)
        array(s.x, n)
        greatest(a, array(2))
        get_json_object(j, '$.a')
        get_json_object(j, '$.a.b')
        get_json_object(j, '$.a.b[1]')
        get_json_object(j, '$.a.b[2]')
        get_json_object(j, '$.a.b[3]')
        get_json_object(j, '$.a.b[9]')
        get_json_object(j, '$.t')
        get_json_object(j, '$.n')
        get_json_object(j, '$.u')
        get_json_object(j, '$.zz')
        get_json_object(j, '$')
        get_json_object(j, '$[0].a')
        get_json_object(j, '$[1].a')
        get_json_object(j, '$.b.c')
        get_json_object(j, '$.t.x')
        get_json_object(j, 'a')
        get_json_object(j, "$['t']")
        """
    ),
)

SUITES = {"numbers": NUMBERS, "literals": LITERALS, "texts": TEXTS, "times": TIMES, "nested": NESTED}

RUNTIME_ERRORS = _lines(
    """
    1 / 0
    1 / 0.0
    1D / 0D
    1 % 0
    1D % 0D
    1 div 0
    1.5 / 0
    1.5 % 0
    mod(id, 0)
    pmod(1, 0)
    2147483647 + 1
    -2147483648 - 1
    2147483647 * 2
    9223372036854775807 + id + 1
    127Y + 1Y
    -(-128Y)
    -(-2147483648)
    abs(-9223372036854775808)
    -9223372036854775808 div -1
    99999999999999999999999999999999999999BD + 1BD
    cast('x' as int)
    cast('' as int)
    cast('1.5' as int)
    cast('99999999999' as int)
    cast('x' as double)
    cast('1x' as decimal(5,2))
    cast('maybe' as boolean)
    cast('2024-13-01' as date)
    cast('2024-01-01x' as date)
    cast('2024-01-01 25:00:00' as timestamp)
    cast('x' as timestamp)
    cast(300 as tinyint)
    cast(1e10 as int)
    cast('NaN' as double)::int
    cast(1234.5 as decimal(5,2))
    cast('1234.5' as decimal(5,2))
    cast(3000000000 as int)
    'abc' = 1
    '1.5' + 1
    round(2147483647, -1)
    ceil(1e300)
    ceil(cast('-inf' as double))
    array(1, 2)[2]
    array(1, 2)[-1]
    element_at(array(1, 2), 3)
    element_at(array(1, 2), 0)
    split_part('a', ',', 0)
    slice(array(1), 0, 1)
    slice(array(1), 1, -1)
    regexp_extract('a', '(a)', 2)
    regexp_replace('a', '(a)', '$2')
    'abc' rlike '('
    'abc' like 'a\\\\b'
    map('a', 1, 'a', 2)
    map(cast(null as string), 1)
    to_date('x')
    to_date('5/1/2024', 'MM/dd/yyyy')
    to_timestamp('x')
    to_timestamp('2024-02-30', 'yyyy-MM-dd')
    unix_timestamp('x')
    date_add('x', 1)
    year('x')
    """
)

ANALYSIS_ERRORS = _lines(
    """
    nope
    no_such_function(1)
    upper()
    upper('a', 'b')
    true = 1
    true + 1
    'a' + 'b'
    1 and true
    not 1
    if(1, 2, 3)
    case when 1 then 2 end
    case when true then 1 else array(1) end
    coalesce(1, array(1))
    coalesce(true, 1)
    array(1, array(1))
    1.5D div 2
    map('a', 1) = map('a', 1)
    md5(5)
    timestamp_seconds('5')
    timestamp_millis(1.5)
    date '2024-01-01' + 1L
    date_add(date '2024-01-01', 1L)
    date_add(date '2024-01-01', 1.5)
    array(1)['a']
    array_contains(array(1), 'a')
    array_contains(1, 1)
    element_at(array(1), 'a')
    size(1)
    map_keys(array(1))
    sort_array(1)
    flatten(array(1))
    greatest(1)
    greatest(1, 'a')
    cast(array(1) as int)
    cast(date '2024-01-01' as int)
    cast(1 as date)
    cast(1 as binary)
    cast(true as date)
    id.x
    id[0]
    struct(1 as a).b
    named_struct('a')
    round(1.5, id)
    year(1)
    hour(true)
    unix_seconds(date '2024-01-01')
    unix_millis('2024-01-01')
    case when null then 1 end
    array_join(array(1), 2)
    array_join(array(array(1)), ',')
    array_position(array(1.5D), 0.5)
    sort_array(array(1), 'true')
    """
)

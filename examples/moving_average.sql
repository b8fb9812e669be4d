-- The average of the last hour, every ten minutes: temperatures of three stations, a reading of each every minute, over two days.
--
--   penstock run --batch examples/moving_average.sql
--   penstock run --until-idle 2s examples/moving_average.sql    live: a day of readings every second

CREATE TABLE numbers (
    `value` BIGINT,
    station AS 'station ' || CAST(`value` % 3 AS STRING),
    celsius AS ROUND(12 + `value` % 3 + 6 * SIN(`value` / 3 * PI() / 720) + COS(`value` * 7), 2),
    ts AS TO_TIMESTAMP_LTZ(1767225600 + 60 * (`value` DIV 3), 0),
    WATERMARK FOR ts AS ts - INTERVAL '2' MINUTE
) WITH ('connector' = 'rate', 'rows-per-second' = '4320', 'number-of-rows' = '8640');

CREATE TABLE averages (station STRING, until TIMESTAMP(3), celsius DOUBLE, readings BIGINT) WITH ('connector' = 'print', 'rows' = '10');

INSERT INTO averages
    SELECT station, window_end, ROUND(AVG(celsius), 2), COUNT(*)
    FROM TABLE(HOP(TABLE numbers, DESCRIPTOR(ts), INTERVAL '10' MINUTE, INTERVAL '1' HOUR))
    GROUP BY station, window_start, window_end;

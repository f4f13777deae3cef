-- ---- Numbers and text as bytes ------------------------------------------------------------------

CREATE FUNCTION holdfast._u8(n integer) RETURNS bytea LANGUAGE sql IMMUTABLE AS
$$ SELECT pg_catalog.set_byte(E'\\x00'::bytea, 0, n) $$;
COMMENT ON FUNCTION holdfast._u8 IS 'A number as one byte.';

CREATE FUNCTION holdfast._le2(n integer) RETURNS bytea LANGUAGE sql IMMUTABLE AS
$$ SELECT pg_catalog.substring(pg_catalog.int4send(((n & 255) << 8) | (n >> 8)), 3) $$;
COMMENT ON FUNCTION holdfast._le2 IS 'A number as two bytes, the lowest first.';

CREATE FUNCTION holdfast._le4(n bigint) RETURNS bytea LANGUAGE sql IMMUTABLE AS
$$
    SELECT pg_catalog.substring(pg_catalog.int8send(
        ((n & 255) << 24) | (((n >> 8) & 255) << 16) | (((n >> 16) & 255) << 8) | ((n >> 24) & 255)), 5)
$$;
COMMENT ON FUNCTION holdfast._le4 IS 'A number as four bytes, the lowest first.';

CREATE FUNCTION holdfast._le8(n bigint) RETURNS bytea LANGUAGE sql IMMUTABLE AS
$$
    SELECT pg_catalog.int8send(
        ((n & 255) << 56) | (((n >> 8) & 255) << 48) | (((n >> 16) & 255) << 40) | (((n >> 24) & 255) << 32) |
        (((n >> 32) & 255) << 24) | (((n >> 40) & 255) << 16) | (((n >> 48) & 255) << 8) | ((n >> 56) & 255))
$$;
COMMENT ON FUNCTION holdfast._le8 IS 'A number as eight bytes, the lowest first.';

CREATE FUNCTION holdfast._get2(b bytea, at integer) RETURNS integer LANGUAGE sql IMMUTABLE AS
$$ SELECT pg_catalog.get_byte(b, at) | (pg_catalog.get_byte(b, at + 1) << 8) $$;
COMMENT ON FUNCTION holdfast._get2 IS 'The number in two bytes.';

CREATE FUNCTION holdfast._get4(b bytea, at integer) RETURNS bigint LANGUAGE sql IMMUTABLE AS
$$
    SELECT pg_catalog.get_byte(b, at)::bigint | (pg_catalog.get_byte(b, at + 1)::bigint << 8) |
        (pg_catalog.get_byte(b, at + 2)::bigint << 16) | (pg_catalog.get_byte(b, at + 3)::bigint << 24)
$$;
COMMENT ON FUNCTION holdfast._get4 IS 'The number in four bytes.';

CREATE FUNCTION holdfast._get8(b bytea, at integer) RETURNS bigint LANGUAGE sql IMMUTABLE AS
$$ SELECT holdfast._get4(b, at) | (holdfast._get4(b, at + 4) << 32) $$;
COMMENT ON FUNCTION holdfast._get8 IS 'The number in eight bytes; from 2^63 on it is negative.';

CREATE FUNCTION holdfast._bits(n numeric) RETURNS bigint LANGUAGE sql IMMUTABLE AS
$$ SELECT (CASE WHEN n < 9223372036854775808 THEN n ELSE n - 18446744073709551616 END)::bigint $$;
COMMENT ON FUNCTION holdfast._bits IS
    'A number of 64 bits without a sign, as the signed number with the same bits.';

CREATE FUNCTION holdfast._unsigned(n bigint) RETURNS numeric LANGUAGE sql IMMUTABLE AS
$$ SELECT CASE WHEN n < 0 THEN n::numeric + 18446744073709551616 ELSE n::numeric END $$;
COMMENT ON FUNCTION holdfast._unsigned IS 'The way back from _bits.';

CREATE FUNCTION holdfast._ms(t timestamptz) RETURNS bigint LANGUAGE sql STABLE AS
$$ SELECT coalesce((extract(epoch FROM t) * 1000)::bigint, 0) $$;
COMMENT ON FUNCTION holdfast._ms IS 'A time in milliseconds since 1970; NULL is 0.';

CREATE FUNCTION holdfast._time(ms bigint) RETURNS timestamptz LANGUAGE sql STABLE AS
$$ SELECT CASE WHEN ms <> 0 THEN 'epoch'::timestamptz + ms * '1 millisecond'::interval END $$;
COMMENT ON FUNCTION holdfast._time IS 'The way back from _ms.';

CREATE FUNCTION holdfast._after(t timestamptz, ms bigint) RETURNS timestamptz LANGUAGE sql STABLE AS
$$ SELECT t + ms * '1 millisecond'::interval $$;
COMMENT ON FUNCTION holdfast._after IS 'That many milliseconds later.';

CREATE FUNCTION holdfast._duration(i interval) RETURNS bigint LANGUAGE sql IMMUTABLE AS
$$ SELECT CASE WHEN NOT pg_catalog.isfinite(i) THEN 9223372036854775807
    ELSE pg_catalog.trunc(extract(epoch FROM i)::numeric * 1000)::bigint END $$;
COMMENT ON FUNCTION holdfast._duration IS
    'An interval in whole milliseconds; an infinite one is longer than any that is valid.';

CREATE FUNCTION holdfast._bytes(t text) RETURNS bytea LANGUAGE sql STABLE AS
$$ SELECT pg_catalog.convert_to(t, 'UTF8') $$;
COMMENT ON FUNCTION holdfast._bytes IS 'Text as its bytes in UTF-8.';

CREATE FUNCTION holdfast._str(b bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS
$$ SELECT holdfast._le2(pg_catalog.length(b)) || b $$;
COMMENT ON FUNCTION holdfast._str IS 'str of doc/FORMAT.md: two bytes of length, and the bytes.';

CREATE FUNCTION holdfast._blob(b bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS
$$ SELECT holdfast._le4(coalesce(pg_catalog.length(b), 0)) || coalesce(b, ''::bytea) $$;
COMMENT ON FUNCTION holdfast._blob IS
    'blob of doc/FORMAT.md: four bytes of length, and the bytes; NULL is empty.';

CREATE FUNCTION holdfast._get_text(b bytea, at integer) RETURNS text LANGUAGE sql STABLE AS
$$ SELECT pg_catalog.convert_from(pg_catalog.substring(b, at + 3, holdfast._get2(b, at)), 'UTF8') $$;
COMMENT ON FUNCTION holdfast._get_text IS 'The text in the str at that place.';

CREATE FUNCTION holdfast._crc_table(zeros integer) RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    crcs bigint[] := '{}';
    crc bigint;
BEGIN
    FOR byte IN 0 .. 255 LOOP
        crc := byte;
        FOR bit IN 1 .. 8 * (zeros + 1) LOOP
            crc := (crc >> 1) # (CASE WHEN crc & 1 = 1 THEN 2197175160 ELSE 0 END);
        END LOOP;
        crcs := crcs || crc;
    END LOOP;
    RETURN crcs;
END $$;
COMMENT ON FUNCTION holdfast._crc_table IS
    'What each byte adds to the CRC when that many zero bytes follow it.';

CREATE FUNCTION holdfast._crc32c(b bytea) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    -- Four bytes a step. The tables are constants to the planner, made once a session.
    last constant bigint[] := holdfast._crc_table(0);
    third constant bigint[] := holdfast._crc_table(1);
    second constant bigint[] := holdfast._crc_table(2);
    first constant bigint[] := holdfast._crc_table(3);
    size constant integer := length(b);
    whole constant integer := size - size % 4;
    crc bigint := 4294967295;
    i integer := 0;
BEGIN
    WHILE i < whole LOOP
        crc := first[1 + ((crc # get_byte(b, i)) & 255)] #
            second[1 + (((crc >> 8) # get_byte(b, i + 1)) & 255)] #
            third[1 + (((crc >> 16) # get_byte(b, i + 2)) & 255)] #
            last[1 + ((crc >> 24) # get_byte(b, i + 3))];
        i := i + 4;
    END LOOP;
    WHILE i < size LOOP
        crc := (crc >> 8) # last[1 + ((crc # get_byte(b, i)) & 255)];
        i := i + 1;
    END LOOP;
    RETURN crc # 4294967295;
END $$;
COMMENT ON FUNCTION holdfast._crc32c IS 'CRC-32C (Castagnoli), as doc/FORMAT.md has it.';

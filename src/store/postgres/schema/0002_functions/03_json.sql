-- ---- JSON, as servers store it and hash it ------------------------------------------------------
--
-- A server stores a JSON string as its bytes, and any other JSON as its text without white space,
-- behind a NUL, a j and the SHA-256 of its canonical text (src/json/stored.c). The fingerprint of a payload is the SHA-256 of its
-- canonical text (src/json/canonical.c). All of it reads the type json rather than jsonb, which
-- would forget the order of members and how numbers were written.

CREATE FUNCTION holdfast._utf16_order(name text) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT CASE WHEN name ~ E'[\\uE000-\\uFFFF\\U0010FFFF]' THEN regexp_replace(
        replace(name, E'\U0010FFFF', E'\U0010FFFF\u0001'), E'([\\uE000-\\uFFFF])', E'\U0010FFFF\u0002\\1', 'g')
    ELSE name END $$;
COMMENT ON FUNCTION holdfast._utf16_order IS
    'Text whose bytes sort as the UTF-16 of the name: characters from U+E000 to U+FFFF come last.';

-- As src/json/canonical.c. Whole numbers keep all their digits; others are the nearest double, with
-- the fewest digits that are read back as that double. (The text that float8 has by itself is
-- longer in rare cases.)
CREATE FUNCTION holdfast._canonical_number(literal text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    part text[] := regexp_match(literal, E'^(-?)(\\d+)(?:\\.(\\d+))?(?:[eE]([+-]?)0*(\\d*))?$');
    sign constant text := part[1];
    digits text;
    point bigint; -- the value is 0.digits times 10^point
    nearest float8;
BEGIN
    IF length(part[5]) > 15 AND literal ~ '^[^eE]*[1-9]' THEN
        RETURN literal;
    END IF;
    FOR pass IN 1..2 LOOP
        digits := ltrim(concat(part[2], part[3]), '0');
        IF digits = '' THEN
            RETURN '0';
        END IF;
        point := length(digits) - coalesce(length(part[3]), 0) + coalesce((part[4] || nullif(part[5], ''))::bigint, 0);
        digits := rtrim(digits, '0');
        EXIT WHEN pass = 2 OR point >= length(digits) OR point > 308;
        literal := left(digits, 800) || CASE WHEN length(digits) > 800 THEN '1' ELSE '' END || 'e' ||
            point - least(length(digits), 801);
        IF point > -300 THEN
            nearest := literal::float8;
        ELSE
            BEGIN
                nearest := literal::float8;
            EXCEPTION WHEN numeric_value_out_of_range THEN
                RETURN '0';
            END;
        END IF;
        FOR many IN CASE WHEN nearest < 2.2250738585072014e-308::float8 THEN 0 ELSE 14 END..16 LOOP
            literal := btrim(to_char(nearest, '9.' || repeat('9', many) || 'EEEE'));
            EXIT WHEN literal::float8 = nearest;
        END LOOP;
        part := regexp_match(literal, E'^()(\\d+)(?:\\.(\\d+))?(?:e([+-]?)0*(\\d*))?$');
    END LOOP;
    RETURN sign || CASE
        WHEN point BETWEEN length(digits) AND 21 THEN rpad(digits, point::integer, '0')
        WHEN point BETWEEN 1 AND 21 THEN left(digits, point::integer) || '.' || substr(digits, point::integer + 1)
        WHEN point BETWEEN -5 AND 0 THEN '0.' || repeat('0', -point::integer) || digits
        ELSE left(digits, 1) || CASE WHEN length(digits) > 1 THEN '.' || substr(digits, 2) ELSE '' END ||
            'e' || CASE WHEN point > 0 THEN '+' ELSE '' END || point - 1
    END;
END $$;
COMMENT ON FUNCTION holdfast._canonical_number IS
    'A number of JSON as JavaScript writes it; integers beyond a double keep all their digits.';

CREATE FUNCTION holdfast._canonical(value json, around integer) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    type constant text := json_typeof(value);
    parts text;
    names bigint;
    distinct_names bigint;
BEGIN
    IF type = 'string' THEN
        RETURN to_json(value #>> '{}')::text;
    ELSIF type = 'number' THEN
        parts := btrim(value::text, E' \t\n\r');
        RETURN CASE WHEN parts ~ E'^(0|-?[1-9]\\d{0,14})$' THEN parts ELSE holdfast._canonical_number(parts) END;
    ELSIF type NOT IN ('object', 'array') THEN
        RETURN btrim(value::text, E' \t\n\r');
    ELSIF around = 31 THEN -- servers read 32 levels, and the outermost is the body of the request
        RAISE EXCEPTION 'holdfast: more than 31 arrays and objects inside each other'
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF type = 'array' THEN
        SELECT string_agg(holdfast._canonical(e.value, around + 1), ',' ORDER BY e.ordinality) INTO parts
        FROM json_array_elements(_canonical.value) WITH ORDINALITY e;
        RETURN concat('[', parts, ']');
    END IF;
    SELECT string_agg(concat(to_json(m.key)::text, ':', holdfast._canonical(m.value, around + 1)), ','
            ORDER BY holdfast._utf16_order(m.key) COLLATE "C"), count(*), count(DISTINCT m.key COLLATE "C")
        INTO parts, names, distinct_names
    FROM json_each(_canonical.value) m;
    IF names <> distinct_names THEN
        RAISE EXCEPTION 'holdfast: a member comes twice in an object' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN concat('{', parts, '}');
END $$;
COMMENT ON FUNCTION holdfast._canonical IS
    'The canonical form of JSON (RFC 8785), in which every way to write one value is the same '
    'text. around: how many arrays and objects it is in.';

CREATE FUNCTION holdfast.json(value json) RETURNS bytea
    LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    canonical constant text := holdfast._canonical(value, 0); -- raises what servers could not read
BEGIN
    IF json_typeof(value) = 'string' THEN
        RETURN holdfast._bytes(value #>> '{}');
    END IF;
    RETURN E'\\x006a'::bytea || sha256(holdfast._bytes(canonical)) ||
        holdfast._bytes(regexp_replace(value::text, E'("(?:[^"\\\\]|\\\\.)*")|[ \t\n\r]', E'\\1', 'g'));
END $$;
COMMENT ON FUNCTION holdfast.json(json) IS
    'JSON as servers store it, for complete, fail, write, record and admit: over HTTP it is '
    'shown as this JSON. An exception if a member comes twice, a string has a NUL, or more than '
    '31 arrays and objects are inside each other.';

CREATE FUNCTION holdfast.json(value jsonb) RETURNS bytea LANGUAGE sql STABLE STRICT AS
$$ SELECT holdfast.json(value::pg_catalog.text::pg_catalog.json) $$;
COMMENT ON FUNCTION holdfast.json(jsonb) IS 'The same with jsonb.';

CREATE FUNCTION holdfast.json(value text) RETURNS bytea LANGUAGE sql STABLE STRICT AS
$$ SELECT holdfast.json(value::pg_catalog.json) $$;
COMMENT ON FUNCTION holdfast.json(text) IS 'The same with the text of JSON.';

CREATE FUNCTION holdfast._value_part(stored bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS
$$
    SELECT CASE WHEN pg_catalog.length(stored) >= 34 AND pg_catalog.substring(stored, 1, 2) = E'\\x006a'::bytea
        THEN pg_catalog.substring(stored, 1, 34) ELSE stored END
$$;
COMMENT ON FUNCTION holdfast._value_part IS
    'The bytes that say which value it is (hf_digest_value of src/core/digest.h): the order of '
    'members, white space and 1 for 1.0 do not count.';

CREATE FUNCTION holdfast.as_json(stored bytea) RETURNS jsonb
    LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF length(stored) >= 34 AND substring(stored, 1, 2) = E'\\x006a'::bytea THEN -- as _value_part has it
        RETURN convert_from(substring(stored, 35), 'UTF8')::jsonb;
    END IF;
    RETURN to_jsonb(convert_from(stored, 'UTF8'));
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
    RETURN jsonb_build_object('base64', translate(encode(stored, 'base64'), E'\n', ''));
END $$;
COMMENT ON FUNCTION holdfast.as_json IS
    'What was stored (a response, an error, a result, the value of a plain register) as HTTP '
    'shows it: JSON as it is, text as a JSON string, anything else as {"base64": ...}; so too '
    'what jsonb cannot hold, such as a NUL in a string. Never an exception.';

CREATE FUNCTION holdfast.payload(value json) RETURNS bytea
    LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ BEGIN RETURN holdfast._bytes(holdfast._canonical(value, 0)); END $$;
COMMENT ON FUNCTION holdfast.payload(json) IS
    'JSON as servers hash it, for begin: the fingerprint is that of a begin over HTTP with this '
    '"payload". Exceptions as for json.';

CREATE FUNCTION holdfast.payload(value jsonb) RETURNS bytea LANGUAGE sql STABLE STRICT AS
$$ SELECT holdfast.payload(value::pg_catalog.text::pg_catalog.json) $$;
COMMENT ON FUNCTION holdfast.payload(jsonb) IS 'The same with jsonb.';

CREATE FUNCTION holdfast.payload(value text) RETURNS bytea LANGUAGE sql STABLE STRICT AS
$$ SELECT holdfast.payload(value::pg_catalog.json) $$;
COMMENT ON FUNCTION holdfast.payload(text) IS 'The same with the text of JSON.';

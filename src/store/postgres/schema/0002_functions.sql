-- Holdfast on PostgreSQL, migration 2: the functions for an application's own transaction.
--
-- An application calls them between its BEGIN and its COMMIT, so that the check, its own effect and the record are one
-- atomic unit. They decide by the rules of the servers (src/core), share all rows with them and write the same journal:
-- a call made through a server and repeated here is a replay, and the other way round.
--
--   SELECT * FROM holdfast.place_hold('order-8123', 'room-307', 'guest-91', interval '15 minutes');
--
-- Each answers with one row. `status` is ok, or the code of the refusal; a refusal is an answer, remembered where the
-- call has a key, and never an exception. Exceptions are for misuse (an argument that is NULL, a fence that is no whole
-- number) and for what asks for another try of the whole transaction (deadlock, serialization failure). Ask in FROM, as
-- above: `SELECT (f(...)).*` would call once for each column.
--
-- Concurrency. A key is won by inserting its row: whoever comes second waits until the first has committed or rolled
-- back, and then gets its answer or takes its place. What is changed is locked first, in the order of the servers: rows
-- that are there (token, guard, guard_entry, lease, register, resource), then rows that are made, in the same order; so
-- one call in a transaction and the servers' batches do not deadlock. Then the time and the number of the journal's entry
-- are taken. Locks are held until the transaction ends, so keep it short. Made for READ COMMITTED; in REPEATABLE READ and
-- SERIALIZABLE the functions raise serialization failures where another transaction was first.
--
-- What is stored with a claim, an identity or a register is bytes, and text is a JSON string to whoever asks a server. For
-- JSON there is json on the way in, as_json on the way out, and payload for begin:
--
--   SELECT * FROM holdfast.complete('order-8123', 7, holdfast.json('{"charge": "C1"}'));
--   SELECT holdfast.as_json(response) ->> 'charge' FROM holdfast.get_claim('order-8123');
--
-- Durations are cut to whole milliseconds; a month counts as 30 days, a year as 365.25. Keys are text here: keys that are
-- not valid UTF-8 are for the servers alone. So are numbered clients, merges, apply, and what _match cannot do exactly.
--
-- Names that begin with _ are not for callers. What callers use runs with the rights of the schema's owner and sees
-- pg_catalog alone; every other name is written out. A string with a backslash is E'...', which means the same whatever the
-- caller's standard_conforming_strings is.

DO $$
BEGIN
    IF pg_catalog.current_setting('server_encoding') <> 'UTF8' THEN
        RAISE EXCEPTION 'Holdfast needs a database with encoding UTF8; this one has %',
            pg_catalog.current_setting('server_encoding');
    END IF;
END $$;

-- ---- Answers ----------------------------------------------------------------------------------------------------

CREATE TYPE holdfast.hold_answer AS (
    status text,
    replayed boolean,
    id text,
    resource text,
    requester text,
    state text,
    placed_at timestamptz,
    expires_at timestamptz,
    ended_at timestamptz,
    reverses text
);
COMMENT ON TYPE holdfast.hold_answer IS 'A hold as it was when the call was first decided; only status and replayed if it was refused.';

CREATE TYPE holdfast.resource_answer AS (
    status text,
    replayed boolean,
    name text,
    capacity integer,
    held integer,
    confirmed integer,
    open boolean,
    fence numeric,
    created_at timestamptz
);
COMMENT ON TYPE holdfast.resource_answer IS 'A resource.';

CREATE TYPE holdfast.guard_answer AS (
    status text,
    replayed boolean,
    name text,
    window_ms bigint,
    match text,
    on_unavailable text,
    durable boolean,
    created_at timestamptz
);
COMMENT ON TYPE holdfast.guard_answer IS 'A guard and its rules.';

CREATE TYPE holdfast.seen_answer AS (
    status text,
    replayed boolean,
    seen boolean,
    recorded_at timestamptz,
    expires_at timestamptz,
    result bytea
);
COMMENT ON TYPE holdfast.seen_answer IS 'Was the identity under guard already; if so since when, until when, and what was stored with it (read it with as_json).';

CREATE TYPE holdfast.claim_answer AS (
    status text,
    replayed boolean,
    key text,
    state text,
    on_abandon text,
    fence bigint,
    lease_ms bigint,
    begun_at timestamptz,
    lease_expires_at timestamptz,
    settled_at timestamptz,
    expires_at timestamptz,
    response bytea
);
COMMENT ON TYPE holdfast.claim_answer IS 'A claim: state is started, completed, failed, retryable, or unknown (started, and the lease has run out). response: of complete, or the error of fail; read it with as_json.';

CREATE TYPE holdfast.lease_answer AS (
    status text,
    replayed boolean,
    name text,
    holder text,
    fence bigint,
    ttl_ms bigint,
    granted_at timestamptz,
    expires_at timestamptz,
    released_at timestamptz
);
COMMENT ON TYPE holdfast.lease_answer IS 'A lease.';

CREATE TYPE holdfast.register_answer AS (
    status text,
    replayed boolean,
    name text,
    type text,
    value bytea,
    version bigint,
    fence numeric,
    changed_at timestamptz
);
COMMENT ON TYPE holdfast.register_answer IS 'A register; read a plain value with as_json. The value of a merged type is in the stored form of doc/FORMAT.md.';

CREATE TYPE holdfast.token_answer AS (
    status text,
    action text,
    answered text,
    digest bytea,
    recorded_at timestamptz,
    expires_at timestamptz,
    entry bigint,
    hold text,
    state text,
    fence bigint,
    response bytea
);
COMMENT ON TYPE holdfast.token_answer IS 'What a key is bound to: the action, what its first call was answered with, and the hold or the claim.';

-- ---- Numbers and text as bytes ----------------------------------------------------------------------------------

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
COMMENT ON FUNCTION holdfast._bits IS 'A number of 64 bits without a sign, as the signed number with the same bits.';

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
$$ SELECT pg_catalog.trunc(extract(epoch FROM i)::numeric * 1000)::bigint $$;
COMMENT ON FUNCTION holdfast._duration IS 'An interval in whole milliseconds.';

CREATE FUNCTION holdfast._bytes(t text) RETURNS bytea LANGUAGE sql STABLE AS
$$ SELECT pg_catalog.convert_to(t, 'UTF8') $$;
COMMENT ON FUNCTION holdfast._bytes IS 'Text as its bytes in UTF-8.';

CREATE FUNCTION holdfast._str(b bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS
$$ SELECT holdfast._le2(pg_catalog.length(b)) || b $$;
COMMENT ON FUNCTION holdfast._str IS 'str of doc/FORMAT.md: two bytes of length, and the bytes.';

CREATE FUNCTION holdfast._blob(b bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS
$$ SELECT holdfast._le4(coalesce(pg_catalog.length(b), 0)) || coalesce(b, ''::bytea) $$;
COMMENT ON FUNCTION holdfast._blob IS 'blob of doc/FORMAT.md: four bytes of length, and the bytes; NULL is empty.';

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
COMMENT ON FUNCTION holdfast._crc_table IS 'What each byte adds to the CRC when that many zero bytes follow it.';

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

-- ---- JSON, as servers store it and hash it ----------------------------------------------------------------------
--
-- A server stores a JSON string as its bytes, and any other JSON as its text without white space, behind a NUL and a j
-- (src/json/stored.c). The fingerprint of a payload is the SHA-256 of its canonical text (src/json/any.c). All of it
-- reads the type json rather than jsonb, which would forget the order of members and how numbers were written.

CREATE FUNCTION holdfast._canonical(value json, around integer) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    type constant text := json_typeof(value);
    parts text;
    names bigint;
    distinct_names bigint;
BEGIN
    IF type = 'string' THEN
        RETURN to_json(value #>> '{}')::text;
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
            ORDER BY m.key COLLATE "C"), count(*), count(DISTINCT m.key COLLATE "C")
        INTO parts, names, distinct_names
    FROM json_each(_canonical.value) m;
    IF names <> distinct_names THEN
        RAISE EXCEPTION 'holdfast: a member comes twice in an object' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN concat('{', parts, '}');
END $$;
COMMENT ON FUNCTION holdfast._canonical IS 'JSON in the form that all who write the same value agree on: no white space, members sorted by the bytes of their names, strings escaped only where they must be, numbers as they are written. around: how many arrays and objects it is in.';

CREATE FUNCTION holdfast.json(value json) RETURNS bytea
    LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM holdfast._canonical(value, 0); -- raises what servers could not read
    IF json_typeof(value) = 'string' THEN
        RETURN holdfast._bytes(value #>> '{}');
    END IF;
    RETURN E'\\x006a'::bytea ||
        holdfast._bytes(regexp_replace(value::text, E'("(?:[^"\\\\]|\\\\.)*")|[ \t\n\r]', E'\\1', 'g'));
END $$;
COMMENT ON FUNCTION holdfast.json(json) IS 'JSON as servers store it, for complete, fail, write, record and admit: over HTTP it is shown as this JSON. An exception if a member comes twice, a string has a NUL, or more than 31 arrays and objects are inside each other.';

CREATE FUNCTION holdfast.json(value jsonb) RETURNS bytea LANGUAGE sql STABLE STRICT AS
$$ SELECT holdfast.json(value::pg_catalog.text::pg_catalog.json) $$;
COMMENT ON FUNCTION holdfast.json(jsonb) IS 'The same with jsonb.';

CREATE FUNCTION holdfast.json(value text) RETURNS bytea LANGUAGE sql STABLE STRICT AS
$$ SELECT holdfast.json(value::pg_catalog.json) $$;
COMMENT ON FUNCTION holdfast.json(text) IS 'The same with the text of JSON.';

CREATE FUNCTION holdfast.as_json(stored bytea) RETURNS jsonb
    LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF substring(stored, 1, 2) = E'\\x006a'::bytea THEN
        RETURN convert_from(substring(stored, 3), 'UTF8')::jsonb;
    END IF;
    RETURN to_jsonb(convert_from(stored, 'UTF8'));
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
    RETURN jsonb_build_object('base64', translate(encode(stored, 'base64'), E'\n', ''));
END $$;
COMMENT ON FUNCTION holdfast.as_json IS 'What was stored (a response, an error, a result, the value of a plain register) as HTTP shows it: JSON as it is, text as a JSON string, anything else as {"base64": ...}; so too what jsonb cannot hold, such as a NUL in a string. Never an exception.';

CREATE FUNCTION holdfast.payload(value json) RETURNS bytea
    LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ BEGIN RETURN holdfast._bytes(holdfast._canonical(value, 0)); END $$;
COMMENT ON FUNCTION holdfast.payload(json) IS 'JSON as servers hash it, for begin: the fingerprint is that of a begin over HTTP with this "payload". Exceptions as for json.';

CREATE FUNCTION holdfast.payload(value jsonb) RETURNS bytea LANGUAGE sql STABLE STRICT AS
$$ SELECT holdfast.payload(value::pg_catalog.text::pg_catalog.json) $$;
COMMENT ON FUNCTION holdfast.payload(jsonb) IS 'The same with jsonb, which writes 1e2 as 100 and -0 as 0: numbers that were sent so over HTTP make another fingerprint.';

CREATE FUNCTION holdfast.payload(value text) RETURNS bytea LANGUAGE sql STABLE STRICT AS
$$ SELECT holdfast.payload(value::pg_catalog.json) $$;
COMMENT ON FUNCTION holdfast.payload(text) IS 'The same with the text of JSON.';

-- ---- The ids of holds -------------------------------------------------------------------------------------------

CREATE FUNCTION holdfast._id_hash(purpose text, number bytea) RETURNS bytea LANGUAGE sql STABLE AS
$$
    SELECT pg_catalog.substring(pg_catalog.sha256(s.id_key || holdfast._bytes(purpose) || number), 1, 8)
    FROM holdfast.store s
$$;
COMMENT ON FUNCTION holdfast._id_hash IS 'Eight bytes that nobody can guess without the store''s secret.';

CREATE FUNCTION holdfast._id_raw(ordinal bigint) RETURNS bytea LANGUAGE plpgsql STABLE AS $$
DECLARE
    tag constant bytea := holdfast._id_hash('tag', holdfast._le8(ordinal));
BEGIN
    RETURN holdfast._le8(ordinal # holdfast._get8(holdfast._id_hash('mask', tag), 0)) || tag;
END $$;
COMMENT ON FUNCTION holdfast._id_raw IS 'The 16 bytes of the id of the hold with that ordinal.';

CREATE FUNCTION holdfast._id_text(raw bytea) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    bits constant bit varying := B'00' || ('x' || encode(raw, 'hex'))::bit(128);
    id text := '';
BEGIN
    FOR i IN 0 .. 25 LOOP
        id := id || substr('0123456789abcdefghjkmnpqrstvwxyz', 1 + substring(bits, 1 + 5 * i, 5)::bit(5)::integer, 1);
    END LOOP;
    RETURN id;
END $$;
COMMENT ON FUNCTION holdfast._id_text IS 'The 16 bytes of an id as 26 digits of Crockford''s base 32.';

CREATE FUNCTION holdfast.hold_id(ordinal bigint) RETURNS text
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ SELECT holdfast._id_text(holdfast._id_raw(ordinal)) $$;
COMMENT ON FUNCTION holdfast.hold_id IS 'The id of the hold with that ordinal, whether there is one or not.';

CREATE FUNCTION holdfast.hold_ordinal(id text) RETURNS bigint
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    bits bit varying := B'';
    raw bytea;
    ordinal bigint;
BEGIN
    IF id IS NULL OR octet_length(id) <> 26 OR id !~ '^[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}$' THEN
        RETURN NULL;
    END IF;
    FOR i IN 1 .. 26 LOOP
        bits := bits || (strpos('0123456789abcdefghjkmnpqrstvwxyz', translate(substr(id, i, 1),
            'ABCDEFGHJKMNPQRSTVWXYZ', 'abcdefghjkmnpqrstvwxyz')) - 1)::bit(5);
    END LOOP;
    raw := int8send(substring(bits, 3, 64)::bit(64)::bigint) || int8send(substring(bits, 67, 64)::bit(64)::bigint);
    ordinal := holdfast._get8(raw, 0) # holdfast._get8(holdfast._id_hash('mask', substring(raw, 9, 8)), 0);
    RETURN CASE WHEN holdfast._id_hash('tag', holdfast._le8(ordinal)) = substring(raw, 9, 8) THEN ordinal END;
END $$;
COMMENT ON FUNCTION holdfast.hold_ordinal IS 'The ordinal inside an id (holdfast.hold.ordinal); NULL if it is not an id of this store. Upper case is accepted.';

-- ---- Rows as they stand in the journal --------------------------------------------------------------------------

CREATE FUNCTION holdfast._row(kind integer, image bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS
$$ SELECT holdfast._u8(kind) || E'\\x00'::bytea || holdfast._le4(pg_catalog.length(image)) || image $$;
COMMENT ON FUNCTION holdfast._row IS 'A row of an entry: kind, no flags, and its image.';

CREATE FUNCTION holdfast._hold_row(h holdfast.hold) RETURNS bytea LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN holdfast._row(1,
        holdfast._le8(h.ordinal) || holdfast._le8(h.previous) || holdfast._le8(holdfast._ms(h.placed_at)) ||
        holdfast._le8(holdfast._ms(h.expires_at)) || holdfast._le8(holdfast._ms(h.ended_at)) ||
        holdfast._u8(array_position('{held,confirmed,released,expired}'::text[], h.state)) ||
        holdfast._u8(CASE WHEN h.reverses IS NULL THEN 0 ELSE 1 END) || holdfast._id_raw(h.ordinal) ||
        CASE WHEN h.reverses IS NULL THEN ''::bytea ELSE holdfast._id_raw(holdfast.hold_ordinal(h.reverses)) END ||
        holdfast._str(holdfast._bytes(h.resource)) || holdfast._str(holdfast._bytes(h.requester)));
END $$;
COMMENT ON FUNCTION holdfast._hold_row IS 'A hold as a row of an entry.';

CREATE FUNCTION holdfast._resource_row(r holdfast.resource) RETURNS bytea LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN holdfast._row(2,
        holdfast._le4(r.capacity) || holdfast._le4(r.held) || holdfast._le4(r.confirmed) ||
        holdfast._u8(r.open::integer) || holdfast._le8(holdfast._bits(r.fence)) || holdfast._le8(r.newest) ||
        holdfast._le8(holdfast._ms(r.created_at)) || holdfast._str(holdfast._bytes(r.name)));
END $$;
COMMENT ON FUNCTION holdfast._resource_row IS 'A resource as a row of an entry.';

CREATE FUNCTION holdfast._steps(match text) RETURNS integer[] LANGUAGE sql IMMUTABLE AS
$$
    SELECT coalesce(pg_catalog.array_agg(pg_catalog.array_position('{exact,trim,casefold,normalize,hash}'::text[], s)
        ORDER BY n), '{}')
    FROM pg_catalog.unnest(pg_catalog.string_to_array(match, ',')) WITH ORDINALITY AS u(s, n)
$$;
COMMENT ON FUNCTION holdfast._steps IS 'The numbers of the steps of a match rule, in order; NULL for one that is not known.';

CREATE FUNCTION holdfast._guard_row(g holdfast.guard) RETURNS bytea LANGUAGE plpgsql STABLE AS $$
DECLARE
    steps constant integer[] := holdfast._steps(g.match);
BEGIN
    RETURN holdfast._row(3,
        holdfast._le8(g.window_ms) || holdfast._u8((g.on_unavailable = 'closed')::integer) ||
        holdfast._u8(g.durable::integer) || holdfast._u8(cardinality(steps)) ||
        holdfast._u8(coalesce(steps[1], 0)) || holdfast._u8(coalesce(steps[2], 0)) ||
        holdfast._u8(coalesce(steps[3], 0)) || holdfast._u8(coalesce(steps[4], 0)) ||
        holdfast._le8(holdfast._ms(g.created_at)) || holdfast._str(holdfast._bytes(g.name)));
END $$;
COMMENT ON FUNCTION holdfast._guard_row IS 'A guard as a row of an entry.';

CREATE FUNCTION holdfast._identity_row(e holdfast.guard_entry) RETURNS bytea LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN holdfast._row(4,
        holdfast._le8(holdfast._ms(e.recorded_at)) || holdfast._le8(holdfast._ms(e.expires_at)) ||
        holdfast._str(holdfast._bytes(e.guard)) || holdfast._str(e.identity) ||
        holdfast._u8((e.result IS NOT NULL)::integer) || holdfast._blob(e.result));
END $$;
COMMENT ON FUNCTION holdfast._identity_row IS 'An identity under guard as a row of an entry.';

CREATE FUNCTION holdfast._claim_row(c holdfast.token) RETURNS bytea LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN holdfast._row(5,
        holdfast._u8(array_position('{started,completed,failed,retryable}'::text[], c.state)) ||
        holdfast._u8((c.on_abandon = 'retry')::integer) || holdfast._le8(c.fence) || holdfast._le8(c.lease_ms) ||
        holdfast._le8(holdfast._ms(c.recorded_at)) || holdfast._le8(holdfast._ms(c.lease_expires_at)) ||
        holdfast._le8(holdfast._ms(c.settled_at)) ||
        holdfast._le8(holdfast._ms(CASE WHEN c.state <> 'started' THEN c.expires_at END)) || c.digest ||
        holdfast._str(holdfast._bytes(holdfast._key_text(c.key))) || holdfast._blob(c.response));
END $$;
COMMENT ON FUNCTION holdfast._claim_row IS 'A claim as a row of an entry.';

CREATE FUNCTION holdfast._lease_row(l holdfast.lease) RETURNS bytea LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN holdfast._row(6,
        holdfast._le8(l.fence) || holdfast._le8(l.ttl_ms) || holdfast._le8(holdfast._ms(l.granted_at)) ||
        holdfast._le8(holdfast._ms(l.expires_at)) || holdfast._le8(holdfast._ms(l.released_at)) ||
        holdfast._str(holdfast._bytes(l.name)) || holdfast._str(holdfast._bytes(l.holder)));
END $$;
COMMENT ON FUNCTION holdfast._lease_row IS 'A lease as a row of an entry.';

CREATE FUNCTION holdfast._register_row(r holdfast.register) RETURNS bytea LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN holdfast._row(7,
        E'\\x01'::bytea || holdfast._le8(r.version) || holdfast._le8(holdfast._bits(r.fence)) ||
        holdfast._le8(holdfast._ms(r.changed_at)) || holdfast._str(holdfast._bytes(r.name)) || holdfast._blob(r.value));
END $$;
COMMENT ON FUNCTION holdfast._register_row IS 'A plain register as a row of an entry.';

-- ---- Entries of the journal -------------------------------------------------------------------------------------

CREATE FUNCTION holdfast._action_number(action text) RETURNS integer LANGUAGE sql IMMUTABLE AS
$$
    SELECT pg_catalog.array_position('{place_hold,confirm,release,expire,reverse,set_resource,set_guard,check,record,
        admit,begin,complete,fail,heartbeat,grant,renew,return,write}'::text[], action)
$$;
COMMENT ON FUNCTION holdfast._action_number IS 'The number of enum hf_action.';

CREATE FUNCTION holdfast._status_number(status text) RETURNS integer LANGUAGE sql IMMUTABLE AS
$$
    SELECT pg_catalog.array_position('{ok,invalid-request,not-known,resource-unavailable,not-held,window-elapsed,
        window-not-elapsed,in-progress,outcome-unknown,stale-fence,version-mismatch,token-collision,
        lease-held}'::text[], status) - 1
$$;
COMMENT ON FUNCTION holdfast._status_number IS 'The number of enum hf_status.';

CREATE FUNCTION holdfast._key_column(key text) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT pg_catalog.replace(key, E'\\', E'\\\\') $$;
COMMENT ON FUNCTION holdfast._key_column IS 'A key as it stands in a column: a backslash is two.';

CREATE FUNCTION holdfast._key_text(key text) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT pg_catalog.replace(key, E'\\\\', E'\\') $$;
COMMENT ON FUNCTION holdfast._key_text IS 'The way back from _key_column, for keys that these functions have written.';

CREATE FUNCTION holdfast._entry(action text, status text, remember integer, answer integer, tenant text, key text,
    at timestamptz, expires_at timestamptz, digest bytea, rows bytea[]) RETURNS bytea LANGUAGE plpgsql STABLE AS $$
DECLARE
    body bytea := holdfast._u8(holdfast._action_number(action)) || holdfast._u8(holdfast._status_number(status)) ||
        holdfast._u8(remember) || holdfast._u8(cardinality(rows)) || holdfast._u8(answer) ||
        holdfast._u8(octet_length(tenant)) || holdfast._le2(CASE WHEN remember = 1 THEN octet_length(key) ELSE 0 END) ||
        holdfast._le8(holdfast._ms(at));
    image bytea;
BEGIN
    IF remember = 1 THEN
        body := body || holdfast._le8(holdfast._ms(expires_at)) || digest;
    END IF;
    body := body || holdfast._bytes(tenant);
    IF remember = 1 THEN
        body := body || holdfast._bytes(key);
    END IF;
    FOREACH image IN ARRAY rows LOOP
        body := body || image;
    END LOOP;
    RETURN holdfast._le4(8 + length(body)) || holdfast._le4(holdfast._crc32c(body)) || body;
END $$;
COMMENT ON FUNCTION holdfast._entry IS 'An entry in the bytes of doc/FORMAT.md. answer: the index of the row that answers, or 255.';

CREATE FUNCTION holdfast._journal(number bigint, at timestamptz, tenant text, action text, status text, key text,
    remember integer, answer integer, expires_at timestamptz, digest bytea, rows bytea[])
    RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO holdfast.journal (number, at, tenant, action, status, key, writer, batch, entry)
    VALUES (_journal.number, _journal.at, _journal.tenant, _journal.action, _journal.status,
        holdfast._key_column(_journal.key), 0, 0,
        holdfast._entry(_journal.action, _journal.status, remember, answer, _journal.tenant, _journal.key, _journal.at,
            _journal.expires_at, digest, rows));
END $$;
COMMENT ON FUNCTION holdfast._journal IS 'Add an entry. The number has been drawn from journal_number after all locks were held.';

CREATE FUNCTION holdfast._answer_image(entry bytea) RETURNS bytea LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    answer constant integer := get_byte(entry, 12);
    place integer := 24 + get_byte(entry, 13) + holdfast._get2(entry, 14);
BEGIN
    IF answer = 255 THEN
        RETURN NULL;
    END IF;
    place := place + CASE get_byte(entry, 10) WHEN 1 THEN 40 WHEN 2 THEN 48 ELSE 0 END;
    FOR i IN 1 .. answer LOOP
        place := place + 6 + holdfast._get4(entry, place + 2)::integer;
    END LOOP;
    RETURN substring(entry, place + 7, holdfast._get4(entry, place + 2)::integer);
END $$;
COMMENT ON FUNCTION holdfast._answer_image IS 'The image of the row that the entry''s call was answered with; NULL if with a status alone.';

-- ---- Time, rules, names -----------------------------------------------------------------------------------------

CREATE FUNCTION holdfast.engine_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS
$$
    SELECT greatest(pg_catalog.date_trunc('milliseconds', pg_catalog.clock_timestamp()),
        (SELECT pg_catalog.max(n.at) FROM (SELECT j.at FROM holdfast.journal j ORDER BY j.number DESC LIMIT 16) n
        WHERE n.at < timestamptz '10000-01-01 00:00:00+00'))
$$;
COMMENT ON FUNCTION holdfast.engine_now IS 'Engine time: the database''s clock in whole milliseconds, and never before what has been decided last.';

CREATE FUNCTION holdfast._rules() RETURNS holdfast.store LANGUAGE plpgsql AS $$
DECLARE
    rules holdfast.store;
BEGIN
    -- Whoever changes the configuration takes the table's EXCLUSIVE lock first, and so waits for all who decide by it.
    LOCK TABLE holdfast.store IN ROW SHARE MODE;
    -- In REPEATABLE READ the row may be older than that lock. To lock it is to fail then, instead of deciding by rules that are
    -- no longer in force; who can only read decides nothing.
    IF current_setting('transaction_isolation') = 'read committed' OR current_setting('transaction_read_only')::boolean THEN
        SELECT s.* INTO rules FROM holdfast.store s;
    ELSE
        SELECT s.* INTO rules FROM holdfast.store s FOR SHARE;
    END IF;
    IF NOT FOUND OR rules.program = 'none' THEN
        RAISE EXCEPTION 'the Holdfast store in this database has not been set up: start a server on it once'
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    RETURN rules;
END $$;
COMMENT ON FUNCTION holdfast._rules IS 'The configuration in force, which stays in force until the transaction ends.';

CREATE FUNCTION holdfast._need(call text, given boolean) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF NOT given THEN
        RAISE EXCEPTION 'holdfast.%: an argument is NULL that must have a value', call
            USING ERRCODE = 'null_value_not_allowed';
    END IF;
END $$;
COMMENT ON FUNCTION holdfast._need IS 'Refuse a call without an argument that it needs.';

CREATE FUNCTION holdfast._replicate() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    -- A transaction that writes nothing ends without waiting for the synchronous standbys, and what it was shown may not be there:
    -- rows whose own wait was given up can be seen by all. With this it has something to wait for.
    IF current_setting('synchronous_standby_names') <> '' AND NOT pg_is_in_recovery() THEN
        PERFORM pg_logical_emit_message(true, 'holdfast', '');
    END IF;
END $$;
COMMENT ON FUNCTION holdfast._replicate IS 'The COMMIT of this transaction waits until the synchronous standbys have all that the call is shown.';

CREATE FUNCTION holdfast._fence(call text, fence numeric) RETURNS numeric LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF fence < 0 OR fence > 18446744073709551615 OR fence <> trunc(fence) THEN
        RAISE EXCEPTION 'holdfast.%: % is not a fence: a whole number from 0 (none) to 18446744073709551615',
            call, fence USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN coalesce(fence, 0);
END $$;
COMMENT ON FUNCTION holdfast._fence IS 'A fence that can be one; NULL is none.';

CREATE FUNCTION holdfast._name_valid(name text) RETURNS boolean LANGUAGE sql STABLE AS
$$ SELECT pg_catalog.octet_length(name) BETWEEN 1 AND 1024 $$;
COMMENT ON FUNCTION holdfast._name_valid IS 'May a resource, requester, guard, lease, holder or register have this name?';

CREATE FUNCTION holdfast._duration_valid(ms bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS
$$ SELECT ms BETWEEN 1 AND 315360000000 $$;
COMMENT ON FUNCTION holdfast._duration_valid IS 'From one millisecond to ten years.';

-- ---- Keys -------------------------------------------------------------------------------------------------------

CREATE FUNCTION holdfast._field(name text, type integer, value bytea) RETURNS bytea LANGUAGE sql STABLE AS
$$
    SELECT holdfast._str(holdfast._bytes(name)) || holdfast._u8(type) ||
        holdfast._le4(pg_catalog.length(value)) || value
$$;
COMMENT ON FUNCTION holdfast._field IS 'A field of the canonical form that is digested (src/core/digest.h). type: 1 bytes, 2 a number.';

CREATE FUNCTION holdfast._key_look(tenant text, key text, OUT first holdfast.token, OUT alive boolean,
    OUT locked boolean) LANGUAGE plpgsql AS $$
BEGIN
    LOOP
        locked := false;
        SELECT t.* INTO first FROM holdfast.token t
        WHERE t.tenant = _key_look.tenant AND t.key = _key_look.key;
        alive := FOUND AND first.expires_at > holdfast.engine_now();
        EXIT WHEN alive OR first.key IS NULL;
        SELECT t.* INTO first FROM holdfast.token t
        WHERE t.tenant = _key_look.tenant AND t.key = _key_look.key FOR UPDATE;
        CONTINUE WHEN NOT FOUND;
        alive := first.expires_at > holdfast.engine_now();
        locked := NOT alive;
        EXIT;
    END LOOP;
END $$;
COMMENT ON FUNCTION holdfast._key_look IS 'Who has the key? alive: the call or claim in `first`. locked: nobody any more, and the row is ours to fill. Neither: there is no row.';

CREATE FUNCTION holdfast._key_insert(tenant text, key text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    -- Waits for one who is inserting it; then there is a row, or ours is the first after all.
    INSERT INTO holdfast.token (tenant, key, action, status, digest, recorded_at, expires_at, entry)
    VALUES (_key_insert.tenant, _key_insert.key, '', '', '', '-infinity', '-infinity', 0)
    ON CONFLICT DO NOTHING;
    RETURN FOUND;
END $$;
COMMENT ON FUNCTION holdfast._key_insert IS 'Win the key: true if the row is ours to fill, false if somebody was faster.';

CREATE TYPE holdfast._admitted AS (
    status text,
    replayed boolean,
    image bytea,
    won boolean,
    window_ms bigint,
    known_only boolean
);
COMMENT ON TYPE holdfast._admitted IS 'status NULL: the key is new, and the call is to be decided once it is won. Else the answer.';

CREATE FUNCTION holdfast._admit(tenant text, key text, action text, digest bytea)
    RETURNS holdfast._admitted LANGUAGE plpgsql AS $$
DECLARE
    rules constant holdfast.store := holdfast._rules();
    owner record;
    a holdfast._admitted;
BEGIN
    a.replayed := false;
    a.won := false;
    a.window_ms := rules.idempotency_window_ms;
    a.known_only := rules.registry_strict;
    IF octet_length(tenant) > 64 OR octet_length(key) NOT BETWEEN 1 AND rules.token_max_length THEN
        a.status := 'invalid-request';
        RETURN a;
    END IF;
    owner := holdfast._key_look(tenant, holdfast._key_column(key));
    a.won := owner.locked;
    IF NOT owner.alive THEN
        RETURN a;
    END IF;
    IF (owner.first).action <> action OR (owner.first).digest <> digest THEN
        a.status := 'token-collision';
        RETURN a;
    END IF;
    a.status := (owner.first).status;
    a.replayed := true;
    SELECT holdfast._answer_image(j.entry) INTO STRICT a.image FROM holdfast.journal j
    WHERE j.number = (owner.first).entry;
    RETURN a;
END $$;
COMMENT ON FUNCTION holdfast._admit IS 'Is this the first call with the key? As hf_token_admit of src/core/token.h.';

CREATE FUNCTION holdfast._win(admitted holdfast._admitted, tenant text, key text, action text, digest bytea)
    RETURNS holdfast._admitted LANGUAGE plpgsql AS $$
DECLARE
    a holdfast._admitted := admitted;
BEGIN
    WHILE a.status IS NULL AND NOT a.won LOOP
        a.won := holdfast._key_insert(tenant, holdfast._key_column(key));
        IF NOT a.won THEN
            a := holdfast._admit(tenant, key, action, digest);
        END IF;
    END LOOP;
    RETURN a;
END $$;
COMMENT ON FUNCTION holdfast._win IS 'Make the key ours, behind the locks of all rows that are there. Has a status if somebody was faster: that is the answer.';

-- The first use of a name. Its row is made behind the key, and by then a server may have made it, changed it, and wait for
-- the key. So whoever has the key does not wait long for the row: it gives the key back (a subtransaction), and begins again
-- with the lock of the row, which is there now.

CREATE FUNCTION holdfast._lost() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'holdfast: the row was made meanwhile' USING ERRCODE = 'HF001';
END $$;
COMMENT ON FUNCTION holdfast._lost IS 'Leave the subtransaction: somebody else has made the row.';

CREATE FUNCTION holdfast._hurry() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    before constant text := current_setting('lock_timeout');
BEGIN
    PERFORM set_config('lock_timeout', '50ms', true);
    RETURN before;
END $$;
COMMENT ON FUNCTION holdfast._hurry IS 'Wait only a moment for locks until the subtransaction ends. Returns the setting that was before.';

CREATE FUNCTION holdfast._patience(since timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    most constant interval := current_setting('lock_timeout')::interval;
BEGIN
    IF most > interval '0' AND clock_timestamp() - since > most THEN
        RAISE EXCEPTION 'canceling statement due to lock timeout' USING ERRCODE = 'lock_not_available';
    END IF;
END $$;
COMMENT ON FUNCTION holdfast._patience IS 'Fail as a lock would, if the caller has set a lock_timeout and it has passed.';

CREATE FUNCTION holdfast._remember(tenant text, key text, action text, status text, digest bytea, at timestamptz,
    window_ms bigint, number bigint, hold bigint, previous bigint, answer integer, rows bytea[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    ends constant timestamptz := holdfast._after(at, window_ms);
BEGIN
    UPDATE holdfast.token t
    SET action = _remember.action, status = _remember.status, digest = _remember.digest, recorded_at = at,
        expires_at = ends, entry = number, hold = _remember.hold, previous = _remember.previous, state = NULL, on_abandon = NULL,
        fence = NULL, lease_ms = NULL, lease_expires_at = NULL, settled_at = NULL, response = NULL
    WHERE t.tenant = _remember.tenant AND t.key = holdfast._key_column(_remember.key);
    PERFORM holdfast._journal(number, at, tenant, action, status, key, 1, answer, ends, digest, rows);
END $$;
COMMENT ON FUNCTION holdfast._remember IS 'Bind the key, whose row is ours, to the call and its answer.';

-- ---- Holds ------------------------------------------------------------------------------------------------------

CREATE FUNCTION holdfast._hold_answer(status text, replayed boolean, image bytea)
    RETURNS holdfast.hold_answer LANGUAGE plpgsql STABLE AS $$
DECLARE
    a holdfast.hold_answer;
    place integer := 58;
BEGIN
    a.status := status;
    a.replayed := replayed;
    IF image IS NULL THEN
        RETURN a;
    END IF;
    a.id := holdfast._id_text(substring(image, 43, 16));
    IF get_byte(image, 41) = 1 THEN
        a.reverses := holdfast._id_text(substring(image, 59, 16));
        place := 74;
    END IF;
    a.resource := holdfast._get_text(image, place);
    a.requester := holdfast._get_text(image, place + 2 + holdfast._get2(image, place));
    a.state := ('{held,confirmed,released,expired}'::text[])[get_byte(image, 40)];
    a.placed_at := holdfast._time(holdfast._get8(image, 16));
    a.expires_at := holdfast._time(holdfast._get8(image, 24));
    a.ended_at := holdfast._time(holdfast._get8(image, 32));
    RETURN a;
END $$;
COMMENT ON FUNCTION holdfast._hold_answer IS 'The answer with the hold in `image`, or with a status alone.';

CREATE FUNCTION holdfast._hold_show(status text, h holdfast.hold) RETURNS holdfast.hold_answer LANGUAGE sql STABLE AS
$$
    SELECT ROW(status, false, h.id, h.resource, h.requester, h.state, h.placed_at, h.expires_at, h.ended_at,
        h.reverses)::holdfast.hold_answer
$$;
COMMENT ON FUNCTION holdfast._hold_show IS 'The answer with a hold.';

CREATE FUNCTION holdfast._resource_lock(tenant text, name text) RETURNS holdfast.resource LANGUAGE plpgsql AS $$
DECLARE
    r holdfast.resource;
BEGIN
    SELECT x.* INTO r FROM holdfast.resource x
    WHERE x.tenant = _resource_lock.tenant AND x.name = _resource_lock.name FOR UPDATE;
    RETURN r;
END $$;
COMMENT ON FUNCTION holdfast._resource_lock IS 'The resource, locked; all NULL if it is not there.';

CREATE FUNCTION holdfast._resource_insert(tenant text, name text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO holdfast.resource (tenant, name, capacity, held, confirmed, open, fence, newest, created_at, number)
    VALUES (_resource_insert.tenant, _resource_insert.name, 1, 0, 0, true, 0, 0, '-infinity', 0)
    ON CONFLICT DO NOTHING;
    RETURN FOUND;
END $$;
COMMENT ON FUNCTION holdfast._resource_insert IS 'Make a resource (number 0, for the caller to fill in). False: somebody made it meanwhile.';

CREATE FUNCTION holdfast._resource_write(r holdfast.resource) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE holdfast.resource x
    SET capacity = r.capacity, held = r.held, confirmed = r.confirmed, open = r.open, fence = r.fence,
        newest = r.newest, created_at = r.created_at, number = r.number,
        due_at = CASE WHEN r.held = 0 THEN 'infinity' ELSE r.due_at END
    WHERE x.tenant = r.tenant AND x.name = r.name;
END $$;
COMMENT ON FUNCTION holdfast._resource_write IS 'Write the resource back, whose row is locked.';

CREATE FUNCTION holdfast._hold_insert(h holdfast.hold) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO holdfast.hold (ordinal, id, tenant, resource, requester, state, placed_at, expires_at, ended_at,
        previous, reverses, reversed_by)
    VALUES (h.ordinal, h.id, h.tenant, h.resource, h.requester, h.state, h.placed_at, h.expires_at, h.ended_at,
        h.previous, h.reverses, h.reversed_by);
END $$;
COMMENT ON FUNCTION holdfast._hold_insert IS 'Add a hold.';

CREATE FUNCTION holdfast._hold_fresh(r holdfast.resource) RETURNS holdfast.hold LANGUAGE plpgsql AS $$
DECLARE
    h holdfast.hold;
BEGIN
    h.ordinal := nextval('holdfast.hold_ordinal');
    h.id := holdfast._id_text(holdfast._id_raw(h.ordinal));
    h.tenant := r.tenant;
    h.resource := r.name;
    h.previous := r.newest;
    RETURN h;
END $$;
COMMENT ON FUNCTION holdfast._hold_fresh IS 'A new hold on the resource; the caller fills in the rest.';

CREATE FUNCTION holdfast.place_hold(key text, resource text, requester text, duration interval,
    fence numeric DEFAULT 0, tenant text DEFAULT '') RETURNS holdfast.hold_answer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    ms constant bigint := holdfast._duration(duration);
    given constant numeric := holdfast._fence('place_hold', fence);
    digest bytea;
    a holdfast._admitted;
    valid boolean;
    r holdfast.resource;
    h holdfast.hold;
    now timestamptz;
    number bigint;
    rows bytea[] := '{}';
    answer integer := 255;
    won holdfast._admitted;
    ready boolean := false;
    timeout text;
    since constant timestamptz := clock_timestamp();
BEGIN
    PERFORM holdfast._need('place_hold', num_nulls(key, resource, requester, duration, tenant) = 0);
    PERFORM holdfast._replicate();
    digest := sha256(holdfast._field('duration_ms', 2, holdfast._le8(ms)) ||
        CASE WHEN given = 0 THEN ''::bytea ELSE holdfast._field('fence', 2, holdfast._le8(holdfast._bits(given))) END ||
        holdfast._field('requester', 1, holdfast._bytes(requester)) ||
        holdfast._field('resource', 1, holdfast._bytes(resource)));
    a := holdfast._admit(tenant, key, 'place_hold', digest);
    IF a.status IS NOT NULL THEN
        RETURN holdfast._hold_answer(a.status, a.replayed, a.image);
    END IF;
    valid := holdfast._name_valid(resource) AND holdfast._name_valid(requester) AND holdfast._duration_valid(ms);
    WHILE NOT ready LOOP
        IF valid THEN
            r := holdfast._resource_lock(tenant, resource);
        END IF;
        ready := NOT valid OR r.name IS NOT NULL OR a.known_only;
        IF ready THEN
            a := holdfast._win(a, tenant, key, 'place_hold', digest);
        ELSE
            BEGIN -- see "The first use of a name"
                won := holdfast._win(a, tenant, key, 'place_hold', digest);
                IF won.status IS NULL THEN
                    timeout := holdfast._hurry();
                    IF NOT holdfast._resource_insert(tenant, resource) THEN
                        PERFORM holdfast._lost();
                    END IF;
                    PERFORM set_config('lock_timeout', timeout, true);
                    r := holdfast._resource_lock(tenant, resource);
                END IF;
                a := won;
                ready := true;
            EXCEPTION WHEN SQLSTATE 'HF001' OR lock_not_available THEN
                PERFORM holdfast._patience(since);
            END;
        END IF;
    END LOOP;
    IF a.status IS NOT NULL THEN
        RETURN holdfast._hold_answer(a.status, a.replayed, a.image);
    END IF;
    now := holdfast.engine_now();
    number := nextval('holdfast.journal_number');
    IF NOT valid THEN
        a.status := 'invalid-request';
    ELSE
        IF r.number = 0 THEN
            r.created_at := now;
            r.number := number;
        END IF;
        IF r.held > 0 AND r.due_at <= now THEN
            -- What is overdue is expired first, so that nobody waits for a sweeper.
            FOR h IN
                SELECT x.* FROM holdfast.hold x
                WHERE x.tenant = place_hold.tenant AND x.resource = place_hold.resource
                    AND left(x.state, 4) = 'held' -- as the index hold_held has it
                    AND x.expires_at <= now
                ORDER BY x.expires_at, x.ordinal LIMIT 8
            LOOP
                h.state := 'expired';
                h.ended_at := now;
                UPDATE holdfast.hold x SET state = h.state, ended_at = h.ended_at WHERE x.ordinal = h.ordinal;
                r.held := r.held - 1;
                rows := rows || holdfast._hold_row(h);
            END LOOP;
        END IF;
        IF r.name IS NULL THEN
            a.status := 'resource-unavailable';
        ELSIF given <> 0 AND given <= r.fence THEN
            a.status := 'stale-fence';
        ELSIF NOT r.open OR r.held + r.confirmed >= r.capacity THEN
            a.status := 'resource-unavailable';
        ELSE
            a.status := 'ok';
            h := holdfast._hold_fresh(r);
            h.requester := requester;
            h.state := 'held';
            h.placed_at := now;
            h.expires_at := holdfast._after(now, ms);
            PERFORM holdfast._hold_insert(h);
            answer := cardinality(rows);
            rows := rows || holdfast._hold_row(h);
            r.held := r.held + 1;
            r.newest := h.ordinal;
            r.due_at := least(r.due_at, h.expires_at);
            IF given <> 0 THEN
                r.fence := given;
            END IF;
        END IF;
        IF cardinality(rows) > 0 THEN
            PERFORM holdfast._resource_write(r);
            rows := rows || holdfast._resource_row(r);
        END IF;
    END IF;
    PERFORM holdfast._remember(tenant, key, 'place_hold', a.status, digest, now, a.window_ms, number,
        CASE WHEN a.status = 'ok' THEN h.ordinal END, CASE WHEN a.status = 'ok' THEN nullif(h.previous, 0) END, answer,
        rows);
    IF a.status <> 'ok' THEN
        RETURN holdfast._hold_answer(a.status, false, NULL);
    END IF;
    RETURN holdfast._hold_show('ok', h);
END $$;
COMMENT ON FUNCTION holdfast.place_hold IS 'Hold one unit of a resource for a requester, for a bounded time. ok, invalid-request, stale-fence, resource-unavailable, token-collision.';

CREATE FUNCTION holdfast._hold_end(action text, key text, hold text, tenant text) RETURNS holdfast.hold_answer
    LANGUAGE plpgsql AS $$
DECLARE
    digest bytea;
    a holdfast._admitted;
    r holdfast.resource;
    h holdfast.hold;
    found_at bigint;
    now timestamptz;
    number bigint;
    rows bytea[] := '{}';
BEGIN
    PERFORM holdfast._need(action, num_nulls(key, hold, tenant) = 0);
    PERFORM holdfast._replicate();
    digest := sha256(holdfast._field('id', 1, holdfast._bytes(translate(hold, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ',
        'abcdefghijklmnopqrstuvwxyz'))));
    a := holdfast._admit(tenant, key, action, digest);
    IF a.status IS NOT NULL THEN
        RETURN holdfast._hold_answer(a.status, a.replayed, a.image);
    END IF;
    -- The resource of a hold never changes, so it can be read before its lock; the hold is read again behind it.
    found_at := holdfast.hold_ordinal(hold);
    SELECT x.* INTO h FROM holdfast.hold x WHERE x.ordinal = found_at AND x.tenant = _hold_end.tenant;
    IF FOUND THEN
        r := holdfast._resource_lock(tenant, h.resource);
        SELECT x.* INTO h FROM holdfast.hold x WHERE x.ordinal = found_at;
    END IF;
    a := holdfast._win(a, tenant, key, action, digest);
    IF a.status IS NOT NULL THEN
        RETURN holdfast._hold_answer(a.status, a.replayed, a.image);
    END IF;
    now := holdfast.engine_now();
    number := nextval('holdfast.journal_number');
    a.status := CASE
        WHEN h.ordinal IS NULL THEN 'not-known'
        WHEN action = 'reverse' AND (h.state <> 'confirmed' OR h.reversed_by IS NOT NULL) THEN 'not-held'
        WHEN action <> 'reverse' AND h.state <> 'held' THEN 'not-held'
        WHEN action = 'confirm' AND now >= h.expires_at THEN 'window-elapsed'
        WHEN action = 'expire' AND now < h.expires_at THEN 'window-not-elapsed'
        ELSE 'ok' END;
    IF a.status = 'ok' AND action = 'reverse' THEN
        h := holdfast._hold_reverse(h, r, now);
        r.newest := h.ordinal;
        r.confirmed := r.confirmed - 1;
        rows := ARRAY[holdfast._hold_row(h), holdfast._resource_row(r),
            holdfast._row(11, holdfast._id_raw(found_at) || holdfast._id_raw(h.ordinal))];
    ELSIF a.status = 'ok' THEN
        h.state := CASE action WHEN 'confirm' THEN 'confirmed' WHEN 'release' THEN 'released' ELSE 'expired' END;
        h.ended_at := now;
        UPDATE holdfast.hold x SET state = h.state, ended_at = h.ended_at WHERE x.ordinal = h.ordinal;
        r.held := r.held - 1;
        IF action = 'confirm' THEN
            r.confirmed := r.confirmed + 1;
        END IF;
        rows := ARRAY[holdfast._hold_row(h), holdfast._resource_row(r)];
    END IF;
    IF a.status = 'ok' THEN
        PERFORM holdfast._resource_write(r);
    END IF;
    PERFORM holdfast._remember(tenant, key, action, a.status, digest, now, a.window_ms, number,
        CASE WHEN a.status = 'ok' THEN h.ordinal END, NULL, CASE WHEN a.status = 'ok' THEN 0 ELSE 255 END, rows);
    IF a.status <> 'ok' THEN
        RETURN holdfast._hold_answer(a.status, false, NULL);
    END IF;
    RETURN holdfast._hold_show('ok', h);
END $$;
COMMENT ON FUNCTION holdfast._hold_end IS 'confirm, release, expire and reverse.';

CREATE FUNCTION holdfast._hold_reverse(original holdfast.hold, r holdfast.resource, at timestamptz)
    RETURNS holdfast.hold LANGUAGE plpgsql AS $$
DECLARE
    h holdfast.hold := holdfast._hold_fresh(r);
BEGIN
    h.requester := original.requester;
    h.state := 'released';
    h.placed_at := at;
    h.ended_at := at;
    h.expires_at := holdfast._after(at, holdfast._ms(original.expires_at) - holdfast._ms(original.placed_at));
    h.reverses := original.id;
    PERFORM holdfast._hold_insert(h);
    UPDATE holdfast.hold x SET reversed_by = h.id WHERE x.ordinal = original.ordinal;
    RETURN h;
END $$;
COMMENT ON FUNCTION holdfast._hold_reverse IS 'Write the record that gives a confirmed hold back.';

CREATE FUNCTION holdfast.confirm(key text, hold text, tenant text DEFAULT '') RETURNS holdfast.hold_answer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ BEGIN RETURN holdfast._hold_end('confirm', key, hold, tenant); END $$;
COMMENT ON FUNCTION holdfast.confirm IS 'Make a hold final. ok, not-known, not-held, window-elapsed, token-collision, invalid-request.';

CREATE FUNCTION holdfast.release(key text, hold text, tenant text DEFAULT '') RETURNS holdfast.hold_answer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ BEGIN RETURN holdfast._hold_end('release', key, hold, tenant); END $$;
COMMENT ON FUNCTION holdfast.release IS 'Give a hold up. ok, not-known, not-held, token-collision, invalid-request.';

CREATE FUNCTION holdfast.expire(key text, hold text, tenant text DEFAULT '') RETURNS holdfast.hold_answer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ BEGIN RETURN holdfast._hold_end('expire', key, hold, tenant); END $$;
COMMENT ON FUNCTION holdfast.expire IS 'End a hold whose time is over. ok, not-known, not-held, window-not-elapsed, token-collision, invalid-request.';

CREATE FUNCTION holdfast.reverse(key text, hold text, tenant text DEFAULT '') RETURNS holdfast.hold_answer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ BEGIN RETURN holdfast._hold_end('reverse', key, hold, tenant); END $$;
COMMENT ON FUNCTION holdfast.reverse IS 'Give the unit of a confirmed hold back, by a new record. ok, not-known, not-held, token-collision, invalid-request.';

CREATE FUNCTION holdfast.get_hold(hold text, tenant text DEFAULT '') RETURNS holdfast.hold_answer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found_at constant bigint := holdfast.hold_ordinal(hold);
    h holdfast.hold;
BEGIN
    PERFORM holdfast._need('get_hold', num_nulls(hold, tenant) = 0);
    PERFORM holdfast._replicate();
    IF octet_length(tenant) > 64 THEN
        RETURN holdfast._hold_answer('invalid-request', false, NULL);
    END IF;
    SELECT x.* INTO h FROM holdfast.hold x WHERE x.ordinal = found_at AND x.tenant = get_hold.tenant;
    RETURN CASE WHEN FOUND THEN holdfast._hold_show('ok', h) ELSE holdfast._hold_answer('not-known', false, NULL) END;
END $$;
COMMENT ON FUNCTION holdfast.get_hold IS 'A hold as it is now. ok, not-known.';

-- ---- Resources --------------------------------------------------------------------------------------------------

CREATE FUNCTION holdfast._resource_show(status text, r holdfast.resource) RETURNS holdfast.resource_answer
    LANGUAGE sql STABLE AS
$$
    SELECT ROW(status, false, r.name, r.capacity, r.held, r.confirmed, r.open, r.fence,
        r.created_at)::holdfast.resource_answer
$$;
COMMENT ON FUNCTION holdfast._resource_show IS 'The answer with a resource, or with a status alone.';

CREATE FUNCTION holdfast.set_resource(name text, capacity integer DEFAULT NULL, open boolean DEFAULT NULL,
    tenant text DEFAULT '') RETURNS holdfast.resource_answer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    units constant integer := coalesce(capacity, 0);
    r holdfast.resource;
    changed boolean;
    now timestamptz;
    number bigint;
BEGIN
    PERFORM holdfast._need('set_resource', num_nulls(name, tenant) = 0);
    PERFORM holdfast._replicate();
    IF octet_length(tenant) > 64 OR NOT holdfast._name_valid(name) OR units NOT BETWEEN 0 AND 1000000000 THEN
        RETURN holdfast._resource_show('invalid-request', NULL);
    END IF;
    LOOP
        r := holdfast._resource_lock(tenant, name);
        EXIT WHEN r.name IS NOT NULL;
        PERFORM holdfast._resource_insert(tenant, name);
    END LOOP;
    changed := r.number = 0 OR (units <> 0 AND units <> r.capacity) OR coalesce(open, r.open) <> r.open;
    IF units <> 0 THEN
        r.capacity := units;
    END IF;
    r.open := coalesce(open, r.open);
    IF r.capacity < r.held + r.confirmed THEN
        RETURN holdfast._resource_show('resource-unavailable', NULL);
    END IF;
    IF changed THEN
        now := holdfast.engine_now();
        number := nextval('holdfast.journal_number');
        IF r.number = 0 THEN
            r.created_at := now;
            r.number := number;
        END IF;
        PERFORM holdfast._resource_write(r);
        PERFORM holdfast._journal(number, now, tenant, 'set_resource', 'ok', NULL, 0, 255, NULL, NULL,
            ARRAY[holdfast._resource_row(r)]);
    END IF;
    RETURN holdfast._resource_show('ok', r);
END $$;
COMMENT ON FUNCTION holdfast.set_resource IS 'Make or change a resource; NULL (or capacity 0) leaves what it has. ok, invalid-request, resource-unavailable (capacity below what is taken).';

CREATE FUNCTION holdfast.get_resource(name text, tenant text DEFAULT '') RETURNS holdfast.resource_answer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    r holdfast.resource;
BEGIN
    PERFORM holdfast._need('get_resource', num_nulls(name, tenant) = 0);
    PERFORM holdfast._replicate();
    IF octet_length(tenant) > 64 OR NOT holdfast._name_valid(name) THEN
        RETURN holdfast._resource_show('invalid-request', NULL);
    END IF;
    SELECT x.* INTO r FROM holdfast.resource x WHERE x.tenant = get_resource.tenant AND x.name = get_resource.name;
    RETURN holdfast._resource_show(CASE WHEN FOUND THEN 'ok' ELSE 'not-known' END, r);
END $$;
COMMENT ON FUNCTION holdfast.get_resource IS 'A resource as it is now. ok, not-known, invalid-request.';

-- ---- Guards -----------------------------------------------------------------------------------------------------

CREATE FUNCTION holdfast._foreign(identity text) RETURNS boolean LANGUAGE sql IMMUTABLE AS
$$
    SELECT identity COLLATE "C" ~
            '[^\u0001-\u007f\u0080-\u0377\u037a-\u037f\u0384-\u038a\u038c\u038e-\u03a1\u03a3-\u052f\u0531-\u0556\u0559-\u058a'
            '\u058d-\u058f\u0591-\u05c7\u05d0-\u05ea\u05ef-\u05f4\u061e-\u070d\u074d-\u07b1\u08d3-\u0983'
            '\u0f00-\u0f47\u1000-\u10c5\u10d0-\u1248\u1318-\u135a\u13a0-\u13f5\u1400-\u169c\u16a0-\u16f8'
            '\u1780-\u17dd\u1820-\u1878\u18b0-\u18f5\u1a1e-\u1a5e\u1b00-\u1b4b\u1b80-\u1bf3\u1d00-\u1df9'
            '\u1dfb-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d'
            '\u1f80-\u1fb4\u1fb6-\u1fc4\u1fc6-\u1fd3\u1fd6-\u1fdb\u1fdd-\u1fef\u1ff2-\u1ff4\u1ff6-\u1ffe'
            '\u2000-\u2064\u2066-\u2071\u2074-\u208e\u2090-\u209c\u20a0-\u20bf\u20d0-\u20f0\u2100-\u218b'
            '\u2190-\u2426\u2440-\u244a\u2460-\u2b73\u2b76-\u2b95\u2b97-\u2c2e\u2c30-\u2c5e\u2c60-\u2cf3'
            '\u2cf9-\u2d25\u2d27\u2d2d\u2d30-\u2d67\u2d6f-\u2d70\u2d7f-\u2d96\u2da0-\u2da6\u2da8-\u2dae'
            '\u2db0-\u2db6\u2db8-\u2dbe\u2dc0-\u2dc6\u2dc8-\u2dce\u2dd0-\u2dd6\u2dd8-\u2dde\u2de0-\u2e52'
            '\u2e80-\u2e99\u2e9b-\u2ef3\u2f00-\u2fd5\u2ff0-\u2ffb\u3000-\u303f\u3041-\u3096\u3099-\u30ff'
            '\u3105-\u312f\u3131-\u318e\u3190-\u31e3\u31f0-\u321e\u3220-\u9ffc\ua000-\ua48c\ua4d0-\ua62b'
            '\ua640-\ua6f7\ua700-\ua7bf\ua880-\ua8c5\ua8e0-\ua953\ua980-\ua9cd\uaa5c-\uaac2\uab70-\uabed'
            '\uac00-\ud7a3\uf900-\ufa6d\ufa70-\ufad9\ufb46-\ufbc1\ufbd3-\ufd3f\ufd50-\ufd8f\ufe76-\ufefc'
            '\uff01-\uffbe\U00010080-\U000100fa\U00010137-\U0001018e\U00010400-\U0001049d\U00010600-\U00010736'
            '\U00010857-\U0001089e\U00010a60-\U00010a9f\U00010c00-\U00010c48\U00011000-\U0001104d'
            '\U0001107f-\U000110c1\U00011180-\U000111df\U00011400-\U0001145b\U00011480-\U000114c7'
            '\U00011600-\U00011644\U000118a0-\U000118f2\U00011a00-\U00011a47\U00011a50-\U00011aa2'
            '\U00011fff-\U00012399\U00012400-\U0001246e\U00012480-\U00012543\U00013000-\U0001342e'
            '\U00014400-\U00014646\U00016800-\U00016a38\U00016b00-\U00016b45\U00016e40-\U00016e9a'
            '\U00016f00-\U00016f4a\U00017000-\U000187f7\U00018800-\U00018cd5\U0001b000-\U0001b11e'
            '\U0001b170-\U0001b2fb\U0001bc00-\U0001bc6a\U0001d000-\U0001d0f5\U0001d129-\U0001d1e8'
            '\U0001d200-\U0001d245\U0001d300-\U0001d356\U0001d400-\U0001d454\U0001d456-\U0001d49c'
            '\U0001d4c5-\U0001d505\U0001d552-\U0001d6a5\U0001d6a8-\U0001d7cb\U0001d7ce-\U0001da8b'
            '\U0001e800-\U0001e8c4\U0001e900-\U0001e94b\U0001ec71-\U0001ecb4\U0001f030-\U0001f093'
            '\U0001f100-\U0001f1ad\U0001f300-\U0001f6d7\U0001f700-\U0001f773\U0001f780-\U0001f7d8'
            '\U0001f900-\U0001f978\U0001f97a-\U0001f9cb\U0001f9cd-\U0001fa53\U0001fb00-\U0001fb92'
            '\U00020000-\U0002a6dd\U0002a700-\U0002b734\U0002b740-\U0002b81d\U0002b820-\U0002cea1]'
$$;
COMMENT ON FUNCTION holdfast._foreign IS 'Has it characters outside those that Unicode 13 has in its larger blocks? Of those that it has, the normal form never changes, so that this database and a server agree whatever their versions are; of others nothing is sure.';

CREATE FUNCTION holdfast._fold(identity text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    -- Latin, Greek, Cyrillic and Armenian, as they are after decomposition: each letter and what it is folded to.
    many constant text :=
            E'\u00b5\u00c6\u00d0\u00d8\u00de\u0110\u0126\u0132\u013f\u0141\u014a\u0152\u0166\u017f\u0181\u0182'
            '\u0184\u0186\u0187\u0189\u018a\u018b\u018e\u018f\u0190\u0191\u0193\u0194\u0196\u0197\u0198\u019c'
            '\u019d\u019f\u01a2\u01a4\u01a6\u01a7\u01a9\u01ac\u01ae\u01b1\u01b2\u01b3\u01b5\u01b7\u01b8\u01bc'
            '\u01c4\u01c5\u01c7\u01c8\u01ca\u01cb\u01e4\u01f1\u01f2\u01f6\u01f7\u021c\u0220\u0222\u0224\u023a'
            '\u023b\u023d\u023e\u0241\u0243\u0244\u0245\u0246\u0248\u024a\u024c\u024e\u0345\u0370\u0372\u0376'
            '\u037f\u0391\u0392\u0393\u0394\u0395\u0396\u0397\u0398\u0399\u039a\u039b\u039c\u039d\u039e\u039f'
            '\u03a0\u03a1\u03a3\u03a4\u03a5\u03a6\u03a7\u03a8\u03a9\u03c2\u03cf\u03d0\u03d1\u03d5\u03d6\u03d8'
            '\u03da\u03dc\u03de\u03e0\u03e2\u03e4\u03e6\u03e8\u03ea\u03ec\u03ee\u03f0\u03f1\u03f4\u03f5\u03f7'
            '\u03f9\u03fa\u03fd\u03fe\u03ff\u0402\u0404\u0405\u0406\u0408\u0409\u040a\u040b\u040f\u0410\u0411'
            '\u0412\u0413\u0414\u0415\u0416\u0417\u0418\u041a\u041b\u041c\u041d\u041e\u041f\u0420\u0421\u0422'
            '\u0423\u0424\u0425\u0426\u0427\u0428\u0429\u042a\u042b\u042c\u042d\u042e\u042f\u0460\u0462\u0464'
            '\u0466\u0468\u046a\u046c\u046e\u0470\u0472\u0474\u0478\u047a\u047c\u047e\u0480\u048a\u048c\u048e'
            '\u0490\u0492\u0494\u0496\u0498\u049a\u049c\u049e\u04a0\u04a2\u04a4\u04a6\u04a8\u04aa\u04ac\u04ae'
            '\u04b0\u04b2\u04b4\u04b6\u04b8\u04ba\u04bc\u04be\u04c0\u04c3\u04c5\u04c7\u04c9\u04cb\u04cd\u04d4'
            '\u04d8\u04e0\u04e8\u04f6\u04fa\u04fc\u04fe\u0500\u0502\u0504\u0506\u0508\u050a\u050c\u050e\u0510'
            '\u0512\u0514\u0516\u0518\u051a\u051c\u051e\u0520\u0522\u0524\u0526\u0528\u052a\u052c\u052e\u0531'
            '\u0532\u0533\u0534\u0535\u0536\u0537\u0538\u0539\u053a\u053b\u053c\u053d\u053e\u053f\u0540\u0541'
            '\u0542\u0543\u0544\u0545\u0546\u0547\u0548\u0549\u054a\u054b\u054c\u054d\u054e\u054f\u0550\u0551'
            '\u0552\u0553\u0554\u0555\u0556\u1efa\u1efc\u1efe';
    one constant text :=
            E'\u03bc\u00e6\u00f0\u00f8\u00fe\u0111\u0127\u0133\u0140\u0142\u014b\u0153\u0167\u0073\u0253\u0183'
            '\u0185\u0254\u0188\u0256\u0257\u018c\u01dd\u0259\u025b\u0192\u0260\u0263\u0269\u0268\u0199\u026f'
            '\u0272\u0275\u01a3\u01a5\u0280\u01a8\u0283\u01ad\u0288\u028a\u028b\u01b4\u01b6\u0292\u01b9\u01bd'
            '\u01c6\u01c6\u01c9\u01c9\u01cc\u01cc\u01e5\u01f3\u01f3\u0195\u01bf\u021d\u019e\u0223\u0225\u2c65'
            '\u023c\u019a\u2c66\u0242\u0180\u0289\u028c\u0247\u0249\u024b\u024d\u024f\u03b9\u0371\u0373\u0377'
            '\u03f3\u03b1\u03b2\u03b3\u03b4\u03b5\u03b6\u03b7\u03b8\u03b9\u03ba\u03bb\u03bc\u03bd\u03be\u03bf'
            '\u03c0\u03c1\u03c3\u03c4\u03c5\u03c6\u03c7\u03c8\u03c9\u03c3\u03d7\u03b2\u03b8\u03c6\u03c0\u03d9'
            '\u03db\u03dd\u03df\u03e1\u03e3\u03e5\u03e7\u03e9\u03eb\u03ed\u03ef\u03ba\u03c1\u03b8\u03b5\u03f8'
            '\u03f2\u03fb\u037b\u037c\u037d\u0452\u0454\u0455\u0456\u0458\u0459\u045a\u045b\u045f\u0430\u0431'
            '\u0432\u0433\u0434\u0435\u0436\u0437\u0438\u043a\u043b\u043c\u043d\u043e\u043f\u0440\u0441\u0442'
            '\u0443\u0444\u0445\u0446\u0447\u0448\u0449\u044a\u044b\u044c\u044d\u044e\u044f\u0461\u0463\u0465'
            '\u0467\u0469\u046b\u046d\u046f\u0471\u0473\u0475\u0479\u047b\u047d\u047f\u0481\u048b\u048d\u048f'
            '\u0491\u0493\u0495\u0497\u0499\u049b\u049d\u049f\u04a1\u04a3\u04a5\u04a7\u04a9\u04ab\u04ad\u04af'
            '\u04b1\u04b3\u04b5\u04b7\u04b9\u04bb\u04bd\u04bf\u04cf\u04c4\u04c6\u04c8\u04ca\u04cc\u04ce\u04d5'
            '\u04d9\u04e1\u04e9\u04f7\u04fb\u04fd\u04ff\u0501\u0503\u0505\u0507\u0509\u050b\u050d\u050f\u0511'
            '\u0513\u0515\u0517\u0519\u051b\u051d\u051f\u0521\u0523\u0525\u0527\u0529\u052b\u052d\u052f\u0561'
            '\u0562\u0563\u0564\u0565\u0566\u0567\u0568\u0569\u056a\u056b\u056c\u056d\u056e\u056f\u0570\u0571'
            '\u0572\u0573\u0574\u0575\u0576\u0577\u0578\u0579\u057a\u057b\u057c\u057d\u057e\u057f\u0580\u0581'
            '\u0582\u0583\u0584\u0585\u0586\u1efb\u1efd\u1eff';
    apart text := normalize(identity, NFD);
BEGIN
    -- Letters of other scripts that have a case.
    IF apart COLLATE "C" ~
            '[\u10a0-\u10c5\u2132\u2160-\u216f\u2183\u24b6-\u24cf\u2c00-\u2c2e\u2c60-\u2c64\u2c67-\u2c72\u2c75'
            '\u2c7e-\u2ce2\u2ceb-\u2ced\u2cf2\ua640-\ua66c\ua680-\ua69a\ua722-\ua72e\ua732-\ua76e\ua779-\ua786'
            '\ua78b-\ua78d\ua790-\ua792\ua796-\ua7be\uab70-\uabbf\uff21-\uff3a\U00010400-\U00010427'
            '\U000118a0-\U000118bf\U00016e40-\U00016e5f\U0001e900-\U0001e921]'
    THEN
        RETURN NULL;
    END IF;
    apart := translate(lower(apart COLLATE "C"), many, one);
    apart := replace(replace(apart, E'\u00df', 'ss'), E'\u1e9e', 'ss');
    apart := replace(replace(replace(apart, E'\u0149', E'\u02bcn'), E'\u0587', E'\u0565\u0582'), E'\u1e9a', E'a\u02be');
    RETURN normalize(apart, NFC);
END $$;
COMMENT ON FUNCTION holdfast._fold IS 'Unicode case folding of what is not _foreign; NULL where it is not known here.';

CREATE FUNCTION holdfast._match(match text, identity bytea) RETURNS bytea LANGUAGE plpgsql STABLE AS $$
DECLARE
    -- Unicode's property White_Space.
    spaces constant text := E'\t\n\x0b\x0c\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008'
        '\u2009\u200a\u2028\u2029\u202f\u205f\u3000';
    form bytea := identity;
    step text;
    t text;
BEGIN
    FOREACH step IN ARRAY string_to_array(match, ',') LOOP
        IF step = 'hash' THEN
            form := sha256(form);
        ELSIF step <> 'exact' THEN
            t := holdfast._match_text(match, form);
            IF t IS NULL THEN
                RETURN NULL;
            END IF;
            IF step <> 'trim' AND holdfast._foreign(t) THEN
                t := NULL;
            ELSIF step = 'trim' THEN
                t := btrim(t, spaces);
            ELSIF step = 'casefold' THEN
                t := holdfast._fold(t);
            ELSE
                t := regexp_replace(normalize(t, NFC), '[' || spaces || ']+', ' ', 'g');
            END IF;
            IF t IS NULL THEN
                RAISE EXCEPTION 'the match rule % cannot be applied here to an identity with such characters: ask a server',
                    match USING ERRCODE = 'feature_not_supported';
            END IF;
            form := holdfast._bytes(t);
        END IF;
        IF length(form) = 0 THEN
            RETURN NULL;
        END IF;
    END LOOP;
    RETURN CASE WHEN length(form) <= 1024 THEN form END;
END $$;
COMMENT ON FUNCTION holdfast._match IS 'The identity as it is compared under a match rule (src/core/match.c); NULL if it is not valid. What cannot be done exactly as a server does it is an error.';

CREATE FUNCTION holdfast._match_text(match text, identity bytea) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF position(E'\\x00'::bytea IN identity) > 0 THEN
        RAISE EXCEPTION 'the match rule % cannot be applied here to an identity with a NUL: ask a server', match
            USING ERRCODE = 'feature_not_supported';
    END IF;
    RETURN convert_from(identity, 'UTF8');
EXCEPTION WHEN character_not_in_repertoire THEN
    RETURN NULL;
END $$;
COMMENT ON FUNCTION holdfast._match_text IS 'The identity as text; NULL if it is not valid UTF-8.';

CREATE FUNCTION holdfast._guard_show(status text, g holdfast.guard) RETURNS holdfast.guard_answer LANGUAGE sql STABLE AS
$$
    SELECT ROW(status, false, g.name, g.window_ms, g.match, g.on_unavailable, g.durable,
        g.created_at)::holdfast.guard_answer
$$;
COMMENT ON FUNCTION holdfast._guard_show IS 'The answer with a guard, or with a status alone.';

CREATE FUNCTION holdfast.set_guard(name text, window_length interval, match text DEFAULT '',
    on_unavailable text DEFAULT 'open', durable boolean DEFAULT true, tenant text DEFAULT '')
    RETURNS holdfast.guard_answer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    ms constant bigint := holdfast._duration(window_length);
    steps constant integer[] := holdfast._steps(match);
    was holdfast.guard;
    g holdfast.guard;
    now timestamptz;
    number bigint;
BEGIN
    PERFORM holdfast._need('set_guard', num_nulls(name, window_length, match, on_unavailable, durable, tenant) = 0);
    PERFORM holdfast._replicate();
    IF octet_length(tenant) > 64 OR NOT holdfast._name_valid(name) OR NOT holdfast._duration_valid(ms)
        OR cardinality(steps) > 4 OR array_position(steps, NULL) IS NOT NULL
        OR cardinality(steps) <> (SELECT count(DISTINCT s) FROM unnest(steps) s)
        OR array_position(steps, 5) < cardinality(steps) OR on_unavailable NOT IN ('open', 'closed') THEN
        RETURN holdfast._guard_show('invalid-request', NULL);
    END IF;
    SELECT x.* INTO was FROM holdfast.guard x WHERE x.tenant = set_guard.tenant AND x.name = set_guard.name;
    g := ROW(tenant, name, ms, match, on_unavailable, durable, was.created_at, was.number);
    IF g IS NOT DISTINCT FROM was THEN
        RETURN holdfast._guard_show('ok', g);
    END IF;
    -- Who goes by a guard keeps its rules until the end of its transaction, functions by a lock of its row, and servers by a lock
    -- of its name: what is decided by the old rules stands in the journal before the new ones, and what stands behind them goes by
    -- these.
    PERFORM pg_advisory_xact_lock(1213808981, hashtext(set_guard.tenant || chr(31) || set_guard.name));
    LOOP
        SELECT x.* INTO was FROM holdfast.guard x
        WHERE x.tenant = set_guard.tenant AND x.name = set_guard.name FOR UPDATE;
        EXIT WHEN FOUND;
        INSERT INTO holdfast.guard (tenant, name, window_ms, match, on_unavailable, durable, created_at, number)
        VALUES (set_guard.tenant, set_guard.name, 0, '', '', false, '-infinity', 0)
        ON CONFLICT DO NOTHING;
    END LOOP;
    g := ROW(tenant, name, ms, match, on_unavailable, durable, was.created_at, was.number);
    IF g IS NOT DISTINCT FROM was THEN
        RETURN holdfast._guard_show('ok', g);
    END IF;
    now := holdfast.engine_now();
    number := nextval('holdfast.journal_number');
    IF g.number = 0 THEN
        g.created_at := now;
        g.number := number;
    END IF;
    UPDATE holdfast.guard x
    SET window_ms = g.window_ms, match = g.match, on_unavailable = g.on_unavailable, durable = g.durable,
        created_at = g.created_at, number = g.number
    WHERE x.tenant = g.tenant AND x.name = g.name;
    PERFORM holdfast._journal(number, now, tenant, 'set_guard', 'ok', NULL, 0, 255, NULL, NULL,
        ARRAY[holdfast._guard_row(g)]);
    RETURN holdfast._guard_show('ok', g);
END $$;
COMMENT ON FUNCTION holdfast.set_guard IS 'Make or change a guard. match: empty (byte for byte), or steps out of exact, trim, casefold, normalize and hash (last), with commas between them. ok, invalid-request.';

CREATE FUNCTION holdfast.get_guard(name text, tenant text DEFAULT '') RETURNS holdfast.guard_answer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    g holdfast.guard;
BEGIN
    PERFORM holdfast._need('get_guard', num_nulls(name, tenant) = 0);
    PERFORM holdfast._replicate();
    IF octet_length(tenant) > 64 OR NOT holdfast._name_valid(name) THEN
        RETURN holdfast._guard_show('invalid-request', NULL);
    END IF;
    SELECT x.* INTO g FROM holdfast.guard x WHERE x.tenant = get_guard.tenant AND x.name = get_guard.name;
    RETURN holdfast._guard_show(CASE WHEN FOUND THEN 'ok' ELSE 'not-known' END, g);
END $$;
COMMENT ON FUNCTION holdfast.get_guard IS 'A guard and its rules. ok, not-known, invalid-request.';

CREATE FUNCTION holdfast._seen(status text, seen boolean, e holdfast.guard_entry) RETURNS holdfast.seen_answer
    LANGUAGE sql STABLE AS
$$ SELECT ROW(status, false, seen, e.recorded_at, e.expires_at, e.result)::holdfast.seen_answer $$;
COMMENT ON FUNCTION holdfast._seen IS 'The answer of a guard.';

CREATE FUNCTION holdfast._ask(action text, guard text, identity bytea, result bytea, tenant text)
    RETURNS holdfast.seen_answer LANGUAGE plpgsql AS $$
DECLARE
    g holdfast.guard;
    e holdfast.guard_entry;
    form bytea;
    number bigint;
BEGIN
    PERFORM holdfast._need(action, num_nulls(guard, identity, tenant) = 0);
    PERFORM holdfast._replicate();
    IF octet_length(tenant) > 64 OR NOT holdfast._name_valid(guard) OR length(identity) NOT BETWEEN 1 AND 1024
        OR length(result) > 65536 THEN
        RETURN holdfast._seen('invalid-request', NULL, NULL);
    END IF;
    IF action = 'check' THEN
        SELECT x.* INTO g FROM holdfast.guard x WHERE x.tenant = _ask.tenant AND x.name = _ask.guard;
    ELSE
        SELECT x.* INTO g FROM holdfast.guard x WHERE x.tenant = _ask.tenant AND x.name = _ask.guard FOR SHARE;
    END IF;
    IF NOT FOUND THEN
        RETURN holdfast._seen('not-known', NULL, NULL);
    END IF;
    form := holdfast._match(g.match, identity);
    IF form IS NULL THEN
        RETURN holdfast._seen('invalid-request', NULL, NULL);
    END IF;
    LOOP
        SELECT x.* INTO e FROM holdfast.guard_entry x
        WHERE x.tenant = _ask.tenant AND x.guard = _ask.guard AND x.identity = form;
        IF FOUND AND e.expires_at > holdfast.engine_now() THEN
            RETURN holdfast._seen('ok', true, e);
        ELSIF action = 'check' THEN
            RETURN holdfast._seen('ok', false, NULL);
        ELSIF FOUND THEN
            SELECT x.* INTO e FROM holdfast.guard_entry x
            WHERE x.tenant = _ask.tenant AND x.guard = _ask.guard AND x.identity = form FOR UPDATE;
            CONTINUE WHEN NOT FOUND OR e.expires_at > holdfast.engine_now();
            EXIT;
        END IF;
        INSERT INTO holdfast.guard_entry (tenant, guard, identity, recorded_at, expires_at, number)
        VALUES (_ask.tenant, _ask.guard, form, '-infinity', '-infinity', 0)
        ON CONFLICT DO NOTHING;
        EXIT WHEN FOUND;
    END LOOP;
    e := ROW(tenant, guard, form, result, holdfast.engine_now(), NULL, nextval('holdfast.journal_number'));
    e.expires_at := holdfast._after(e.recorded_at, g.window_ms);
    UPDATE holdfast.guard_entry x
    SET result = e.result, recorded_at = e.recorded_at, expires_at = e.expires_at, number = e.number
    WHERE x.tenant = e.tenant AND x.guard = e.guard AND x.identity = e.identity;
    PERFORM holdfast._journal(e.number, e.recorded_at, tenant, action, 'ok', NULL, 0, 255, NULL, NULL,
        ARRAY[holdfast._identity_row(e)]);
    RETURN holdfast._seen('ok', false, NULL);
END $$;
COMMENT ON FUNCTION holdfast._ask IS 'check, record and admit.';

CREATE FUNCTION holdfast.check_seen(guard text, identity bytea, tenant text DEFAULT '') RETURNS holdfast.seen_answer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ BEGIN RETURN holdfast._ask('check', guard, identity, NULL, tenant); END $$;
COMMENT ON FUNCTION holdfast.check_seen(text, bytea, text) IS 'Is the identity under guard? Changes nothing. ok, not-known (no such guard), invalid-request.';

CREATE FUNCTION holdfast.check_seen(guard text, identity text, tenant text DEFAULT '') RETURNS holdfast.seen_answer
    LANGUAGE sql AS $$ SELECT holdfast.check_seen(guard, pg_catalog.convert_to(identity, 'UTF8'), tenant) $$;
COMMENT ON FUNCTION holdfast.check_seen(text, text, text) IS 'The same with text.';

CREATE FUNCTION holdfast.record(guard text, identity bytea, result bytea DEFAULT NULL, tenant text DEFAULT '')
    RETURNS holdfast.seen_answer LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ BEGIN RETURN holdfast._ask('record', guard, identity, result, tenant); END $$;
COMMENT ON FUNCTION holdfast.record(text, bytea, bytea, text) IS 'Put the identity under guard, with a result; changes nothing if it is. ok, not-known (no such guard), invalid-request.';

CREATE FUNCTION holdfast.record(guard text, identity text, result text DEFAULT NULL, tenant text DEFAULT '')
    RETURNS holdfast.seen_answer LANGUAGE sql AS
$$
    SELECT holdfast.record(guard, pg_catalog.convert_to(identity, 'UTF8'), pg_catalog.convert_to(result, 'UTF8'),
        tenant)
$$;
COMMENT ON FUNCTION holdfast.record(text, text, text, text) IS 'The same with text.';

-- Without a default, so that a call without a result is still only one of the others.
CREATE FUNCTION holdfast.record(guard text, identity text, result bytea, tenant text DEFAULT '')
    RETURNS holdfast.seen_answer LANGUAGE sql AS
$$ SELECT holdfast.record(guard, pg_catalog.convert_to(identity, 'UTF8'), result, tenant) $$;
COMMENT ON FUNCTION holdfast.record(text, text, bytea, text) IS 'The same with an identity that is text and a result of any bytes, such as json makes.';

CREATE FUNCTION holdfast.admit(guard text, identity bytea, result bytea DEFAULT NULL, tenant text DEFAULT '')
    RETURNS holdfast.seen_answer LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ BEGIN RETURN holdfast._ask('admit', guard, identity, result, tenant); END $$;
COMMENT ON FUNCTION holdfast.admit(text, bytea, bytea, text) IS 'Check and record in one step: seen false tells the one who may go on. ok, not-known (no such guard), invalid-request.';

CREATE FUNCTION holdfast.admit(guard text, identity text, result text DEFAULT NULL, tenant text DEFAULT '')
    RETURNS holdfast.seen_answer LANGUAGE sql AS
$$
    SELECT holdfast.admit(guard, pg_catalog.convert_to(identity, 'UTF8'), pg_catalog.convert_to(result, 'UTF8'), tenant)
$$;
COMMENT ON FUNCTION holdfast.admit(text, text, text, text) IS 'The same with text.';

-- Without a default, so that a call without a result is still only one of the others.
CREATE FUNCTION holdfast.admit(guard text, identity text, result bytea, tenant text DEFAULT '')
    RETURNS holdfast.seen_answer LANGUAGE sql AS
$$ SELECT holdfast.admit(guard, pg_catalog.convert_to(identity, 'UTF8'), result, tenant) $$;
COMMENT ON FUNCTION holdfast.admit(text, text, bytea, text) IS 'The same with an identity that is text and a result of any bytes, such as json makes.';

-- ---- Claims -----------------------------------------------------------------------------------------------------

CREATE FUNCTION holdfast._claim_show(status text, replayed boolean, c holdfast.token, at timestamptz)
    RETURNS holdfast.claim_answer LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN ROW(status, replayed, holdfast._key_text(c.key),
        CASE WHEN c.state = 'started' AND at >= c.lease_expires_at THEN 'unknown' ELSE c.state END,
        c.on_abandon, c.fence, c.lease_ms, c.recorded_at, c.lease_expires_at, c.settled_at,
        CASE WHEN c.state <> 'started' THEN c.expires_at END,
        CASE WHEN c.state <> 'started' THEN coalesce(c.response, ''::bytea) END)::holdfast.claim_answer;
END $$;
COMMENT ON FUNCTION holdfast._claim_show IS 'The answer with a claim as it stands at that time, or with a status alone.';

CREATE FUNCTION holdfast._claim_write(c holdfast.token, action text, at timestamptz) RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    number constant bigint := nextval('holdfast.journal_number');
BEGIN
    UPDATE holdfast.token t
    SET action = 'begin', status = 'ok', digest = c.digest, recorded_at = c.recorded_at, expires_at = c.expires_at,
        entry = number, hold = NULL, previous = NULL, state = c.state, on_abandon = c.on_abandon, fence = c.fence, lease_ms = c.lease_ms,
        lease_expires_at = c.lease_expires_at, settled_at = c.settled_at, response = c.response
    WHERE t.tenant = c.tenant AND t.key = c.key;
    PERFORM holdfast._journal(number, at, c.tenant, action, 'ok', holdfast._key_text(c.key), 0, 255, NULL, NULL,
        ARRAY[holdfast._claim_row(c)]);
END $$;
COMMENT ON FUNCTION holdfast._claim_write IS 'Write the claim, whose row is locked.';

CREATE FUNCTION holdfast._begin_meets(c holdfast.token, fingerprint bytea, at timestamptz) RETURNS text
    LANGUAGE sql IMMUTABLE AS
$$
    SELECT CASE
        WHEN c.action <> 'begin' OR c.digest <> fingerprint THEN 'token-collision'
        WHEN c.state IN ('completed', 'failed') THEN 'ok'
        WHEN c.state = 'started' AND at < c.lease_expires_at THEN 'in-progress'
        WHEN c.state = 'started' AND c.on_abandon = 'unknown' THEN 'outcome-unknown' END
$$;
COMMENT ON FUNCTION holdfast._begin_meets IS 'What a begin is answered with where the key is taken; NULL: it may begin again.';

CREATE FUNCTION holdfast.begin_with_fingerprint(key text, fingerprint bytea, lease interval DEFAULT NULL,
    on_abandon text DEFAULT 'unknown', tenant text DEFAULT '') RETURNS holdfast.claim_answer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    rules constant holdfast.store := holdfast._rules();
    ms constant bigint := coalesce(nullif(holdfast._duration(lease), 0), 60000);
    k constant text := holdfast._key_column(key);
    owner record;
    c holdfast.token;
    now timestamptz;
    meets text;
BEGIN
    PERFORM holdfast._need('begin', num_nulls(key, fingerprint, on_abandon, tenant) = 0);
    PERFORM holdfast._replicate();
    IF length(fingerprint) <> 32 THEN
        RAISE EXCEPTION 'holdfast.begin_with_fingerprint: a fingerprint has 32 bytes, this one %', length(fingerprint)
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF octet_length(tenant) > 64 OR octet_length(key) NOT BETWEEN 1 AND rules.token_max_length
        OR NOT holdfast._duration_valid(ms) OR on_abandon NOT IN ('unknown', 'retry') THEN
        RETURN holdfast._claim_show('invalid-request', false, NULL, NULL);
    END IF;
    LOOP
        owner := holdfast._key_look(tenant, k);
        EXIT WHEN owner.locked;
        IF NOT owner.alive THEN
            EXIT WHEN holdfast._key_insert(tenant, k);
            CONTINUE;
        END IF;
        c := owner.first;
        now := holdfast.engine_now();
        meets := holdfast._begin_meets(c, fingerprint, now);
        IF meets IS NULL THEN
            SELECT t.* INTO c FROM holdfast.token t
            WHERE t.tenant = begin_with_fingerprint.tenant AND t.key = k FOR UPDATE;
            CONTINUE WHEN NOT FOUND;
            now := holdfast.engine_now();
            EXIT WHEN c.expires_at <= now;
            meets := holdfast._begin_meets(c, fingerprint, now);
            EXIT WHEN meets IS NULL;
        END IF;
        IF meets = 'token-collision' THEN
            c := NULL;
        END IF;
        RETURN holdfast._claim_show(meets, meets = 'ok', c, now);
    END LOOP;
    now := holdfast.engine_now();
    c := NULL;
    c.tenant := tenant;
    c.key := k;
    c.digest := fingerprint;
    c.recorded_at := now;
    c.expires_at := 'infinity';
    c.state := 'started';
    c.on_abandon := on_abandon;
    c.fence := nextval('holdfast.fence');
    c.lease_ms := ms;
    c.lease_expires_at := holdfast._after(now, ms);
    PERFORM holdfast._claim_write(c, 'begin', now);
    RETURN holdfast._claim_show('ok', false, c, now);
END $$;
COMMENT ON FUNCTION holdfast.begin_with_fingerprint IS 'As begin, with the SHA-256 of the payload instead of the payload.';

CREATE FUNCTION holdfast.begin(key text, payload bytea, lease interval DEFAULT NULL, on_abandon text DEFAULT 'unknown',
    tenant text DEFAULT '') RETURNS holdfast.claim_answer LANGUAGE sql AS
$$ SELECT holdfast.begin_with_fingerprint(key, pg_catalog.sha256(payload), lease, on_abandon, tenant) $$;
COMMENT ON FUNCTION holdfast.begin(text, bytea, interval, text, text) IS 'Reserve the key for an effect. ok and state started: do it, then complete or fail with the fence. ok and replayed: it is done, here is the response. Else in-progress, outcome-unknown, token-collision, invalid-request. lease: 60 seconds if not given.';

CREATE FUNCTION holdfast.begin(key text, payload text, lease interval DEFAULT NULL, on_abandon text DEFAULT 'unknown',
    tenant text DEFAULT '') RETURNS holdfast.claim_answer LANGUAGE sql AS
$$
    SELECT holdfast.begin_with_fingerprint(key, pg_catalog.sha256(pg_catalog.convert_to(payload, 'UTF8')), lease,
        on_abandon, tenant)
$$;
COMMENT ON FUNCTION holdfast.begin(text, text, interval, text, text) IS 'The same with text, which is "fingerprint" over HTTP. For what is "payload" there, see payload.';

CREATE FUNCTION holdfast._settle(action text, key text, fence bigint, state text, response bytea, ms bigint,
    tenant text) RETURNS holdfast.claim_answer LANGUAGE plpgsql AS $$
DECLARE
    rules constant holdfast.store := holdfast._rules();
    c holdfast.token;
    now timestamptz;
BEGIN
    PERFORM holdfast._need(action, num_nulls(key, fence, state, response, tenant) = 0);
    PERFORM holdfast._replicate();
    IF octet_length(tenant) > 64 OR octet_length(key) NOT BETWEEN 1 AND rules.token_max_length OR fence <= 0
        OR length(response) > 1048576 OR (ms <> 0 AND NOT holdfast._duration_valid(ms)) THEN
        RETURN holdfast._claim_show('invalid-request', false, NULL, NULL);
    END IF;
    SELECT t.* INTO c FROM holdfast.token t
    WHERE t.tenant = _settle.tenant AND t.key = holdfast._key_column(_settle.key) FOR UPDATE;
    now := holdfast.engine_now();
    IF c.key IS NULL OR c.action <> 'begin' OR c.expires_at <= now THEN
        RETURN holdfast._claim_show('not-known', false, NULL, NULL);
    ELSIF fence <> c.fence THEN
        RETURN holdfast._claim_show(CASE WHEN fence > c.fence THEN 'invalid-request' ELSE 'stale-fence' END, false, c,
            now);
    ELSIF c.state <> 'started' AND action = 'heartbeat' THEN
        RETURN holdfast._claim_show('not-held', false, NULL, NULL);
    ELSIF c.state <> 'started' THEN
        IF c.state = state AND coalesce(c.response, ''::bytea) = response THEN
            RETURN holdfast._claim_show('ok', true, c, now);
        END IF;
        RETURN holdfast._claim_show('token-collision', false, NULL, NULL);
    END IF;
    c.state := state;
    IF action = 'heartbeat' THEN
        c.lease_ms := coalesce(nullif(ms, 0), c.lease_ms);
        c.lease_expires_at := holdfast._after(now, c.lease_ms);
    ELSE
        c.settled_at := now;
        c.expires_at := holdfast._after(now, rules.idempotency_window_ms);
        c.response := nullif(response, ''::bytea);
    END IF;
    PERFORM holdfast._claim_write(c, action, now);
    RETURN holdfast._claim_show('ok', false, c, now);
END $$;
COMMENT ON FUNCTION holdfast._settle IS 'complete, fail and heartbeat.';

CREATE FUNCTION holdfast.complete(key text, fence bigint, response bytea, tenant text DEFAULT '')
    RETURNS holdfast.claim_answer LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ BEGIN RETURN holdfast._settle('complete', key, fence, 'completed', response, 0, tenant); END $$;
COMMENT ON FUNCTION holdfast.complete(text, bigint, bytea, text) IS 'The effect has happened: store the response that every later begin gets. ok, not-known, stale-fence, token-collision, invalid-request.';

CREATE FUNCTION holdfast.complete(key text, fence bigint, response text, tenant text DEFAULT '')
    RETURNS holdfast.claim_answer LANGUAGE sql AS
$$ SELECT holdfast.complete(key, fence, pg_catalog.convert_to(response, 'UTF8'), tenant) $$;
COMMENT ON FUNCTION holdfast.complete(text, bigint, text, text) IS 'The same with text.';

CREATE FUNCTION holdfast.fail(key text, fence bigint, error bytea, retryable boolean DEFAULT false,
    tenant text DEFAULT '') RETURNS holdfast.claim_answer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$
BEGIN
    RETURN holdfast._settle('fail', key, fence, CASE retryable WHEN true THEN 'retryable' WHEN false THEN 'failed' END,
        error, 0, tenant);
END $$;
COMMENT ON FUNCTION holdfast.fail(text, bigint, bytea, boolean, text) IS 'The effect has not happened. retryable: the key may begin again; else the error is the answer of every later begin. ok, not-known, stale-fence, token-collision, invalid-request.';

CREATE FUNCTION holdfast.fail(key text, fence bigint, error text, retryable boolean DEFAULT false,
    tenant text DEFAULT '') RETURNS holdfast.claim_answer LANGUAGE sql AS
$$ SELECT holdfast.fail(key, fence, pg_catalog.convert_to(error, 'UTF8'), retryable, tenant) $$;
COMMENT ON FUNCTION holdfast.fail(text, bigint, text, boolean, text) IS 'The same with text.';

CREATE FUNCTION holdfast.heartbeat(key text, fence bigint, lease interval DEFAULT NULL, tenant text DEFAULT '')
    RETURNS holdfast.claim_answer LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$
BEGIN
    RETURN holdfast._settle('heartbeat', key, fence, 'started', '', coalesce(holdfast._duration(lease), 0), tenant);
END $$;
COMMENT ON FUNCTION holdfast.heartbeat IS 'Still at work: the lease runs from now, as long as before or as given. ok, not-known, stale-fence, not-held (settled), invalid-request.';

CREATE FUNCTION holdfast.get_claim(key text, tenant text DEFAULT '') RETURNS holdfast.claim_answer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    rules constant holdfast.store := holdfast._rules();
    c holdfast.token;
    now timestamptz;
BEGIN
    PERFORM holdfast._need('get_claim', num_nulls(key, tenant) = 0);
    PERFORM holdfast._replicate();
    IF octet_length(tenant) > 64 OR octet_length(key) NOT BETWEEN 1 AND rules.token_max_length THEN
        RETURN holdfast._claim_show('invalid-request', false, NULL, NULL);
    END IF;
    SELECT t.* INTO c FROM holdfast.token t
    WHERE t.tenant = get_claim.tenant AND t.key = holdfast._key_column(get_claim.key) AND t.action = 'begin';
    now := holdfast.engine_now();
    IF c.key IS NULL OR c.expires_at <= now THEN
        RETURN holdfast._claim_show('not-known', false, NULL, NULL);
    END IF;
    RETURN holdfast._claim_show('ok', false, c, now);
END $$;
COMMENT ON FUNCTION holdfast.get_claim IS 'A claim as it is now. ok, not-known, invalid-request.';

-- ---- Leases -----------------------------------------------------------------------------------------------------

CREATE FUNCTION holdfast._lease_answer(status text, replayed boolean, image bytea) RETURNS holdfast.lease_answer
    LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF image IS NULL THEN
        RETURN ROW(status, replayed, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::holdfast.lease_answer;
    END IF;
    RETURN ROW(status, replayed, holdfast._get_text(image, 40),
        holdfast._get_text(image, 42 + holdfast._get2(image, 40)), holdfast._get8(image, 0), holdfast._get8(image, 8),
        holdfast._time(holdfast._get8(image, 16)), holdfast._time(holdfast._get8(image, 24)),
        holdfast._time(holdfast._get8(image, 32)))::holdfast.lease_answer;
END $$;
COMMENT ON FUNCTION holdfast._lease_answer IS 'The answer with the lease in `image`, or with a status alone.';

CREATE FUNCTION holdfast._lease_show(status text, l holdfast.lease) RETURNS holdfast.lease_answer LANGUAGE sql STABLE AS
$$
    SELECT ROW(status, false, l.name, l.holder, l.fence, l.ttl_ms, l.granted_at, l.expires_at,
        l.released_at)::holdfast.lease_answer
$$;
COMMENT ON FUNCTION holdfast._lease_show IS 'The answer with a lease, or with a status alone.';

CREATE FUNCTION holdfast._lease_write(l holdfast.lease) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE holdfast.lease x
    SET holder = l.holder, fence = l.fence, ttl_ms = l.ttl_ms, granted_at = l.granted_at, expires_at = l.expires_at,
        released_at = l.released_at, deleted_at = l.deleted_at
    WHERE x.tenant = l.tenant AND x.name = l.name;
END $$;
COMMENT ON FUNCTION holdfast._lease_write IS 'Write the lease back, whose row is locked.';

CREATE FUNCTION holdfast.grant_lease(key text, name text, holder text, ttl interval, tenant text DEFAULT '')
    RETURNS holdfast.lease_answer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    ms constant bigint := holdfast._duration(ttl);
    digest bytea;
    a holdfast._admitted;
    valid boolean;
    l holdfast.lease;
    now timestamptz;
    number bigint;
    won holdfast._admitted;
    ready boolean := false;
    timeout text;
    since constant timestamptz := clock_timestamp();
BEGIN
    PERFORM holdfast._need('grant_lease', num_nulls(key, name, holder, ttl, tenant) = 0);
    PERFORM holdfast._replicate();
    digest := sha256(holdfast._field('holder', 1, holdfast._bytes(holder)) ||
        holdfast._field('name', 1, holdfast._bytes(name)) || holdfast._field('ttl_ms', 2, holdfast._le8(ms)));
    a := holdfast._admit(tenant, key, 'grant', digest);
    IF a.status IS NOT NULL THEN
        RETURN holdfast._lease_answer(a.status, a.replayed, a.image);
    END IF;
    valid := holdfast._name_valid(name) AND holdfast._name_valid(holder) AND holdfast._duration_valid(ms);
    WHILE NOT ready LOOP
        IF valid THEN
            SELECT x.* INTO l FROM holdfast.lease x
            WHERE x.tenant = grant_lease.tenant AND x.name = grant_lease.name FOR UPDATE;
        END IF;
        ready := NOT valid OR l.name IS NOT NULL;
        IF ready THEN
            a := holdfast._win(a, tenant, key, 'grant', digest);
        ELSE
            BEGIN -- see "The first use of a name"
                won := holdfast._win(a, tenant, key, 'grant', digest);
                IF won.status IS NULL THEN
                    timeout := holdfast._hurry();
                    INSERT INTO holdfast.lease (tenant, name, holder, fence, ttl_ms, granted_at, expires_at)
                    VALUES (grant_lease.tenant, grant_lease.name, '', 0, 0, '-infinity', '-infinity')
                    ON CONFLICT DO NOTHING RETURNING * INTO l;
                    IF NOT FOUND THEN
                        PERFORM holdfast._lost();
                    END IF;
                    PERFORM set_config('lock_timeout', timeout, true);
                END IF;
                a := won;
                ready := true;
            EXCEPTION WHEN SQLSTATE 'HF001' OR lock_not_available THEN
                PERFORM holdfast._patience(since);
            END;
        END IF;
    END LOOP;
    IF a.status IS NOT NULL THEN
        RETURN holdfast._lease_answer(a.status, a.replayed, a.image);
    END IF;
    now := holdfast.engine_now();
    number := nextval('holdfast.journal_number');
    IF NOT valid THEN
        a.status := 'invalid-request';
    ELSIF l.deleted_at IS NULL AND l.released_at IS NULL AND now < l.expires_at THEN
        a.status := 'lease-held';
    END IF;
    IF a.status IS NOT NULL THEN
        PERFORM holdfast._remember(tenant, key, 'grant', a.status, digest, now, a.window_ms, number, NULL, NULL, 255, '{}');
        RETURN holdfast._lease_answer(a.status, false, NULL);
    END IF;
    l := ROW(tenant, name, holder, nextval('holdfast.fence'), ms, now, holdfast._after(now, ms), NULL, NULL);
    PERFORM holdfast._lease_write(l);
    PERFORM holdfast._remember(tenant, key, 'grant', 'ok', digest, now, a.window_ms, number, NULL, NULL, 0,
        ARRAY[holdfast._lease_row(l)]);
    RETURN holdfast._lease_show('ok', l);
END $$;
COMMENT ON FUNCTION holdfast.grant_lease IS 'Get authority over a name, with a fence above all given out before. ok, lease-held, token-collision, invalid-request.';

CREATE FUNCTION holdfast._lease_change(action text, name text, fence bigint, ms bigint, tenant text)
    RETURNS holdfast.lease_answer LANGUAGE plpgsql AS $$
DECLARE
    l holdfast.lease;
    now timestamptz;
BEGIN
    PERFORM holdfast._need(action || '_lease', num_nulls(name, fence, tenant) = 0);
    PERFORM holdfast._replicate();
    IF octet_length(tenant) > 64 OR (ms <> 0 AND NOT holdfast._duration_valid(ms)) OR NOT holdfast._name_valid(name)
        OR fence <= 0 THEN
        RETURN holdfast._lease_show('invalid-request', NULL);
    END IF;
    SELECT x.* INTO l FROM holdfast.lease x
    WHERE x.tenant = _lease_change.tenant AND x.name = _lease_change.name FOR UPDATE;
    IF NOT FOUND OR l.deleted_at IS NOT NULL THEN
        RETURN holdfast._lease_show('not-known', NULL);
    ELSIF fence <> l.fence THEN
        RETURN holdfast._lease_show(CASE WHEN fence > l.fence THEN 'invalid-request' ELSE 'stale-fence' END, l);
    ELSIF action = 'return' AND l.released_at IS NOT NULL THEN
        RETURN holdfast._lease_show('ok', l);
    END IF;
    now := holdfast.engine_now();
    IF l.released_at IS NOT NULL OR now >= l.expires_at THEN
        RETURN holdfast._lease_show('not-held', NULL);
    END IF;
    IF action = 'return' THEN
        l.released_at := now;
    ELSE
        l.ttl_ms := coalesce(nullif(ms, 0), l.ttl_ms);
        l.expires_at := holdfast._after(now, l.ttl_ms);
    END IF;
    PERFORM holdfast._lease_write(l);
    PERFORM holdfast._journal(nextval('holdfast.journal_number'), now, tenant, action, 'ok', NULL, 0, 255, NULL, NULL,
        ARRAY[holdfast._lease_row(l)]);
    RETURN holdfast._lease_show('ok', l);
END $$;
COMMENT ON FUNCTION holdfast._lease_change IS 'renew and return.';

CREATE FUNCTION holdfast.renew_lease(name text, fence bigint, ttl interval DEFAULT NULL, tenant text DEFAULT '')
    RETURNS holdfast.lease_answer LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ BEGIN RETURN holdfast._lease_change('renew', name, fence, coalesce(holdfast._duration(ttl), 0), tenant); END $$;
COMMENT ON FUNCTION holdfast.renew_lease IS 'The lease runs from now, as long as before or as given. ok, not-known, stale-fence, not-held, invalid-request.';

CREATE FUNCTION holdfast.return_lease(name text, fence bigint, tenant text DEFAULT '')
    RETURNS holdfast.lease_answer LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ BEGIN RETURN holdfast._lease_change('return', name, fence, 0, tenant); END $$;
COMMENT ON FUNCTION holdfast.return_lease IS 'Give the lease back. ok, not-known, stale-fence, not-held, invalid-request.';

CREATE FUNCTION holdfast.get_lease(name text, tenant text DEFAULT '') RETURNS holdfast.lease_answer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    l holdfast.lease;
BEGIN
    PERFORM holdfast._need('get_lease', num_nulls(name, tenant) = 0);
    PERFORM holdfast._replicate();
    IF octet_length(tenant) > 64 OR NOT holdfast._name_valid(name) THEN
        RETURN holdfast._lease_show('invalid-request', NULL);
    END IF;
    SELECT x.* INTO l FROM holdfast.lease x
    WHERE x.tenant = get_lease.tenant AND x.name = get_lease.name AND x.deleted_at IS NULL;
    RETURN holdfast._lease_show(CASE WHEN FOUND THEN 'ok' ELSE 'not-known' END, l);
END $$;
COMMENT ON FUNCTION holdfast.get_lease IS 'A lease as it is now. ok, not-known, invalid-request.';

-- ---- Registers --------------------------------------------------------------------------------------------------

CREATE FUNCTION holdfast._register_answer(status text, replayed boolean, image bytea) RETURNS holdfast.register_answer
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    place integer;
BEGIN
    IF image IS NULL THEN
        RETURN ROW(status, replayed, NULL, NULL, NULL, NULL, NULL, NULL)::holdfast.register_answer;
    END IF;
    place := 27 + holdfast._get2(image, 25);
    RETURN ROW(status, replayed, holdfast._get_text(image, 25), 'plain',
        substring(image, place + 5, holdfast._get4(image, place)::integer), holdfast._get8(image, 1),
        holdfast._unsigned(holdfast._get8(image, 9)), holdfast._time(holdfast._get8(image, 17)))::holdfast.register_answer;
END $$;
COMMENT ON FUNCTION holdfast._register_answer IS 'The answer with the plain register in `image`, or with a status alone.';

CREATE FUNCTION holdfast._register_show(status text, r holdfast.register) RETURNS holdfast.register_answer
    LANGUAGE sql STABLE AS
$$
    SELECT ROW(status, false, r.name, r.type, r.value, r.version, r.fence, r.changed_at)::holdfast.register_answer
$$;
COMMENT ON FUNCTION holdfast._register_show IS 'The answer with a register, or with a status alone.';

CREATE FUNCTION holdfast._register_write(r holdfast.register) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE holdfast.register x
    SET type = r.type, value = r.value, version = r.version, fence = r.fence, changed_at = r.changed_at
    WHERE x.tenant = r.tenant AND x.name = r.name;
END $$;
COMMENT ON FUNCTION holdfast._register_write IS 'Write the register back, whose row is locked.';

CREATE FUNCTION holdfast.write(key text, name text, value bytea, fence numeric DEFAULT 0, if_version bigint DEFAULT NULL,
    tenant text DEFAULT '') RETURNS holdfast.register_answer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    given constant numeric := holdfast._fence('write', fence);
    digest bytea;
    a holdfast._admitted;
    valid boolean;
    r holdfast.register;
    there boolean;
    version bigint;
    highest numeric;
    now timestamptz;
    number bigint;
    won holdfast._admitted;
    ready boolean := false;
    timeout text;
    since constant timestamptz := clock_timestamp();
BEGIN
    PERFORM holdfast._need('write', num_nulls(key, name, value, tenant) = 0);
    PERFORM holdfast._replicate();
    IF if_version < 0 THEN
        RAISE EXCEPTION 'holdfast.write: % is not a version', if_version USING ERRCODE = 'invalid_parameter_value';
    END IF;
    digest := sha256(
        CASE WHEN given = 0 THEN ''::bytea ELSE holdfast._field('fence', 2, holdfast._le8(holdfast._bits(given))) END ||
        CASE WHEN if_version IS NULL THEN ''::bytea ELSE holdfast._field('if_version', 2, holdfast._le8(if_version)) END ||
        holdfast._field('name', 1, holdfast._bytes(name)) || holdfast._field('value', 1, value));
    a := holdfast._admit(tenant, key, 'write', digest);
    IF a.status IS NOT NULL THEN
        RETURN holdfast._register_answer(a.status, a.replayed, a.image);
    END IF;
    valid := holdfast._name_valid(name) AND length(value) <= 65536;
    WHILE NOT ready LOOP
        IF valid THEN
            SELECT x.* INTO r FROM holdfast.register x WHERE x.tenant = write.tenant AND x.name = write.name FOR UPDATE;
        END IF;
        ready := NOT valid OR r.name IS NOT NULL;
        IF ready THEN
            a := holdfast._win(a, tenant, key, 'write', digest);
        ELSE
            BEGIN -- see "The first use of a name"
                won := holdfast._win(a, tenant, key, 'write', digest);
                IF won.status IS NULL THEN
                    timeout := holdfast._hurry();
                    INSERT INTO holdfast.register (tenant, name, type, value, version, fence, changed_at)
                    VALUES (write.tenant, write.name, 'plain', '', 0, 0, '-infinity')
                    ON CONFLICT DO NOTHING RETURNING * INTO r;
                    IF NOT FOUND THEN
                        PERFORM holdfast._lost();
                    END IF;
                    PERFORM set_config('lock_timeout', timeout, true);
                END IF;
                a := won;
                ready := true;
            EXCEPTION WHEN SQLSTATE 'HF001' OR lock_not_available THEN
                PERFORM holdfast._patience(since);
            END;
        END IF;
    END LOOP;
    IF a.status IS NOT NULL THEN
        RETURN holdfast._register_answer(a.status, a.replayed, a.image);
    END IF;
    now := holdfast.engine_now();
    there := r.version > 0 AND r.type <> 'deleted';
    version := r.version;
    highest := r.fence;
    IF r.type = 'deleted' AND holdfast._get8(r.value, 0) <= holdfast._ms(now) THEN -- what was left of it is forgotten
        version := 0;
        highest := 0;
    END IF;
    a.status := CASE
        WHEN NOT valid OR (there AND r.type <> 'plain') THEN 'invalid-request'
        WHEN given <> 0 AND given <= highest THEN 'stale-fence'
        WHEN if_version <> CASE WHEN there THEN version ELSE 0 END THEN 'version-mismatch'
        ELSE 'ok' END;
    number := nextval('holdfast.journal_number');
    IF a.status <> 'ok' THEN
        IF r.version = 0 THEN -- it was made above, for its lock, and is not to be
            DELETE FROM holdfast.register x WHERE x.tenant = r.tenant AND x.name = r.name;
        END IF;
        PERFORM holdfast._remember(tenant, key, 'write', a.status, digest, now, a.window_ms, number, NULL, NULL, 255, '{}');
        RETURN holdfast._register_answer(a.status, false, NULL);
    END IF;
    r.type := 'plain';
    r.value := value;
    r.version := version + 1;
    r.changed_at := now;
    r.fence := CASE WHEN given <> 0 THEN given ELSE highest END;
    PERFORM holdfast._register_write(r);
    PERFORM holdfast._remember(tenant, key, 'write', 'ok', digest, now, a.window_ms, number, NULL, NULL, 0,
        ARRAY[holdfast._register_row(r)]);
    RETURN holdfast._register_show('ok', r);
END $$;
COMMENT ON FUNCTION holdfast.write(text, text, bytea, numeric, bigint, text) IS 'Write a plain register. fence: must be above all that it has seen; if_version: the version that it must have, 0 if it must not be there. ok, stale-fence, version-mismatch, token-collision, invalid-request.';

CREATE FUNCTION holdfast.write(key text, name text, value text, fence numeric DEFAULT 0, if_version bigint DEFAULT NULL,
    tenant text DEFAULT '') RETURNS holdfast.register_answer LANGUAGE sql AS
$$ SELECT holdfast.write(key, name, pg_catalog.convert_to(value, 'UTF8'), fence, if_version, tenant) $$;
COMMENT ON FUNCTION holdfast.write(text, text, text, numeric, bigint, text) IS 'The same with text.';

CREATE FUNCTION holdfast.get_register(name text, tenant text DEFAULT '') RETURNS holdfast.register_answer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    r holdfast.register;
BEGIN
    PERFORM holdfast._need('get_register', num_nulls(name, tenant) = 0);
    PERFORM holdfast._replicate();
    IF octet_length(tenant) > 64 OR NOT holdfast._name_valid(name) THEN
        RETURN holdfast._register_show('invalid-request', NULL);
    END IF;
    SELECT x.* INTO r FROM holdfast.register x WHERE x.tenant = get_register.tenant AND x.name = get_register.name;
    IF NOT FOUND OR r.type = 'deleted' THEN
        RETURN holdfast._register_show('not-known', NULL);
    END IF;
    RETURN holdfast._register_show('ok', r);
END $$;
COMMENT ON FUNCTION holdfast.get_register IS 'A register as it is now. ok, not-known, invalid-request.';

-- ---- Keys, for those who ask what happened ----------------------------------------------------------------------

CREATE FUNCTION holdfast.token_status(key text, tenant text DEFAULT '') RETURNS holdfast.token_answer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    rules constant holdfast.store := holdfast._rules();
    t holdfast.token;
    a holdfast.token_answer;
    now timestamptz;
BEGIN
    PERFORM holdfast._need('token_status', num_nulls(key, tenant) = 0);
    PERFORM holdfast._replicate();
    IF octet_length(tenant) > 64 OR octet_length(key) NOT BETWEEN 1 AND rules.token_max_length THEN
        a.status := 'invalid-request';
        RETURN a;
    END IF;
    SELECT x.* INTO t FROM holdfast.token x
    WHERE x.tenant = token_status.tenant AND x.key = holdfast._key_column(token_status.key);
    now := holdfast.engine_now();
    IF t.key IS NULL OR t.expires_at <= now THEN
        a.status := 'not-known';
        RETURN a;
    END IF;
    RETURN ROW('ok', t.action, t.status, t.digest, t.recorded_at, nullif(t.expires_at, 'infinity'), t.entry,
        CASE WHEN t.hold IS NOT NULL THEN holdfast._id_text(holdfast._id_raw(t.hold)) END,
        CASE WHEN t.state = 'started' AND now >= t.lease_expires_at THEN 'unknown' ELSE t.state END,
        t.fence, CASE WHEN t.state <> 'started' THEN coalesce(t.response, ''::bytea) END)::holdfast.token_answer;
END $$;
COMMENT ON FUNCTION holdfast.token_status IS 'What happened to the request with this key? ok, not-known (never used, or its window has closed), invalid-request.';

-- Nobody may call anything until schema/roles.sql, or an administrator, says so.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA holdfast FROM PUBLIC;
-- Whoever may write the tables may say that it was too late for that.
GRANT EXECUTE ON FUNCTION holdfast._conflict TO PUBLIC;

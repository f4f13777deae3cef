-- ---- Guards -------------------------------------------------------------------------------------

-- Case folding and NFC, exactly as a server does them with utf8proc (src/core/match.c), whatever
-- Unicode version and locale this database has: so neither normalize() nor lower() of more than
-- ASCII. The tables are functions that src/store/postgres/unicode.c makes from utf8proc:
--   _unicode_marks       a regular expression: the characters that may change beside others
--   _unicode_decomposed  a character and what it decomposes to
--   _unicode_folded      a character and what case folding makes of it
--   _unicode_classes     a character and its combining class, if that is not 0
--   _unicode_composed    two characters and the one that they compose to

CREATE FUNCTION holdfast._mapped(t text, fold boolean) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF fold THEN
        RETURN (SELECT string_agg(coalesce(holdfast._unicode_folded() ->> u.c, u.c), '' ORDER BY u.at)
            FROM unnest(string_to_array(t, NULL)) WITH ORDINALITY u (c, at));
    END IF;
    RETURN (SELECT string_agg(coalesce(holdfast._unicode_decomposed() ->> u.c, u.c), '' ORDER BY u.at)
        FROM unnest(string_to_array(t, NULL)) WITH ORDINALITY u (c, at));
END $$;
COMMENT ON FUNCTION holdfast._mapped IS 'Each character folded, or decomposed.';

CREATE FUNCTION holdfast._ordered(t text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    -- A character of class 0 and the marks after it are a run.
    RETURN (SELECT string_agg(r.c, '' ORDER BY r.run, r.class, r.at) FROM (
        SELECT k.c, k.class, k.at, count(*) FILTER (WHERE k.class = 0) OVER (ORDER BY k.at) AS run FROM (
            SELECT u.c, u.at, coalesce((holdfast._unicode_classes() -> u.c)::integer, 0) AS class
            FROM unnest(string_to_array(t, NULL)) WITH ORDINALITY u (c, at)) k) r);
END $$;
COMMENT ON FUNCTION holdfast._ordered IS 'Combining marks in canonical order.';

CREATE FUNCTION holdfast._composed(t text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    done text := '';
    starter text; -- the last character of class 0
    marks text := ''; -- what stands behind it and was not composed with it
    highest integer := 0; -- class among `marks`; -1: a starter can be composed with the next character
    before integer := 0; -- class of the previous character
    class integer;
    c text;
    n integer;
    s integer;
    pair text;
BEGIN
    FOREACH c IN ARRAY string_to_array(t, NULL) LOOP
        class := 0;
        IF c COLLATE "C" >= E'\u0300' THEN -- the first mark
            class := coalesce((holdfast._unicode_classes() -> c)::integer, 0);
            IF class > 0 AND class < before THEN
                RETURN holdfast._composed(holdfast._ordered(t));
            END IF;
            IF class > highest THEN
                pair := holdfast._unicode_composed() ->> (starter || c);
                n := ascii(c);
                IF pair IS NULL AND n BETWEEN 4449 AND 4546 THEN -- Hangul: a vowel or a final consonant
                    s := ascii(starter);
                    IF n <= 4469 AND s BETWEEN 4352 AND 4370 THEN
                        pair := chr(44032 + ((s - 4352) * 21 + n - 4449) * 28);
                    ELSIF n >= 4520 AND s BETWEEN 44032 AND 55203 AND (s - 44032) % 28 = 0 THEN
                        pair := chr(s + n - 4519);
                    END IF;
                END IF;
                IF pair IS NOT NULL THEN
                    starter := pair;
                    before := class;
                    CONTINUE;
                END IF;
            END IF;
        END IF;
        before := class;
        IF class = 0 THEN
            done := done || coalesce(starter, '') || marks;
            starter := c;
            marks := '';
            highest := -1;
        ELSE
            marks := marks || c;
            highest := CASE WHEN starter IS NULL THEN 255 ELSE greatest(highest, class) END;
        END IF;
    END LOOP;
    RETURN done || coalesce(starter, '') || marks;
END $$;
COMMENT ON FUNCTION holdfast._composed IS 'Decomposed text, with its marks in order and composed.';

CREATE FUNCTION holdfast._nfc(t text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF octet_length(t) = length(t) OR t COLLATE "C" !~ holdfast._unicode_marks() THEN
        RETURN t;
    END IF;
    RETURN holdfast._composed(holdfast._mapped(t, false));
END $$;
COMMENT ON FUNCTION holdfast._nfc IS 'Unicode''s normal form C, as step_normalize of src/core/match.c has it.';

CREATE FUNCTION holdfast._fold(t text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF octet_length(t) = length(t) THEN
        RETURN lower(t COLLATE "C");
    ELSIF t COLLATE "C" !~ holdfast._unicode_marks() THEN
        RETURN holdfast._mapped(t, true);
    END IF;
    t := holdfast._mapped(t, false);
    -- The iota below a letter is the only mark that folding makes a letter. Those after it could not
    -- be sorted then.
    IF position(E'\u0345' IN t) > 0 THEN
        t := holdfast._ordered(t);
    END IF;
    RETURN holdfast._composed(holdfast._mapped(t, true));
END $$;
COMMENT ON FUNCTION holdfast._fold IS 'Unicode case folding, as step_casefold of src/core/match.c has it.';

-- Text cannot have a NUL. A character for private use takes its place, because no step changes it:
-- one of 342, of which an identity of 1024 bytes cannot have all.
CREATE FUNCTION holdfast._stand_in(identity bytea) RETURNS text LANGUAGE sql IMMUTABLE AS
$$
    SELECT pg_catalog.chr(u.c) FROM pg_catalog.generate_series(57344, 57685) u (c)
    WHERE position(pg_catalog.convert_to(pg_catalog.chr(u.c), 'UTF8') IN identity) = 0
    ORDER BY u.c LIMIT 1
$$;
COMMENT ON FUNCTION holdfast._stand_in IS 'A character that the identity does not have.';

CREATE FUNCTION holdfast._nul_out(identity bytea, instead text) RETURNS bytea LANGUAGE sql IMMUTABLE AS
$$
    SELECT pg_catalog.string_agg(CASE WHEN pg_catalog.get_byte(identity, u.i) = 0
        THEN pg_catalog.convert_to(instead, 'UTF8') ELSE pg_catalog.substring(identity, u.i + 1, 1) END,
        ''::bytea ORDER BY u.i)
    FROM pg_catalog.generate_series(0, pg_catalog.length(identity) - 1) u (i)
$$;
COMMENT ON FUNCTION holdfast._nul_out IS 'The bytes with a character for each NUL.';

CREATE FUNCTION holdfast._nul_in(t text, instead text) RETURNS bytea LANGUAGE sql IMMUTABLE AS
$$
    SELECT pg_catalog.string_agg(pg_catalog.convert_to(u.part, 'UTF8'), E'\\x00'::bytea ORDER BY u.at)
    FROM pg_catalog.unnest(pg_catalog.string_to_array(t, instead)) WITH ORDINALITY u (part, at)
$$;
COMMENT ON FUNCTION holdfast._nul_in IS 'The way back from _nul_out.';

CREATE FUNCTION holdfast._match(match text, identity bytea) RETURNS bytea LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    -- Unicode's property White_Space.
    spaces constant text := E'\t\n\x0b\x0c\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008'
        '\u2009\u200a\u2028\u2029\u202f\u205f\u3000';
    form bytea := identity;
    step text;
    t text;
    nul text;
BEGIN
    FOREACH step IN ARRAY string_to_array(match, ',') LOOP
        CONTINUE WHEN step IN ('exact', 'hash');
        IF t IS NULL THEN
            IF position(E'\\x00'::bytea IN identity) > 0 THEN
                nul := holdfast._stand_in(identity);
                form := holdfast._nul_out(identity, nul);
            END IF;
            BEGIN
                t := convert_from(form, 'UTF8');
            EXCEPTION WHEN character_not_in_repertoire THEN
                RETURN NULL;
            END;
        END IF;
        t := CASE step
            WHEN 'trim' THEN btrim(t, spaces)
            WHEN 'casefold' THEN holdfast._fold(t)
            ELSE regexp_replace(holdfast._nfc(t) COLLATE "C", '[' || spaces || ']+', ' ', 'g') END;
        IF t = '' THEN
            RETURN NULL;
        END IF;
    END LOOP;
    IF nul IS NOT NULL THEN
        form := holdfast._nul_in(t, nul);
    ELSIF t IS NOT NULL THEN
        form := convert_to(t, 'UTF8');
    END IF;
    IF right(match, 4) = 'hash' THEN
        form := sha256(form);
    END IF;
    RETURN CASE WHEN length(form) BETWEEN 1 AND 1024 THEN form END;
END $$;
COMMENT ON FUNCTION holdfast._match IS
    'The identity as it is compared under a match rule; NULL if it is not valid. It agrees with '
    'src/core/match.c for all bytes.';

CREATE FUNCTION holdfast._guard_show(status text, g holdfast.guard) RETURNS holdfast.guard_answer LANGUAGE sql STABLE AS
$$
    SELECT ROW(status, false, g.name, g.window_ms, g.match, g.on_unavailable, g.durable,
        g.created_at)::holdfast.guard_answer
$$;
COMMENT ON FUNCTION holdfast._guard_show IS 'The answer with a guard, or with a status alone.';

CREATE FUNCTION holdfast.set_guard(name text, window_length interval, match text DEFAULT '',
    on_unavailable text DEFAULT 'open', durable boolean DEFAULT true, tenant text DEFAULT '',
    force boolean DEFAULT false) RETURNS holdfast.guard_answer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    ms constant bigint := holdfast._duration(window_length);
    steps constant integer[] := holdfast._steps(match);
    was holdfast.guard;
    g holdfast.guard;
    now timestamptz;
    number bigint;
BEGIN
    PERFORM holdfast._need('set_guard', num_nulls(name, window_length, match, on_unavailable, durable, tenant, force) = 0);
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
    -- A transaction that uses a guard locks it until it ends: functions lock its row, servers its
    -- name. So everything that was decided by the old configuration is in the journal before this
    -- change, and everything after this change is decided by the new one.
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
    -- No transaction records under this guard now, and none has that is not committed. But what was
    -- recorded since the snapshot of this transaction cannot be seen in it.
    IF NOT force AND g.number <> 0 AND array_remove(steps, 1) <> array_remove(holdfast._steps(was.match), 1) THEN
        IF EXISTS (SELECT FROM holdfast.guard_entry e
            WHERE e.tenant || chr(31) || e.guard = set_guard.tenant || chr(31) || set_guard.name
                AND e.tenant = set_guard.tenant AND e.expires_at > now) THEN
            RETURN holdfast._guard_show('window-not-elapsed', was);
        END IF;
        IF current_setting('transaction_isolation') <> 'read committed' THEN
            RAISE EXCEPTION 'holdfast.set_guard: in a % transaction it cannot be seen whether identities are under guard',
                current_setting('transaction_isolation') USING ERRCODE = 'feature_not_supported',
                HINT = 'Change a match rule in READ COMMITTED, or with force.';
        END IF;
    END IF;
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
COMMENT ON FUNCTION holdfast.set_guard IS
    'Make or change a guard. match: empty (byte for byte), or steps out of exact, trim, '
    'casefold, normalize and hash (last), with commas between them. While identities are under guard '
    'it changes only with force (a duplicate of one may then not be recognised); '
    'window-not-elapsed comes with the guard as it is. ok, invalid-request, window-not-elapsed.';

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
COMMENT ON FUNCTION holdfast.check_seen(text, bytea, text) IS
    'Is the identity under guard? Changes nothing. ok, not-known (no such guard), '
    'invalid-request.';

CREATE FUNCTION holdfast.check_seen(guard text, identity text, tenant text DEFAULT '') RETURNS holdfast.seen_answer
    LANGUAGE sql AS $$ SELECT holdfast.check_seen(guard, pg_catalog.convert_to(identity, 'UTF8'), tenant) $$;
COMMENT ON FUNCTION holdfast.check_seen(text, text, text) IS 'The same with text.';

CREATE FUNCTION holdfast.record(guard text, identity bytea, result bytea DEFAULT NULL, tenant text DEFAULT '')
    RETURNS holdfast.seen_answer LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ BEGIN RETURN holdfast._ask('record', guard, identity, result, tenant); END $$;
COMMENT ON FUNCTION holdfast.record(text, bytea, bytea, text) IS
    'Put the identity under guard, with a result; changes nothing if it is. ok, not-known (no '
    'such guard), invalid-request.';

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
COMMENT ON FUNCTION holdfast.record(text, text, bytea, text) IS
    'The same with an identity that is text and a result of any bytes, such as json makes.';

CREATE FUNCTION holdfast.admit(guard text, identity bytea, result bytea DEFAULT NULL, tenant text DEFAULT '')
    RETURNS holdfast.seen_answer LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ BEGIN RETURN holdfast._ask('admit', guard, identity, result, tenant); END $$;
COMMENT ON FUNCTION holdfast.admit(text, bytea, bytea, text) IS
    'Check and record in one step: the caller that gets seen = false may go on. ok, not-known (no '
    'such guard), invalid-request.';

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
COMMENT ON FUNCTION holdfast.admit(text, text, bytea, text) IS
    'The same with an identity that is text and a result of any bytes, such as json makes.';

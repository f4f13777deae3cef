-- ---- Time, rules, names -------------------------------------------------------------------------

CREATE FUNCTION holdfast.engine_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS
$$
    SELECT greatest(pg_catalog.date_trunc('milliseconds', pg_catalog.clock_timestamp()),
        (SELECT pg_catalog.max(n.at) FROM (SELECT j.at FROM holdfast.journal j ORDER BY j.number DESC LIMIT 16) n
        WHERE n.at < timestamptz '10000-01-01 00:00:00+00'))
$$;
COMMENT ON FUNCTION holdfast.engine_now IS
    'Engine time: the database''s clock in whole milliseconds, and never before what has been '
    'decided last.';

CREATE FUNCTION holdfast._rules() RETURNS holdfast.store LANGUAGE plpgsql AS $$
DECLARE
    rules holdfast.store;
BEGIN
    -- A change of the configuration takes the table's EXCLUSIVE lock first, so it waits for every
    -- transaction that has read the configuration here.
    LOCK TABLE holdfast.store IN ROW SHARE MODE;
    -- In REPEATABLE READ the row may be older than that lock. Then FOR SHARE fails, instead of
    -- deciding by an old configuration. A read-only transaction decides nothing.
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
COMMENT ON FUNCTION holdfast._rules IS
    'The configuration in force, which stays in force until the transaction ends.';

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
    -- A transaction that writes nothing ends without waiting for the synchronous standbys, and what
    -- it was shown may not be there: rows whose own wait was given up can be seen by all. With this
    -- it has something to wait for.
    IF current_setting('synchronous_standby_names') <> '' AND NOT pg_is_in_recovery() THEN
        PERFORM pg_logical_emit_message(true, 'holdfast', '');
    END IF;
END $$;
COMMENT ON FUNCTION holdfast._replicate IS
    'The COMMIT of this transaction waits until the synchronous standbys have all that the call '
    'is shown.';

CREATE FUNCTION holdfast._name_valid(name text) RETURNS boolean LANGUAGE sql STABLE AS
$$ SELECT pg_catalog.octet_length(name) BETWEEN 1 AND 1024 $$;
COMMENT ON FUNCTION holdfast._name_valid IS
    'May a resource, requester, guard, lease, holder or register have this name?';

CREATE FUNCTION holdfast._duration_valid(ms bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS
$$ SELECT ms BETWEEN 1 AND 315360000000 $$;
COMMENT ON FUNCTION holdfast._duration_valid IS 'From one millisecond to ten years.';

-- ---- Keys ---------------------------------------------------------------------------------------

CREATE FUNCTION holdfast._field(name text, type integer, value bytea) RETURNS bytea LANGUAGE sql STABLE AS
$$
    SELECT coalesce(holdfast._str(holdfast._bytes(name)) || holdfast._u8(type) ||
        holdfast._le4(pg_catalog.length(value)) || value, ''::bytea)
$$;
COMMENT ON FUNCTION holdfast._field IS
    'A field of the canonical form that is digested (src/core/digest.h). type: 1 bytes, 2 a '
    'number, 4 JSON that the parameter cannot have. NULL is not given: no field.';

CREATE FUNCTION holdfast._number_valid(number numeric) RETURNS boolean LANGUAGE sql IMMUTABLE AS
$$ SELECT coalesce(number BETWEEN 0 AND 18446744073709551615 AND number = pg_catalog.trunc(number), true) $$;
COMMENT ON FUNCTION holdfast._number_valid IS 'Can it be a fence or a version? NULL can: it is none.';

CREATE FUNCTION holdfast._number_field(name text, number numeric) RETURNS bytea LANGUAGE sql STABLE AS
$$
    SELECT CASE WHEN holdfast._number_valid(number) THEN holdfast._field(name, 2, holdfast._le8(holdfast._bits(number)))
        ELSE holdfast._field(name, 4, holdfast._bytes(CASE WHEN number::text ~ '^[-0-9.]+$'
            THEN holdfast._canonical_number(number::text) ELSE number::text END)) END
$$;
COMMENT ON FUNCTION holdfast._number_field IS
    'The field of a fence or a version; one that cannot be one is digested as the JSON that it is '
    'over HTTP.';

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
COMMENT ON FUNCTION holdfast._key_look IS
    'What has the key? alive: the call or claim in `first`. locked: its window has closed, and '
    'this call holds the lock on the row. Neither: there is no row.';

CREATE FUNCTION holdfast._key_insert(tenant text, key text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    -- Waits while another transaction inserts the key. If that one rolls back, this insert succeeds.
    INSERT INTO holdfast.token (tenant, key, action, status, digest, recorded_at, expires_at, entry)
    VALUES (_key_insert.tenant, _key_insert.key, '', '', '', '-infinity', '-infinity', 0)
    ON CONFLICT DO NOTHING;
    RETURN FOUND;
END $$;
COMMENT ON FUNCTION holdfast._key_insert IS
    'Take the key: true if this call inserted its row, false if another call was faster.';

CREATE FUNCTION holdfast._met(what text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_read_only')::boolean THEN
        RETURN;
    END IF;
    PERFORM CASE what
        WHEN 'duplicate' THEN nextval('holdfast.met_duplicate')
        WHEN 'race' THEN nextval('holdfast.met_race')
        WHEN 'collision' THEN nextval('holdfast.met_collision') END;
END $$;
COMMENT ON FUNCTION holdfast._met IS
    'Count a duplicate, a race or a collision for the figures of the servers. It stays counted if '
    'the transaction is rolled back.';

CREATE TYPE holdfast._admitted AS (
    status text,
    replayed boolean,
    image bytea,
    won boolean,
    window_ms bigint,
    known_only boolean
);
COMMENT ON TYPE holdfast._admitted IS
    'status NULL: the key is new, and the call is to be decided once it is won. Else the answer.';

CREATE TYPE holdfast._key AS (
    key text,
    client text,
    sequence numeric
);
COMMENT ON TYPE holdfast._key IS
    'What a call is remembered by: a key, or a client and a number.';

CREATE FUNCTION holdfast._given(call text, key text, client text, sequence numeric) RETURNS holdfast._key
    LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    PERFORM holdfast._need(call, key IS NOT NULL OR num_nulls(client, sequence) = 0);
    IF key IS NOT NULL AND num_nonnulls(client, sequence) > 0 THEN
        RAISE EXCEPTION 'holdfast.%: expected either a key, or client and sequence', call
            USING ERRCODE = 'invalid_parameter_value',
                HINT = 'A client that numbers its calls gives NULL for the key.';
    END IF;
    IF sequence < 0 OR sequence > 18446744073709551615 OR sequence <> trunc(sequence) THEN
        RAISE EXCEPTION 'holdfast.%: % is not a sequence: a whole number from 1 to 18446744073709551615',
            call, sequence USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN ROW(key, client, trunc(sequence))::holdfast._key;
END $$;
COMMENT ON FUNCTION holdfast._given IS 'The key, or the client and the number, that a call was given.';

CREATE FUNCTION holdfast._admit_number(tenant text, k holdfast._key, action text, digest bytea,
    blank holdfast._admitted) RETURNS holdfast._admitted LANGUAGE plpgsql AS $$
DECLARE
    a holdfast._admitted := blank;
    c holdfast.client;
    first holdfast.client_call;
BEGIN
    IF octet_length(tenant) > 64 OR NOT holdfast._name_valid(k.client) OR k.sequence < 1 THEN
        a.status := 'invalid-request';
        RETURN a;
    END IF;
    -- The client's row is locked before all others, also when this call makes it: so a client's
    -- calls wait for each other.
    LOOP
        SELECT x.* INTO c FROM holdfast.client x
        WHERE x.tenant = _admit_number.tenant AND x.name = k.client FOR UPDATE;
        EXIT WHEN FOUND OR k.sequence > 1000000;
        INSERT INTO holdfast.client (tenant, name, highest, used)
        VALUES (_admit_number.tenant, k.client, 0, decode(repeat('00', 32), 'hex'))
        ON CONFLICT DO NOTHING;
    END LOOP;
    IF k.sequence > coalesce(c.highest, 0) + 1000000 THEN
        a.status := 'invalid-request';
    ELSIF k.sequence <= c.highest - 256 THEN
        a.status := 'window-elapsed';
    ELSIF k.sequence > c.highest OR get_bit(c.used, (k.sequence % 256)::integer) = 0 THEN
        a.won := true;
    ELSE
        SELECT x.* INTO STRICT first FROM holdfast.client_call x
        WHERE x.tenant = _admit_number.tenant AND x.client = k.client AND x.slot = (k.sequence % 256)::integer
            AND x.sequence = k.sequence;
        IF first.action <> action OR first.digest <> digest THEN
            a.status := 'token-collision';
            PERFORM holdfast._met('collision');
        ELSE
            a.status := first.status;
            a.replayed := true;
            PERFORM holdfast._met('duplicate');
            SELECT holdfast._answer_image(j.entry) INTO STRICT a.image FROM holdfast.journal j
            WHERE j.number = first.entry;
        END IF;
    END IF;
    RETURN a;
END $$;
COMMENT ON FUNCTION holdfast._admit_number IS
    'As _admit, for the number of a client, whose row this call then has locked.';

CREATE FUNCTION holdfast._admit(tenant text, k holdfast._key, action text, digest bytea)
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
    IF k.client IS NOT NULL THEN
        RETURN holdfast._admit_number(tenant, k, action, digest, a);
    END IF;
    IF octet_length(tenant) > 64 OR octet_length(k.key) NOT BETWEEN 1 AND rules.token_max_length THEN
        a.status := 'invalid-request';
        RETURN a;
    END IF;
    owner := holdfast._key_look(tenant, holdfast._key_column(k.key));
    a.won := owner.locked;
    IF NOT owner.alive THEN
        RETURN a;
    END IF;
    IF (owner.first).action <> action OR (owner.first).digest <> digest THEN
        a.status := 'token-collision';
        PERFORM holdfast._met('collision');
        RETURN a;
    END IF;
    a.status := (owner.first).status;
    a.replayed := true;
    PERFORM holdfast._met('duplicate');
    SELECT holdfast._answer_image(j.entry) INTO STRICT a.image FROM holdfast.journal j
    WHERE j.number = (owner.first).entry;
    RETURN a;
END $$;
COMMENT ON FUNCTION holdfast._admit IS
    'Is this the first call with the key? As hf_token_admit of src/core/token.h.';

CREATE FUNCTION holdfast._win(admitted holdfast._admitted, tenant text, k holdfast._key, action text, digest bytea)
    RETURNS holdfast._admitted LANGUAGE plpgsql AS $$
DECLARE
    a holdfast._admitted := admitted;
BEGIN
    WHILE a.status IS NULL AND NOT a.won LOOP
        a.won := holdfast._key_insert(tenant, holdfast._key_column(k.key));
        IF NOT a.won THEN
            a := holdfast._admit(tenant, k, action, digest);
            IF a.replayed THEN
                PERFORM holdfast._met('race');
            END IF;
        END IF;
    END LOOP;
    RETURN a;
END $$;
COMMENT ON FUNCTION holdfast._win IS
    'Take the key, after all existing rows are locked. (A clients number is taken when its row is locked.) A status means that another call was '
    'faster, and is the answer.';

-- The first use of a name. A call inserts the row of the name after it has taken its key. By then a
-- server may have inserted that row and wait for the key: a deadlock. So the call waits only a
-- moment for the row. Then it gives the key back (a subtransaction) and begins again by locking the
-- row, which exists now.

CREATE FUNCTION holdfast._lost() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'holdfast: the row was made meanwhile' USING ERRCODE = 'HF001';
END $$;
COMMENT ON FUNCTION holdfast._lost IS 'Leave the subtransaction: another transaction has inserted the row.';

CREATE FUNCTION holdfast._hurry() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    before constant text := current_setting('lock_timeout');
BEGIN
    PERFORM set_config('lock_timeout', '50ms', true);
    RETURN before;
END $$;
COMMENT ON FUNCTION holdfast._hurry IS
    'Wait only a moment for locks until the subtransaction ends. Returns the setting that was '
    'before.';

CREATE FUNCTION holdfast._patience(since timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    most constant interval := current_setting('lock_timeout')::interval;
BEGIN
    IF most > interval '0' AND clock_timestamp() - since > most THEN
        RAISE EXCEPTION 'canceling statement due to lock timeout' USING ERRCODE = 'lock_not_available';
    END IF;
END $$;
COMMENT ON FUNCTION holdfast._patience IS
    'Fail as a lock would, if the caller has set a lock_timeout and it has passed.';

CREATE FUNCTION holdfast._remember_number(tenant text, k holdfast._key, action text, status text, digest bytea,
    at timestamptz, number bigint, answer integer, rows bytea[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    c holdfast.client;
    place constant integer := (k.sequence % 256)::integer;
BEGIN
    SELECT x.* INTO STRICT c FROM holdfast.client x WHERE x.tenant = _remember_number.tenant AND x.name = k.client;
    IF k.sequence - c.highest >= 256 THEN
        c.used := decode(repeat('00', 32), 'hex');
    ELSE
        FOR above IN 1 .. greatest(k.sequence - c.highest, 0)::integer LOOP
            c.used := set_bit(c.used, ((c.highest + above) % 256)::integer, 0);
        END LOOP;
    END IF;
    c.used := set_bit(c.used, place, 1);
    c.highest := greatest(c.highest, k.sequence);
    UPDATE holdfast.client x SET highest = c.highest, used = c.used WHERE x.tenant = c.tenant AND x.name = c.name;
    INSERT INTO holdfast.client_call (tenant, client, slot, sequence, action, status, digest, recorded_at, entry)
    VALUES (c.tenant, c.name, place, k.sequence, _remember_number.action, _remember_number.status,
        _remember_number.digest, at, number)
    ON CONFLICT ON CONSTRAINT client_call_pkey DO UPDATE
    SET sequence = excluded.sequence, action = excluded.action, status = excluded.status, digest = excluded.digest,
        recorded_at = excluded.recorded_at, entry = excluded.entry;
    PERFORM holdfast._journal(number, at, tenant, action, status, k.client, 2,
        CASE WHEN answer = 255 THEN 255 ELSE answer + 1 END, NULL, digest,
        array_prepend(holdfast._client_row(c), rows), k.sequence);
END $$;
COMMENT ON FUNCTION holdfast._remember_number IS
    'As _remember, for the number of a client, whose row this call has locked.';

CREATE FUNCTION holdfast._remember(tenant text, k holdfast._key, action text, status text, digest bytea, at timestamptz,
    window_ms bigint, number bigint, hold bigint, previous bigint, answer integer, rows bytea[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    ends constant timestamptz := holdfast._after(at, window_ms);
BEGIN
    IF k.client IS NOT NULL THEN
        PERFORM holdfast._remember_number(tenant, k, action, status, digest, at, number, answer, rows);
        RETURN;
    END IF;
    UPDATE holdfast.token t
    SET action = _remember.action, status = _remember.status, digest = _remember.digest, recorded_at = at,
        expires_at = ends, entry = number, hold = _remember.hold, previous = _remember.previous, state = NULL, on_abandon = NULL,
        fence = NULL, lease_ms = NULL, lease_expires_at = NULL, settled_at = NULL, response = NULL,
        retention_ms = NULL
    WHERE t.tenant = _remember.tenant AND t.key = holdfast._key_column(k.key);
    PERFORM holdfast._journal(number, at, tenant, action, status, k.key, 1, answer, ends, digest, rows);
END $$;
COMMENT ON FUNCTION holdfast._remember IS
    'Bind the key, whose row this call has locked, to the call and its answer.';

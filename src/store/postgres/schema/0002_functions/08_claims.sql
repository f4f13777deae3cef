-- ---- Claims -------------------------------------------------------------------------------------

CREATE FUNCTION holdfast._claim_show(status text, replayed boolean, c holdfast.token, at timestamptz)
    RETURNS holdfast.claim_answer LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN ROW(status, replayed, holdfast._key_text(c.key),
        CASE WHEN c.state = 'started' AND at >= c.lease_expires_at THEN 'unknown' ELSE c.state END,
        c.on_abandon, c.fence, c.lease_ms, c.recorded_at, c.lease_expires_at, c.settled_at,
        CASE WHEN c.state <> 'started' THEN c.expires_at END,
        CASE WHEN c.state <> 'started' THEN coalesce(c.response, ''::bytea) END, c.retention_ms)::holdfast.claim_answer;
END $$;
COMMENT ON FUNCTION holdfast._claim_show IS
    'The answer with a claim as it stands at that time, or with a status alone.';

CREATE FUNCTION holdfast._claim_write(c holdfast.token, action text, at timestamptz) RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    number constant bigint := nextval('holdfast.journal_number');
BEGIN
    UPDATE holdfast.token t
    SET action = 'begin', status = 'ok', digest = c.digest, recorded_at = c.recorded_at, expires_at = c.expires_at,
        entry = number, hold = NULL, previous = NULL, state = c.state, on_abandon = c.on_abandon, fence = c.fence, lease_ms = c.lease_ms,
        lease_expires_at = c.lease_expires_at, settled_at = c.settled_at, response = c.response,
        retention_ms = c.retention_ms
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
COMMENT ON FUNCTION holdfast._begin_meets IS
    'What a begin is answered with where the key is taken; NULL: it may begin again.';

CREATE FUNCTION holdfast.begin_with_fingerprint(key text, fingerprint bytea, lease interval DEFAULT NULL,
    on_abandon text DEFAULT 'unknown', tenant text DEFAULT '', retention interval DEFAULT NULL) RETURNS holdfast.claim_answer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    rules constant holdfast.store := holdfast._rules();
    ms constant bigint := coalesce(nullif(holdfast._duration(lease), 0), 60000);
    kept constant bigint := nullif(holdfast._duration(retention), 0);
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
        OR NOT holdfast._duration_valid(ms) OR on_abandon NOT IN ('unknown', 'retry')
        OR (kept IS NOT NULL AND NOT holdfast._duration_valid(kept)) THEN
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
        PERFORM holdfast._met(CASE meets WHEN 'ok' THEN 'duplicate' WHEN 'in-progress' THEN 'race'
            WHEN 'token-collision' THEN 'collision' END);
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
    c.retention_ms := kept;
    PERFORM holdfast._claim_write(c, 'begin', now);
    RETURN holdfast._claim_show('ok', false, c, now);
END $$;
COMMENT ON FUNCTION holdfast.begin_with_fingerprint IS
    'As begin, with the SHA-256 of the payload instead of the payload.';

CREATE FUNCTION holdfast.begin(key text, payload bytea, lease interval DEFAULT NULL, on_abandon text DEFAULT 'unknown',
    tenant text DEFAULT '', retention interval DEFAULT NULL) RETURNS holdfast.claim_answer LANGUAGE sql AS
$$ SELECT holdfast.begin_with_fingerprint(key, pg_catalog.sha256(payload), lease, on_abandon, tenant, retention) $$;
COMMENT ON FUNCTION holdfast.begin(text, bytea, interval, text, text, interval) IS
    'Reserve the key for an effect. ok and state started: do it, then complete or fail with the '
    'fence. ok and replayed: it is done, here is the response. Else in-progress, '
    'outcome-unknown, token-collision, invalid-request. lease: 60 seconds if not given. retention: '
    'how long it is remembered once it is settled, the idempotency window if not given.';

CREATE FUNCTION holdfast.begin(key text, payload text, lease interval DEFAULT NULL, on_abandon text DEFAULT 'unknown',
    tenant text DEFAULT '', retention interval DEFAULT NULL) RETURNS holdfast.claim_answer LANGUAGE sql AS
$$
    SELECT holdfast.begin_with_fingerprint(key, pg_catalog.sha256(pg_catalog.convert_to(payload, 'UTF8')), lease,
        on_abandon, tenant, retention)
$$;
COMMENT ON FUNCTION holdfast.begin(text, text, interval, text, text, interval) IS
    'The same with text, which is "fingerprint" over HTTP. For what is "payload" there, see '
    'payload.';

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
    ELSIF c.state <> 'started' AND action IN ('heartbeat', 'abandon') THEN
        RETURN holdfast._claim_show('not-held', false, NULL, NULL);
    ELSIF c.state <> 'started' THEN
        IF c.state = state AND holdfast._value_part(coalesce(c.response, ''::bytea)) = holdfast._value_part(response) THEN
            PERFORM holdfast._met('duplicate');
            RETURN holdfast._claim_show('ok', true, c, now);
        END IF;
        PERFORM holdfast._met('collision');
        RETURN holdfast._claim_show('token-collision', false, NULL, NULL);
    ELSIF action = 'abandon' AND now >= c.lease_expires_at THEN
        RETURN holdfast._claim_show('ok', false, c, now);
    END IF;
    c.state := state;
    IF action = 'abandon' THEN
        c.lease_expires_at := now;
    ELSIF action = 'heartbeat' THEN
        c.lease_ms := coalesce(nullif(ms, 0), c.lease_ms);
        c.lease_expires_at := holdfast._after(now, c.lease_ms);
    ELSE
        c.settled_at := now;
        c.expires_at := holdfast._after(now, coalesce(c.retention_ms, rules.idempotency_window_ms));
        c.response := nullif(response, ''::bytea);
    END IF;
    PERFORM holdfast._claim_write(c, action, now);
    RETURN holdfast._claim_show('ok', false, c, now);
END $$;
COMMENT ON FUNCTION holdfast._settle IS 'complete, fail, heartbeat and abandon.';

CREATE FUNCTION holdfast.complete(key text, fence bigint, response bytea, tenant text DEFAULT '')
    RETURNS holdfast.claim_answer LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ BEGIN RETURN holdfast._settle('complete', key, fence, 'completed', response, 0, tenant); END $$;
COMMENT ON FUNCTION holdfast.complete(text, bigint, bytea, text) IS
    'The effect has happened: store the response that every later begin gets. ok, not-known, '
    'stale-fence, token-collision, invalid-request.';

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
COMMENT ON FUNCTION holdfast.fail(text, bigint, bytea, boolean, text) IS
    'The effect has not happened. retryable: the key may begin again; else the error is the '
    'answer of every later begin. ok, not-known, stale-fence, token-collision, invalid-request.';

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
COMMENT ON FUNCTION holdfast.heartbeat IS
    'Still at work: the lease runs from now, as long as before or as given. ok, not-known, '
    'stale-fence, not-held (settled), invalid-request.';

CREATE FUNCTION holdfast.abandon(key text, fence bigint, tenant text DEFAULT '')
    RETURNS holdfast.claim_answer LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ BEGIN RETURN holdfast._settle('abandon', key, fence, 'started', '', 0, tenant); END $$;
COMMENT ON FUNCTION holdfast.abandon IS
    'The effect was started and its outcome is not known: the claim is unknown at once, without '
    'waiting for its lease. ok, not-known, stale-fence, not-held (settled), invalid-request.';

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

CREATE FUNCTION holdfast.claims(state text DEFAULT NULL, begun_from timestamptz DEFAULT NULL,
    begun_before timestamptz DEFAULT NULL, prefix text DEFAULT '', below_fence bigint DEFAULT NULL,
    at_most integer DEFAULT 100, tenant text DEFAULT '') RETURNS SETOF holdfast.claim_answer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    stored constant text[] := CASE WHEN state IS NULL THEN '{started,completed,failed,retryable}'::text[]
        WHEN state = 'unknown' THEN '{started}'::text[] ELSE ARRAY[state] END;
    now timestamptz;
BEGIN
    PERFORM holdfast._need('claims', num_nulls(prefix, at_most, tenant) = 0);
    PERFORM holdfast._replicate();
    IF state NOT IN ('started', 'unknown', 'completed', 'failed', 'retryable') THEN
        RAISE EXCEPTION 'holdfast.claims: % is no state of a claim', quote_literal(state)
            USING ERRCODE = 'invalid_parameter_value',
                HINT = 'Use started, unknown, completed, failed or retryable.';
    END IF;
    IF at_most NOT BETWEEN 1 AND 1000 THEN
        RAISE EXCEPTION 'holdfast.claims: at_most is %, expected 1 to 1000', at_most
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    now := holdfast.engine_now();
    RETURN QUERY
        SELECT (holdfast._claim_show('ok', false, t.c, now)).*
        FROM unnest(stored) s (state) CROSS JOIN LATERAL (
            SELECT x AS c, x.fence FROM holdfast.token x
            WHERE x.tenant || chr(31) = claims.tenant || chr(31) AND x.state = s.state
                AND x.fence < coalesce(below_fence, 9223372036854775807)
                AND (begun_from IS NULL OR x.recorded_at >= begun_from)
                AND (begun_before IS NULL OR x.recorded_at < begun_before)
                AND starts_with(x.key, holdfast._key_column(prefix))
                AND (x.state = 'started' OR x.expires_at > now)
                AND (x.state <> 'started' OR claims.state IS NULL
                    OR (x.lease_expires_at <= now) = (claims.state = 'unknown'))
            ORDER BY x.fence DESC LIMIT at_most) t
        ORDER BY t.fence DESC LIMIT at_most;
END $$;
COMMENT ON FUNCTION holdfast.claims IS
    'Claims, newest begin first. state: started, unknown, completed, failed or retryable; NULL: any. '
    'For the next page, below_fence is the lowest fence of this one.';

-- ---- What happened to a key -------------------------------------------------------------------

CREATE FUNCTION holdfast._number_status(k holdfast._key, tenant text) RETURNS holdfast.token_answer LANGUAGE plpgsql AS $$
DECLARE
    a holdfast.token_answer;
    found record;
BEGIN
    IF octet_length(tenant) > 64 OR NOT holdfast._name_valid(k.client) OR k.sequence < 1 THEN
        a.status := 'invalid-request';
        RETURN a;
    END IF;
    -- One statement, so that both rows are of one moment.
    SELECT c.highest, get_bit(c.used, (k.sequence % 256)::integer) = 1 AS used, f.action, f.status AS answered,
        f.digest, f.recorded_at, f.entry
    INTO found FROM holdfast.client c LEFT JOIN holdfast.client_call f
        ON f.tenant = c.tenant AND f.client = c.name AND f.sequence = k.sequence AND f.slot = (k.sequence % 256)::integer
    WHERE c.tenant = _number_status.tenant AND c.name = k.client;
    IF k.sequence <= found.highest - 256 THEN
        a.status := 'window-elapsed';
        RETURN a;
    ELSIF found.highest IS NULL OR k.sequence > found.highest OR NOT found.used THEN
        a.status := 'not-known';
        RETURN a;
    END IF;
    a := ROW('ok', found.action, found.answered, found.digest, found.recorded_at, NULL, found.entry, NULL, NULL, NULL,
        NULL);
    IF found.answered = 'ok'
        AND found.action IN ('place_hold', 'confirm', 'confirm_late', 'release', 'expire', 'reverse') THEN
        SELECT holdfast._id_text(substring(holdfast._answer_image(j.entry), 43, 16)) INTO STRICT a.hold
        FROM holdfast.journal j WHERE j.number = found.entry;
    END IF;
    RETURN a;
END $$;
COMMENT ON FUNCTION holdfast._number_status IS 'As token_status, for the number of a client.';

CREATE FUNCTION holdfast.token_status(key text, tenant text DEFAULT '', client text DEFAULT NULL,
    sequence numeric DEFAULT NULL) RETURNS holdfast.token_answer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    k constant holdfast._key := holdfast._given('token_status', key, client, sequence);
    rules constant holdfast.store := holdfast._rules();
    t holdfast.token;
    a holdfast.token_answer;
    now timestamptz;
BEGIN
    PERFORM holdfast._need('token_status', tenant IS NOT NULL);
    PERFORM holdfast._replicate();
    IF k.client IS NOT NULL THEN
        RETURN holdfast._number_status(k, tenant);
    END IF;
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
COMMENT ON FUNCTION holdfast.token_status IS
    'What happened to the request with this key, or with this number of a client? ok, not-known '
    '(never used, or its window has closed), window-elapsed (a number too far below the highest), '
    'invalid-request.';

-- No role may call the functions until schema/roles.sql or an administrator grants it.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA holdfast FROM PUBLIC;
-- Every writer of the tables may call _conflict, which only raises an exception.
GRANT EXECUTE ON FUNCTION holdfast._conflict TO PUBLIC;

-- ---- What happened to a key -------------------------------------------------------------------

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
COMMENT ON FUNCTION holdfast.token_status IS
    'What happened to the request with this key? ok, not-known (never used, or its window has '
    'closed), invalid-request.';

-- No role may call the functions until schema/roles.sql or an administrator grants it.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA holdfast FROM PUBLIC;
-- Every writer of the tables may call _conflict, which only raises an exception.
GRANT EXECUTE ON FUNCTION holdfast._conflict TO PUBLIC;

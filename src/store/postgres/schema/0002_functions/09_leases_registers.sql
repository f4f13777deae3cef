-- ---- Leases -------------------------------------------------------------------------------------

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
COMMENT ON FUNCTION holdfast._lease_answer IS
    'The answer with the lease in `image`, or with a status alone.';

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

CREATE FUNCTION holdfast.grant_lease(key text, name text, holder text, ttl interval, tenant text DEFAULT '',
    client text DEFAULT NULL, sequence numeric DEFAULT NULL) RETURNS holdfast.lease_answer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    k constant holdfast._key := holdfast._given('grant_lease', key, client, sequence);
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
    PERFORM holdfast._need('grant_lease', tenant IS NOT NULL);
    PERFORM holdfast._replicate();
    digest := sha256(holdfast._field('holder', 1, holdfast._bytes(holder)) ||
        holdfast._field('name', 1, holdfast._bytes(name)) || holdfast._field('ttl_ms', 2, holdfast._le8(ms)));
    a := holdfast._admit(tenant, k, 'grant', digest);
    IF a.status IS NOT NULL THEN
        RETURN holdfast._lease_answer(a.status, a.replayed, a.image);
    END IF;
    valid := coalesce(holdfast._name_valid(name) AND holdfast._name_valid(holder) AND holdfast._duration_valid(ms), false);
    WHILE NOT ready LOOP
        IF valid THEN
            SELECT x.* INTO l FROM holdfast.lease x
            WHERE x.tenant = grant_lease.tenant AND x.name = grant_lease.name FOR UPDATE;
        END IF;
        ready := NOT valid OR l.name IS NOT NULL;
        IF ready THEN
            a := holdfast._win(a, tenant, k, 'grant', digest);
        ELSE
            BEGIN -- see "The first use of a name"
                won := holdfast._win(a, tenant, k, 'grant', digest);
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
        PERFORM holdfast._remember(tenant, k, 'grant', a.status, digest, now, a.window_ms, number, NULL, NULL, 255, '{}');
        RETURN holdfast._lease_answer(a.status, false, NULL);
    END IF;
    l := ROW(tenant, name, holder, nextval('holdfast.fence'), ms, now, holdfast._after(now, ms), NULL, NULL);
    PERFORM holdfast._lease_write(l);
    PERFORM holdfast._remember(tenant, k, 'grant', 'ok', digest, now, a.window_ms, number, NULL, NULL, 0,
        ARRAY[holdfast._lease_row(l)]);
    RETURN holdfast._lease_show('ok', l);
END $$;
COMMENT ON FUNCTION holdfast.grant_lease IS
    'Get authority over a name, with a fence above all given out before. ok, lease-held, '
    'token-collision, invalid-request.';

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
COMMENT ON FUNCTION holdfast.renew_lease IS
    'The lease runs from now, as long as before or as given. ok, not-known, stale-fence, '
    'not-held, invalid-request.';

CREATE FUNCTION holdfast.return_lease(name text, fence bigint, tenant text DEFAULT '')
    RETURNS holdfast.lease_answer LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ BEGIN RETURN holdfast._lease_change('return', name, fence, 0, tenant); END $$;
COMMENT ON FUNCTION holdfast.return_lease IS
    'Give the lease back. ok, not-known, stale-fence, not-held, invalid-request.';

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

-- ---- Registers ----------------------------------------------------------------------------------

CREATE FUNCTION holdfast._register_answer(status text, replayed boolean, image bytea) RETURNS holdfast.register_answer
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    place integer;
BEGIN
    IF image IS NULL THEN
        RETURN ROW(status, replayed, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::holdfast.register_answer;
    END IF;
    place := 27 + holdfast._get2(image, 25);
    RETURN ROW(status, replayed, holdfast._get_text(image, 25), 'plain',
        substring(image, place + 5, holdfast._get4(image, place)::integer), holdfast._get8(image, 1),
        holdfast._unsigned(holdfast._get8(image, 9)), holdfast._time(holdfast._get8(image, 17)),
        get_byte(image, 0) >= 128)::holdfast.register_answer;
END $$;
COMMENT ON FUNCTION holdfast._register_answer IS
    'The answer with the plain register in `image`, or with a status alone.';

CREATE FUNCTION holdfast._register_show(status text, r holdfast.register) RETURNS holdfast.register_answer
    LANGUAGE sql STABLE AS
$$
    SELECT ROW(status, false, r.name, r.type, r.value, r.version, r.fence, r.changed_at,
        r.require_fence)::holdfast.register_answer
$$;
COMMENT ON FUNCTION holdfast._register_show IS
    'The answer with a register, or with a status alone.';

CREATE FUNCTION holdfast._register_write(r holdfast.register) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE holdfast.register x
    SET type = r.type, value = r.value, version = r.version, fence = r.fence, require_fence = r.require_fence,
        changed_at = r.changed_at
    WHERE x.tenant = r.tenant AND x.name = r.name;
END $$;
COMMENT ON FUNCTION holdfast._register_write IS 'Write the register back, whose row is locked.';

CREATE FUNCTION holdfast.write(key text, name text, value bytea, fence numeric DEFAULT 0, if_version bigint DEFAULT NULL,
    tenant text DEFAULT '', client text DEFAULT NULL, sequence numeric DEFAULT NULL,
    require_fence boolean DEFAULT NULL) RETURNS holdfast.register_answer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    k constant holdfast._key := holdfast._given('write', key, client, sequence);
    given constant numeric := coalesce(fence, 0);
    digest bytea;
    a holdfast._admitted;
    valid boolean;
    r holdfast.register;
    there boolean;
    version bigint;
    highest numeric;
    required boolean;
    now timestamptz;
    number bigint;
    won holdfast._admitted;
    ready boolean := false;
    timeout text;
    since constant timestamptz := clock_timestamp();
BEGIN
    PERFORM holdfast._need('write', tenant IS NOT NULL);
    PERFORM holdfast._replicate();
    digest := sha256(holdfast._number_field('fence', nullif(given, 0)) ||
        holdfast._number_field('if_version', if_version) ||
        holdfast._field('name', 1, holdfast._bytes(name)) ||
        holdfast._field('require_fence', 2, holdfast._le8(2 - require_fence::integer)) ||
        holdfast._field('value', 1, holdfast._value_part(value)));
    a := holdfast._admit(tenant, k, 'write', digest);
    IF a.status IS NOT NULL THEN
        RETURN holdfast._register_answer(a.status, a.replayed, a.image);
    END IF;
    valid := coalesce(holdfast._name_valid(name) AND length(value) <= 65536 AND
        holdfast._number_valid(given) AND holdfast._number_valid(if_version), false);
    WHILE NOT ready LOOP
        IF valid THEN
            SELECT x.* INTO r FROM holdfast.register x WHERE x.tenant = write.tenant AND x.name = write.name FOR UPDATE;
        END IF;
        ready := NOT valid OR r.name IS NOT NULL;
        IF ready THEN
            a := holdfast._win(a, tenant, k, 'write', digest);
        ELSE
            BEGIN -- see "The first use of a name"
                won := holdfast._win(a, tenant, k, 'write', digest);
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
    required := r.require_fence;
    IF r.type = 'deleted' AND holdfast._get8(r.value, 0) <= holdfast._ms(now) THEN -- what was left of it is forgotten
        version := 0;
        highest := 0;
        required := false;
    END IF;
    a.status := CASE
        WHEN NOT valid OR (there AND r.type <> 'plain') THEN 'invalid-request'
        WHEN (given = 0 AND required) OR (given <> 0 AND given <= highest) THEN 'stale-fence'
        WHEN if_version <> CASE WHEN there THEN version ELSE 0 END THEN 'version-mismatch'
        ELSE 'ok' END;
    number := nextval('holdfast.journal_number');
    IF a.status <> 'ok' THEN
        IF r.version = 0 THEN -- it was made above, for its lock, and is not to be
            DELETE FROM holdfast.register x WHERE x.tenant = r.tenant AND x.name = r.name;
        END IF;
        PERFORM holdfast._remember(tenant, k, 'write', a.status, digest, now, a.window_ms, number, NULL, NULL, 255, '{}');
        RETURN holdfast._register_answer(a.status, false, NULL);
    END IF;
    r.type := 'plain';
    r.value := value;
    r.version := version + 1;
    r.changed_at := now;
    r.fence := CASE WHEN given <> 0 THEN given ELSE highest END;
    r.require_fence := coalesce(require_fence, required);
    PERFORM holdfast._register_write(r);
    PERFORM holdfast._remember(tenant, k, 'write', 'ok', digest, now, a.window_ms, number, NULL, NULL, 0,
        ARRAY[holdfast._register_row(r)]);
    RETURN holdfast._register_show('ok', r);
END $$;
COMMENT ON FUNCTION holdfast.write(text, text, bytea, numeric, bigint, text, text, numeric, boolean) IS
    'Write a plain register. fence: must be above all that it has seen; if_version: the version '
    'that it must have, 0 if it must not be there; require_fence: from now on, a write without a '
    'fence is stale-fence. ok, stale-fence, version-mismatch, '
    'token-collision, invalid-request.';

CREATE FUNCTION holdfast.write(key text, name text, value text, fence numeric DEFAULT 0, if_version bigint DEFAULT NULL,
    tenant text DEFAULT '', client text DEFAULT NULL, sequence numeric DEFAULT NULL,
    require_fence boolean DEFAULT NULL) RETURNS holdfast.register_answer LANGUAGE sql AS
$$ SELECT holdfast.write(key, name, pg_catalog.convert_to(value, 'UTF8'), fence, if_version, tenant, client, sequence,
    require_fence) $$;
COMMENT ON FUNCTION holdfast.write(text, text, text, numeric, bigint, text, text, numeric, boolean) IS
    'The same with text.';

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
COMMENT ON FUNCTION holdfast.get_register IS
    'A register as it is now. ok, not-known, invalid-request.';

-- ---- Holds --------------------------------------------------------------------------------------

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
    ELSIF get_byte(image, 41) = 2 THEN
        a.reacquires := holdfast._id_text(substring(image, 59, 16));
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
COMMENT ON FUNCTION holdfast._hold_answer IS
    'The answer with the hold in `image`, or with a status alone.';

CREATE FUNCTION holdfast._hold_show(status text, h holdfast.hold) RETURNS holdfast.hold_answer LANGUAGE sql STABLE AS
$$
    SELECT ROW(status, false, h.id, h.resource, h.requester, h.state, h.placed_at, h.expires_at, h.ended_at,
        h.reverses, h.reacquires)::holdfast.hold_answer
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
COMMENT ON FUNCTION holdfast._resource_insert IS
    'Make a resource (number 0, for the caller to fill in). False: another call made it meanwhile.';

CREATE FUNCTION holdfast._resource_write(r holdfast.resource) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE holdfast.resource x
    SET capacity = r.capacity, held = r.held, confirmed = r.confirmed, open = r.open,
        require_fence = r.require_fence, fence = r.fence,
        newest = r.newest, created_at = r.created_at, number = r.number,
        due_at = CASE WHEN r.held = 0 THEN 'infinity' ELSE r.due_at END
    WHERE x.tenant = r.tenant AND x.name = r.name;
END $$;
COMMENT ON FUNCTION holdfast._resource_write IS 'Write the resource back, whose row is locked.';

CREATE FUNCTION holdfast._hold_insert(h holdfast.hold) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO holdfast.hold (ordinal, id, tenant, resource, requester, state, placed_at, expires_at, ended_at,
        previous, reverses, reacquires, succeeded_by)
    VALUES (h.ordinal, h.id, h.tenant, h.resource, h.requester, h.state, h.placed_at, h.expires_at, h.ended_at,
        h.previous, h.reverses, h.reacquires, h.succeeded_by);
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
COMMENT ON FUNCTION holdfast._hold_fresh IS
    'A new hold on the resource; the caller fills in the rest.';

CREATE FUNCTION holdfast._expire_overdue(r holdfast.resource, now timestamptz) RETURNS bytea[]
    LANGUAGE plpgsql AS $$
DECLARE
    h holdfast.hold;
    rows bytea[] := '{}';
BEGIN
    IF r.held > 0 AND r.due_at <= now THEN
        FOR h IN
            SELECT x.* FROM holdfast.hold x
            WHERE x.tenant = r.tenant AND x.resource = r.name
                AND left(x.state, 4) = 'held' -- as the index hold_held has it
                AND x.expires_at <= _expire_overdue.now
            ORDER BY x.expires_at, x.ordinal LIMIT 8
        LOOP
            h.state := 'expired';
            h.ended_at := now;
            UPDATE holdfast.hold x SET state = h.state, ended_at = h.ended_at WHERE x.ordinal = h.ordinal;
            rows := rows || holdfast._hold_row(h);
        END LOOP;
    END IF;
    RETURN rows;
END $$;
COMMENT ON FUNCTION holdfast._expire_overdue IS
    'Expire up to 8 overdue holds on the resource, so that no caller waits for a sweeper; their '
    'rows of the entry. The caller counts their units.';

CREATE FUNCTION holdfast.place_hold(key text, resource text, requester text, duration interval,
    fence numeric DEFAULT 0, tenant text DEFAULT '', client text DEFAULT NULL, sequence numeric DEFAULT NULL)
    RETURNS holdfast.hold_answer LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    k constant holdfast._key := holdfast._given('place_hold', key, client, sequence);
    ms constant bigint := holdfast._duration(duration);
    given constant numeric := coalesce(fence, 0);
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
    PERFORM holdfast._need('place_hold', tenant IS NOT NULL);
    PERFORM holdfast._replicate();
    digest := sha256(holdfast._field('duration_ms', 2, holdfast._le8(ms)) ||
        holdfast._number_field('fence', nullif(given, 0)) ||
        holdfast._field('requester', 1, holdfast._bytes(requester)) ||
        holdfast._field('resource', 1, holdfast._bytes(resource)));
    a := holdfast._admit(tenant, k, 'place_hold', digest);
    IF a.status IS NOT NULL THEN
        RETURN holdfast._hold_answer(a.status, a.replayed, a.image);
    END IF;
    valid := coalesce(holdfast._name_valid(resource) AND holdfast._name_valid(requester) AND
        holdfast._duration_valid(ms) AND holdfast._number_valid(given), false);
    WHILE NOT ready LOOP
        IF valid THEN
            r := holdfast._resource_lock(tenant, resource);
        END IF;
        ready := NOT valid OR r.name IS NOT NULL OR a.known_only;
        IF ready THEN
            a := holdfast._win(a, tenant, k, 'place_hold', digest);
        ELSE
            BEGIN -- see "The first use of a name"
                won := holdfast._win(a, tenant, k, 'place_hold', digest);
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
        rows := holdfast._expire_overdue(r, now);
        r.held := r.held - cardinality(rows);
        IF r.name IS NULL THEN
            a.status := 'resource-unavailable';
        ELSIF (given = 0 AND r.require_fence) OR (given <> 0 AND given <= r.fence) THEN
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
    PERFORM holdfast._remember(tenant, k, 'place_hold', a.status, digest, now, a.window_ms, number,
        CASE WHEN a.status = 'ok' THEN h.ordinal END, CASE WHEN a.status = 'ok' THEN nullif(h.previous, 0) END, answer,
        rows);
    IF a.status <> 'ok' THEN
        RETURN holdfast._hold_answer(a.status, false, NULL);
    END IF;
    RETURN holdfast._hold_show('ok', h);
END $$;
COMMENT ON FUNCTION holdfast.place_hold IS
    'Hold one unit of a resource for a requester, for a bounded time. ok, invalid-request, '
    'stale-fence, resource-unavailable, token-collision.';

CREATE FUNCTION holdfast._hold_end(action text, k holdfast._key, hold text, tenant text, flaw bytea DEFAULT '')
    RETURNS holdfast.hold_answer
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
    others bytea[];
    late bool := false; -- its window has elapsed, and nothing has reacquired it
    valid constant boolean := hold IS NOT NULL AND flaw = ''::bytea;
    answer integer := 0;
BEGIN
    PERFORM holdfast._need(action, tenant IS NOT NULL);
    PERFORM holdfast._replicate();
    digest := sha256(holdfast._field('id', 1, holdfast._bytes(translate(hold, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ',
        'abcdefghijklmnopqrstuvwxyz'))) || flaw);
    a := holdfast._admit(tenant, k, action, digest);
    IF a.status IS NOT NULL THEN
        RETURN holdfast._hold_answer(a.status, a.replayed, a.image);
    END IF;
    -- The resource of a hold never changes, so it can be read before its lock; the hold is read
    -- again behind it.
    found_at := holdfast.hold_ordinal(hold);
    SELECT x.* INTO h FROM holdfast.hold x WHERE x.ordinal = found_at AND x.tenant = _hold_end.tenant;
    IF FOUND AND valid THEN
        r := holdfast._resource_lock(tenant, h.resource);
        SELECT x.* INTO h FROM holdfast.hold x WHERE x.ordinal = found_at;
    END IF;
    a := holdfast._win(a, tenant, k, action, digest);
    IF a.status IS NOT NULL THEN
        RETURN holdfast._hold_answer(a.status, a.replayed, a.image);
    END IF;
    now := holdfast.engine_now();
    number := nextval('holdfast.journal_number');
    a.status := CASE
        WHEN NOT valid THEN 'invalid-request'
        WHEN h.ordinal IS NULL THEN 'not-known'
        WHEN action = 'reverse' AND (h.state <> 'confirmed' OR h.succeeded_by IS NOT NULL) THEN 'not-held'
        WHEN action = 'confirm_late' AND h.state = 'expired' AND h.succeeded_by IS NULL THEN 'window-elapsed'
        WHEN action <> 'reverse' AND h.state <> 'held' THEN 'not-held'
        WHEN action IN ('confirm', 'confirm_late') AND now >= h.expires_at THEN 'window-elapsed'
        WHEN action = 'expire' AND now < h.expires_at THEN 'window-not-elapsed'
        ELSE 'ok' END;
    IF a.status = 'ok' AND action = 'reverse' THEN
        h := holdfast._hold_follow(h, r, 'released', now);
        r.newest := h.ordinal;
        r.confirmed := r.confirmed - 1;
        rows := ARRAY[holdfast._hold_row(h), holdfast._resource_row(r),
            holdfast._row(11, holdfast._id_raw(found_at) || holdfast._id_raw(h.ordinal))];
    ELSIF a.status = 'window-elapsed' AND action = 'confirm_late' THEN
        late := true;
        IF h.state = 'held' THEN
            -- It may not be among the first 8 that are overdue.
            h.state := 'expired';
            h.ended_at := now;
            UPDATE holdfast.hold x SET state = h.state, ended_at = h.ended_at WHERE x.ordinal = h.ordinal;
            rows := ARRAY[holdfast._hold_row(h)];
        END IF;
        r.held := r.held - cardinality(rows);
        others := holdfast._expire_overdue(r, now);
        r.held := r.held - cardinality(others);
        rows := rows || others;
        IF r.open AND r.held + r.confirmed < r.capacity THEN
            a.status := 'ok';
            h := holdfast._hold_follow(h, r, 'confirmed', now);
            r.newest := h.ordinal;
            r.confirmed := r.confirmed + 1;
            answer := cardinality(rows);
            rows := rows || holdfast._hold_row(h) || holdfast._resource_row(r)
                || holdfast._row(11, holdfast._id_raw(found_at) || holdfast._id_raw(h.ordinal));
        ELSIF cardinality(rows) > 0 THEN
            rows := rows || holdfast._resource_row(r);
        END IF;
        IF cardinality(rows) > 0 THEN
            PERFORM holdfast._resource_write(r);
        END IF;
    ELSIF a.status = 'ok' THEN
        h.state := CASE WHEN action IN ('confirm', 'confirm_late') THEN 'confirmed' WHEN action = 'release'
            THEN 'released' ELSE 'expired' END;
        h.ended_at := now;
        UPDATE holdfast.hold x SET state = h.state, ended_at = h.ended_at WHERE x.ordinal = h.ordinal;
        r.held := r.held - 1;
        IF h.state = 'confirmed' THEN
            r.confirmed := r.confirmed + 1;
        END IF;
        rows := ARRAY[holdfast._hold_row(h), holdfast._resource_row(r)];
    END IF;
    IF a.status = 'ok' AND NOT late THEN
        PERFORM holdfast._resource_write(r);
    END IF;
    PERFORM holdfast._remember(tenant, k, action, a.status, digest, now, a.window_ms, number,
        CASE WHEN a.status = 'ok' THEN h.ordinal END, NULL, CASE WHEN a.status = 'ok' THEN answer ELSE 255 END,
        rows);
    IF a.status <> 'ok' THEN
        RETURN holdfast._hold_answer(a.status, false, NULL);
    END IF;
    RETURN holdfast._hold_show('ok', h);
END $$;
COMMENT ON FUNCTION holdfast._hold_end IS
    'confirm, confirm_late, release, expire and reverse. flaw: the field of an argument that is not '
    'valid.';

CREATE FUNCTION holdfast._hold_follow(original holdfast.hold, r holdfast.resource, state text, at timestamptz)
    RETURNS holdfast.hold LANGUAGE plpgsql AS $$
DECLARE
    h holdfast.hold := holdfast._hold_fresh(r);
BEGIN
    h.requester := original.requester;
    h.state := state;
    h.placed_at := at;
    h.ended_at := at;
    h.expires_at := holdfast._after(at, holdfast._ms(original.expires_at) - holdfast._ms(original.placed_at));
    IF state = 'released' THEN
        h.reverses := original.id;
    ELSE
        h.reacquires := original.id;
    END IF;
    PERFORM holdfast._hold_insert(h);
    UPDATE holdfast.hold x SET succeeded_by = h.id WHERE x.ordinal = original.ordinal;
    RETURN h;
END $$;
COMMENT ON FUNCTION holdfast._hold_follow IS
    'Write the record that gives a confirmed hold back (released), or the hold that reacquires an '
    'expired one (confirmed).';

CREATE FUNCTION holdfast.confirm(key text, hold text, tenant text DEFAULT '', late text DEFAULT NULL,
    client text DEFAULT NULL, sequence numeric DEFAULT NULL) RETURNS holdfast.hold_answer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF late <> 'reacquire' THEN
        RETURN holdfast._hold_end('confirm', holdfast._given('confirm', key, client, sequence), hold, tenant,
            holdfast._field('late', 4, holdfast._bytes(to_json(late)::text)));
    END IF;
    RETURN holdfast._hold_end(CASE WHEN late IS NULL THEN 'confirm' ELSE 'confirm_late' END,
        holdfast._given('confirm', key, client, sequence), hold, tenant);
END $$;
COMMENT ON FUNCTION holdfast.confirm IS
    'Make a hold final. late: reacquire, when its window has elapsed and a unit is free, places and '
    'confirms a new hold instead; window-elapsed then means: refund the payment. ok, not-known, '
    'not-held, window-elapsed, token-collision, invalid-request.';

CREATE FUNCTION holdfast.release(key text, hold text, tenant text DEFAULT '', client text DEFAULT NULL,
    sequence numeric DEFAULT NULL) RETURNS holdfast.hold_answer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ BEGIN RETURN holdfast._hold_end('release', holdfast._given('release', key, client, sequence), hold, tenant); END $$;
COMMENT ON FUNCTION holdfast.release IS
    'Give a hold up. ok, not-known, not-held, token-collision, invalid-request.';

CREATE FUNCTION holdfast.expire(key text, hold text, tenant text DEFAULT '', client text DEFAULT NULL,
    sequence numeric DEFAULT NULL) RETURNS holdfast.hold_answer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ BEGIN RETURN holdfast._hold_end('expire', holdfast._given('expire', key, client, sequence), hold, tenant); END $$;
COMMENT ON FUNCTION holdfast.expire IS
    'End a hold whose time is over. ok, not-known, not-held, window-not-elapsed, '
    'token-collision, invalid-request.';

CREATE FUNCTION holdfast.reverse(key text, hold text, tenant text DEFAULT '', client text DEFAULT NULL,
    sequence numeric DEFAULT NULL) RETURNS holdfast.hold_answer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ BEGIN RETURN holdfast._hold_end('reverse', holdfast._given('reverse', key, client, sequence), hold, tenant); END $$;
COMMENT ON FUNCTION holdfast.reverse IS
    'Give the unit of a confirmed hold back, by a new record. ok, not-known, not-held, '
    'token-collision, invalid-request.';

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

-- ---- Resources ----------------------------------------------------------------------------------

CREATE FUNCTION holdfast._resource_show(status text, r holdfast.resource) RETURNS holdfast.resource_answer
    LANGUAGE sql STABLE AS
$$
    SELECT ROW(status, false, r.name, r.capacity, r.held, r.confirmed, r.open, r.fence,
        r.created_at, r.require_fence)::holdfast.resource_answer
$$;
COMMENT ON FUNCTION holdfast._resource_show IS
    'The answer with a resource, or with a status alone.';

CREATE FUNCTION holdfast.set_resource(name text, capacity integer DEFAULT NULL, open boolean DEFAULT NULL,
    tenant text DEFAULT '', require_fence boolean DEFAULT NULL) RETURNS holdfast.resource_answer
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
    changed := r.number = 0 OR (units <> 0 AND units <> r.capacity) OR coalesce(open, r.open) <> r.open OR
        coalesce(require_fence, r.require_fence) <> r.require_fence;
    IF units <> 0 THEN
        r.capacity := units;
    END IF;
    r.open := coalesce(open, r.open);
    r.require_fence := coalesce(require_fence, r.require_fence);
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
COMMENT ON FUNCTION holdfast.set_resource IS
    'Make or change a resource; NULL (or capacity 0) leaves what it has. require_fence: a hold '
    'without a fence is stale-fence. ok, invalid-request, '
    'resource-unavailable (capacity below what is taken).';

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
COMMENT ON FUNCTION holdfast.get_resource IS
    'A resource as it is now. ok, not-known, invalid-request.';

-- ---- The ids of holds ---------------------------------------------------------------------------

CREATE FUNCTION holdfast._id_hash(purpose text, number bytea) RETURNS bytea LANGUAGE sql STABLE AS
$$
    SELECT pg_catalog.substring(pg_catalog.sha256(s.id_key || holdfast._bytes(purpose) || number), 1, 8)
    FROM holdfast.store s
$$;
COMMENT ON FUNCTION holdfast._id_hash IS
    'Eight bytes that cannot be guessed without the store''s secret.';

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
COMMENT ON FUNCTION holdfast._id_text IS
    'The 16 bytes of an id as 26 digits of Crockford''s base 32.';

CREATE FUNCTION holdfast.hold_id(ordinal bigint) RETURNS text
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ SELECT holdfast._id_text(holdfast._id_raw(ordinal)) $$;
COMMENT ON FUNCTION holdfast.hold_id IS
    'The id of the hold with that ordinal, whether there is one or not.';

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
COMMENT ON FUNCTION holdfast.hold_ordinal IS
    'The ordinal inside an id (holdfast.hold.ordinal); NULL if it is not an id of this store. '
    'Upper case is accepted.';

-- ---- Rows as they stand in the journal ----------------------------------------------------------

CREATE FUNCTION holdfast._row(kind integer, image bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS
$$ SELECT holdfast._u8(kind) || E'\\x00'::bytea || holdfast._le4(pg_catalog.length(image)) || image $$;
COMMENT ON FUNCTION holdfast._row IS 'A row of an entry: kind, no flags, and its image.';

CREATE FUNCTION holdfast._hold_row(h holdfast.hold) RETURNS bytea LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN holdfast._row(1,
        holdfast._le8(h.ordinal) || holdfast._le8(h.previous) || holdfast._le8(holdfast._ms(h.placed_at)) ||
        holdfast._le8(holdfast._ms(h.expires_at)) || holdfast._le8(holdfast._ms(h.ended_at)) ||
        holdfast._u8(array_position('{held,confirmed,released,expired}'::text[], h.state)) ||
        holdfast._u8(CASE WHEN h.reverses IS NOT NULL THEN 1 WHEN h.reacquires IS NOT NULL THEN 2 ELSE 0 END) ||
        holdfast._id_raw(h.ordinal) ||
        coalesce(holdfast._id_raw(holdfast.hold_ordinal(coalesce(h.reverses, h.reacquires))), ''::bytea) ||
        holdfast._str(holdfast._bytes(h.resource)) || holdfast._str(holdfast._bytes(h.requester)));
END $$;
COMMENT ON FUNCTION holdfast._hold_row IS 'A hold as a row of an entry.';

CREATE FUNCTION holdfast._resource_row(r holdfast.resource) RETURNS bytea LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN holdfast._row(2,
        holdfast._le4(r.capacity) || holdfast._le4(r.held) || holdfast._le4(r.confirmed) ||
        holdfast._u8(r.open::integer + 2 * r.require_fence::integer) || holdfast._le8(holdfast._bits(r.fence)) || holdfast._le8(r.newest) ||
        holdfast._le8(holdfast._ms(r.created_at)) || holdfast._str(holdfast._bytes(r.name)));
END $$;
COMMENT ON FUNCTION holdfast._resource_row IS 'A resource as a row of an entry.';

CREATE FUNCTION holdfast._steps(match text) RETURNS integer[] LANGUAGE sql IMMUTABLE AS
$$
    SELECT coalesce(pg_catalog.array_agg(pg_catalog.array_position('{exact,trim,casefold,normalize,hash}'::text[], s)
        ORDER BY n), '{}')
    FROM pg_catalog.unnest(pg_catalog.string_to_array(match, ',')) WITH ORDINALITY AS u(s, n)
$$;
COMMENT ON FUNCTION holdfast._steps IS
    'The numbers of the steps of a match rule, in order; NULL for one that is not known.';

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
        holdfast._str(holdfast._bytes(holdfast._key_text(c.key))) || holdfast._blob(c.response) ||
        CASE WHEN c.retention_ms > 0 THEN holdfast._le8(c.retention_ms) ELSE ''::bytea END);
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
        holdfast._u8(1 + 128 * r.require_fence::integer) || holdfast._le8(r.version) || holdfast._le8(holdfast._bits(r.fence)) ||
        holdfast._le8(holdfast._ms(r.changed_at)) || holdfast._str(holdfast._bytes(r.name)) || holdfast._blob(r.value));
END $$;
COMMENT ON FUNCTION holdfast._register_row IS 'A plain register as a row of an entry.';

-- ---- Entries of the journal ---------------------------------------------------------------------

CREATE FUNCTION holdfast._action_number(action text) RETURNS integer LANGUAGE sql IMMUTABLE AS
$$
    SELECT CASE action WHEN 'abandon' THEN 23 WHEN 'confirm_late' THEN 24 ELSE pg_catalog.array_position('{place_hold,confirm,release,expire,reverse,set_resource,set_guard,check,record,
        admit,begin,complete,fail,heartbeat,grant,renew,return,write}'::text[], action) END
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
COMMENT ON FUNCTION holdfast._key_text IS
    'The way back from _key_column, for keys that these functions have written.';

CREATE FUNCTION holdfast._client_row(c holdfast.client) RETURNS bytea LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN holdfast._row(8,
        holdfast._le8(holdfast._bits(c.highest)) || c.used || holdfast._str(holdfast._bytes(c.name)));
END $$;
COMMENT ON FUNCTION holdfast._client_row IS 'A numbered client as a row of an entry.';

CREATE FUNCTION holdfast._entry(action text, status text, remember integer, answer integer, tenant text, key text,
    sequence numeric, at timestamptz, expires_at timestamptz, digest bytea, rows bytea[])
    RETURNS bytea LANGUAGE plpgsql STABLE AS $$
DECLARE
    body bytea := holdfast._u8(holdfast._action_number(action)) || holdfast._u8(holdfast._status_number(status)) ||
        holdfast._u8(remember) || holdfast._u8(cardinality(rows)) || holdfast._u8(answer) ||
        holdfast._u8(octet_length(tenant)) || holdfast._le2(CASE WHEN remember <> 0 THEN octet_length(key) ELSE 0 END) ||
        holdfast._le8(holdfast._ms(at));
    image bytea;
BEGIN
    IF remember = 1 THEN
        body := body || holdfast._le8(holdfast._ms(expires_at)) || digest;
    ELSIF remember = 2 THEN
        body := body || holdfast._le8(9223372036854775807) || digest || holdfast._le8(holdfast._bits(sequence));
    END IF;
    body := body || holdfast._bytes(tenant);
    IF remember <> 0 THEN
        body := body || holdfast._bytes(key);
    END IF;
    FOREACH image IN ARRAY rows LOOP
        body := body || image;
    END LOOP;
    RETURN holdfast._le4(8 + length(body)) || holdfast._le4(holdfast._crc32c(body)) || body;
END $$;
COMMENT ON FUNCTION holdfast._entry IS
    'An entry in the bytes of doc/FORMAT.md. key: of a call; with remember 2 the name of the client. '
    'answer: the index of the row that answers, or 255.';

CREATE FUNCTION holdfast._journal(number bigint, at timestamptz, tenant text, action text, status text, key text,
    remember integer, answer integer, expires_at timestamptz, digest bytea, rows bytea[], sequence numeric DEFAULT NULL)
    RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO holdfast.journal (number, at, tenant, action, status, key, writer, batch, entry)
    VALUES (_journal.number, _journal.at, _journal.tenant, _journal.action, _journal.status,
        holdfast._key_column(_journal.key || coalesce('/' || _journal.sequence, '')), 0, 0,
        holdfast._entry(_journal.action, _journal.status, remember, answer, _journal.tenant, _journal.key,
            _journal.sequence, _journal.at, _journal.expires_at, digest, rows));
END $$;
COMMENT ON FUNCTION holdfast._journal IS
    'Add an entry. The number has been drawn from journal_number after all locks were held.';

CREATE FUNCTION holdfast._answer_image(entry bytea) RETURNS bytea LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    answer constant integer := get_byte(entry, 12);
    place integer := 24 + get_byte(entry, 13) + holdfast._get2(entry, 14);
BEGIN
    IF answer >= 254 THEN -- a status alone, or with the text of a refusal
        RETURN NULL;
    END IF;
    place := place + CASE get_byte(entry, 10) WHEN 1 THEN 40 WHEN 2 THEN 48 ELSE 0 END;
    FOR i IN 1 .. answer LOOP
        place := place + 6 + holdfast._get4(entry, place + 2)::integer;
    END LOOP;
    RETURN substring(entry, place + 7, holdfast._get4(entry, place + 2)::integer);
END $$;
COMMENT ON FUNCTION holdfast._answer_image IS
    'The image of the row that the entry''s call was answered with; NULL if with no row.';

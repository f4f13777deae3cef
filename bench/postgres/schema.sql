-- place_hold for PostgreSQL: as one call, and for arrays. Answers "0 201 id placed_at expires_at", "0 409" if
-- the resource is not available, "0 422" if the token was used for something else; "1 ..." is the first
-- answer again.
CREATE TABLE resources (
  name text PRIMARY KEY,
  capacity bigint NOT NULL,
  taken bigint NOT NULL DEFAULT 0,
  open boolean NOT NULL DEFAULT true
) WITH (fillfactor = 50); -- room for the next version of a row in its page, so that no index is touched

CREATE TABLE holds (
  id bigint PRIMARY KEY,
  resource text NOT NULL,
  requester text NOT NULL,
  state "char" NOT NULL,
  placed_at bigint NOT NULL,
  expires_at bigint NOT NULL
);
CREATE INDEX holds_due ON holds (expires_at) WHERE state = 'h';

CREATE TABLE tokens (
  token text PRIMARY KEY,
  asked text NOT NULL,
  answer text NOT NULL,
  expires_at bigint NOT NULL
);
CREATE INDEX tokens_due ON tokens USING brin (expires_at);

CREATE SEQUENCE hold_id CACHE 1000;

CREATE FUNCTION place_hold(a_token text, a_resource text, a_requester text, a_duration bigint) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  v_asked text := a_resource || ' ' || a_requester || ' ' || a_duration;
  v_now bigint := extract(epoch FROM clock_timestamp()) * 1000;
  v_id bigint := nextval('hold_id');
  v_answer text := '201 ' || v_id || ' ' || v_now || ' ' || v_now + a_duration;
  v_seen tokens%ROWTYPE;
BEGIN
  -- The token is looked up and written in one step, which is cheaper for a fresh one than to ask first. A
  -- second call with the same token waits here and then finds it.
  INSERT INTO tokens VALUES (a_token, v_asked, v_answer, v_now + 86400000) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    SELECT * INTO v_seen FROM tokens WHERE token = a_token;
    RETURN CASE WHEN v_seen.asked = v_asked THEN '1 ' || v_seen.answer ELSE '0 422' END;
  END IF;
  UPDATE resources SET taken = taken + 1 WHERE name = a_resource AND open AND taken < capacity;
  IF NOT FOUND THEN
    UPDATE tokens SET answer = '409' WHERE token = a_token;
    RETURN '0 409';
  END IF;
  INSERT INTO holds VALUES (v_id, a_resource, a_requester, 'h', v_now, v_now + a_duration);
  RETURN '0 ' || v_answer;
END $$;

-- The same for arrays; the answers are lines. All new and all available, which is the rule, goes in sets;
-- anything else goes one by one. A token that another call is inserting at this moment fails the call, which
-- then has changed nothing and may be repeated.
CREATE FUNCTION place_holds(a_tokens text[], a_resources text[], a_requesters text[], a_duration bigint)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_now bigint := extract(epoch FROM clock_timestamp()) * 1000;
  v_count int := cardinality(a_tokens);
  v_ids bigint[];
  v_lines text;
BEGIN
  -- Rows are locked in the order of their names, so that two calls cannot wait for each other.
  PERFORM 1 FROM resources WHERE name = ANY (a_resources) ORDER BY name FOR UPDATE;
  IF EXISTS (SELECT 1 FROM tokens WHERE token = ANY (a_tokens))
     OR (SELECT count(DISTINCT t) FROM unnest(a_tokens) t) < v_count
     OR EXISTS (SELECT 1 FROM (SELECT r, count(*) AS n FROM unnest(a_resources) r GROUP BY r) w
                LEFT JOIN resources ON name = r WHERE name IS NULL OR NOT open OR taken + n > capacity) THEN
    SELECT string_agg(place_hold(t, r, q, a_duration), E'\n' ORDER BY i) INTO v_lines
      FROM unnest(a_tokens, a_resources, a_requesters) WITH ORDINALITY AS u (t, r, q, i);
    RETURN v_lines;
  END IF;
  SELECT array_agg(nextval('hold_id')) INTO v_ids FROM generate_series(1, v_count);
  INSERT INTO tokens
    SELECT t, r || ' ' || q || ' ' || a_duration, '201 ' || h || ' ' || v_now || ' ' || v_now + a_duration,
           v_now + 86400000
      FROM unnest(a_tokens, a_resources, a_requesters, v_ids) AS u (t, r, q, h) ORDER BY t;
  UPDATE resources SET taken = taken + n
    FROM (SELECT r, count(*) AS n FROM unnest(a_resources) r GROUP BY r) w WHERE name = r;
  INSERT INTO holds
    SELECT h, r, q, 'h', v_now, v_now + a_duration FROM unnest(a_resources, a_requesters, v_ids) AS u (r, q, h);
  SELECT string_agg('0 201 ' || h || ' ' || v_now || ' ' || v_now + a_duration, E'\n' ORDER BY i) INTO v_lines
    FROM unnest(v_ids) WITH ORDINALITY AS u (h, i);
  RETURN v_lines;
END $$;

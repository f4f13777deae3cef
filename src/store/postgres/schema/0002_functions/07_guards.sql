-- ---- Guards -------------------------------------------------------------------------------------

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
COMMENT ON FUNCTION holdfast._foreign IS
    'Has it characters outside those that Unicode 13 has in its larger blocks? Of those that it '
    'has, the normal form never changes, so that this database and a server agree whatever their '
    'versions are; of others nothing is sure.';

CREATE FUNCTION holdfast._fold(identity text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    -- Latin, Greek, Cyrillic and Armenian, as they are after decomposition: each letter and what it
    -- is folded to.
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
COMMENT ON FUNCTION holdfast._fold IS
    'Unicode case folding of what is not _foreign; NULL where it is not known here.';

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
COMMENT ON FUNCTION holdfast._match IS
    'The identity as it is compared under a match rule (src/core/match.c); NULL if it is not '
    'valid. What cannot be done exactly as a server does it is an error.';

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
    'casefold, normalize and hash (last), with commas between them. ok, invalid-request.';

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

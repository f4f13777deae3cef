-- payment.sql: charge an account once, however often the request comes.
--
-- Check, effect and record are one transaction of the application's own: either the claim, the debit, the charge and the
-- response that the next attempt gets are all there, or nothing is. A second attempt that comes at the same time waits for
-- the first to commit, and then finds its response. The account carries the fence of its newest writer, so that one who
-- was asleep for a while (and holds an older lease) can no longer write.
--
-- The tables are made by payment-tables.sql; the role that pays owns nothing and has been given holdfast_application.
-- Real output, on a database (named by PGDATABASE) where both have just been done:
--
-- $ psql -X -q -U billing -f examples/payment.sql -v key=K -v amount=100 -v token=42
-- charged: {"charge": "C1"}. The balance is 900.
--
-- The answer got lost on its way, so the client sends the same again:
--
-- $ psql -X -q -U billing -f examples/payment.sql -v key=K -v amount=100 -v token=42
-- charged before: {"charge": "C1"}. The balance is 900.
--
-- A writer that was asleep since it got token 41 wakes up; and its own retry hears the same:
--
-- $ psql -X -q -U billing -f examples/payment.sql -v key=L -v amount=100 -v token=41
-- not charged: stale-fence. The balance is 900.
-- $ psql -X -q -U billing -f examples/payment.sql -v key=L -v amount=100 -v token=41
-- not charged before: "stale-fence". The balance is 900.
--
-- The key of the first payment with another amount is a mistake of the client:
--
-- $ psql -X -q -U billing -f examples/payment.sql -v key=K -v amount=200 -v token=43
-- refused: token-collision. The balance is 900.
--
-- A server answers the same: to POST /v1/claims with {"key":"K","payload":{"account":"alice","amount":100}} it says
-- that the claim is completed, with "response":{"charge":"C1"}. And a payment that was begun and completed through a
-- server is one that was made before to this script.

\set ON_ERROR_STOP on
\set ECHO none
\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;

BEGIN;

-- Check: is this the first request with the key? What the client asked for is the payload, so that the same key with
-- another amount is told apart. The response is read as JSON, whoever stored it.
SELECT status, status = 'ok' AS ok, replayed, state = 'completed' AS done, fence,
    holdfast.as_json(response) AS response
FROM holdfast.begin(:'key', holdfast.payload(json_build_object('account', 'alice', 'amount', :amount))) \gset claim_

\if :claim_replayed
    \if :claim_done
        SELECT 'charged before: ' || :'claim_response' AS said \gset
    \else
        SELECT 'not charged before: ' || :'claim_response' AS said \gset
    \endif
\elif :claim_ok
    -- Fencing: whoever writes to this account must have a newer token than all before.
    SELECT status, status = 'ok' AS ok
    FROM holdfast.write(:'key' || '/alice', 'account/alice', :'key', fence => :token) \gset write_
    \if :write_ok
        -- Effect.
        UPDATE shop.account SET balance = balance - :amount WHERE name = 'alice';
        INSERT INTO shop.charge (account, amount) VALUES ('alice', :amount)
        RETURNING jsonb_build_object('charge', 'C' || number) AS response \gset
        -- Record.
        SELECT status, status = 'ok' AS ok
        FROM holdfast.complete(:'key', :claim_fence, holdfast.json(:'response')) \gset complete_
        \if :complete_ok
            SELECT 'charged: ' || :'response' AS said \gset
        \else
            ROLLBACK AND CHAIN;
            SELECT 'not charged: ' || :'complete_status' AS said \gset
        \endif
    \else
        SELECT status FROM holdfast.fail(:'key', :claim_fence, :'write_status') \gset
        SELECT 'not charged: ' || :'write_status' AS said \gset
    \endif
\else
    SELECT 'refused: ' || :'claim_status' AS said \gset
\endif

COMMIT;

SELECT :'said' || '. The balance is ' || balance || '.' FROM shop.account WHERE name = 'alice';

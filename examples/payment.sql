-- payment.sql: charge an account once, however often the request comes.
--
-- Check, effect and record are one transaction of the application's own: either the claim, the debit, the charge and the
-- response that the next attempt gets are all there, or nothing is. A second attempt that comes at the same time waits for
-- the first to commit, and then finds its response. The account carries the fence of its newest writer, so that one who
-- was asleep for a while (and holds an older lease) can no longer write.
--
-- Real output, on a database where the schema holdfast has just been made:
--
-- $ psql -X -q -f examples/payment.sql -v key=K -v amount=100 -v token=42
-- charged: C1. The balance is 900.
--
-- The answer got lost on its way, so the client sends the same again:
--
-- $ psql -X -q -f examples/payment.sql -v key=K -v amount=100 -v token=42
-- charged before: C1. The balance is 900.
--
-- A writer that was asleep since it got token 41 wakes up; and its own retry hears the same:
--
-- $ psql -X -q -f examples/payment.sql -v key=L -v amount=100 -v token=41
-- not charged: stale-fence. The balance is 900.
-- $ psql -X -q -f examples/payment.sql -v key=L -v amount=100 -v token=41
-- not charged before: stale-fence. The balance is 900.
--
-- The key of the first payment with another amount is a mistake of the client:
--
-- $ psql -X -q -f examples/payment.sql -v key=K -v amount=200 -v token=43
-- refused: token-collision. The balance is 900.

\set ON_ERROR_STOP on
\set ECHO none
\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;

-- The application's own tables.
CREATE SCHEMA IF NOT EXISTS shop;
CREATE TABLE IF NOT EXISTS shop.account (name text PRIMARY KEY, balance integer NOT NULL CHECK (balance >= 0));
CREATE TABLE IF NOT EXISTS shop.charge (
    number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account text NOT NULL REFERENCES shop.account,
    amount integer NOT NULL
);
INSERT INTO shop.account VALUES ('alice', 1000) ON CONFLICT DO NOTHING;

BEGIN;

-- Check: is this the first request with the key? What the client asked for is the payload, so that the same key with
-- another amount is told apart.
SELECT status, status = 'ok' AS ok, replayed, state = 'completed' AS done, fence,
    convert_from(response, 'UTF8') AS response
FROM holdfast.begin(:'key', 'charge alice ' || :'amount') \gset claim_

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
        INSERT INTO shop.charge (account, amount) VALUES ('alice', :amount) RETURNING 'C' || number AS charge \gset
        -- Record.
        SELECT status FROM holdfast.complete(:'key', :claim_fence, :'charge') \gset
        SELECT 'charged: ' || :'charge' AS said \gset
    \else
        SELECT status FROM holdfast.fail(:'key', :claim_fence, :'write_status') \gset
        SELECT 'not charged: ' || :'write_status' AS said \gset
    \endif
\else
    SELECT 'refused: ' || :'claim_status' AS said \gset
\endif

COMMIT;

SELECT :'said' || '. The balance is ' || balance || '.' FROM shop.account WHERE name = 'alice';

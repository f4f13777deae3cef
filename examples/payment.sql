-- payment.sql: charge an account once, however often the client retries.
--
-- Check, effect and record are one transaction of the application: either the claim, the debit, the charge and the
-- stored response all exist, or none of them does. A second attempt at the same time waits for the first to commit, and
-- then finds its response. The account has the fence of its newest writer, so a late writer with an older lease is
-- refused.
--
-- payment-tables.sql creates the tables. The role that pays owns nothing and was granted holdfast_application.
-- Real output, on a database (named by PGDATABASE) where both have just been done:
--
-- $ psql -X -q -U billing -f examples/payment.sql -v key=K -v amount=100 -v token=42
-- charged: {"charge": "C1"}. The balance is 900.
--
-- The answer was lost, so the client retries:
--
-- $ psql -X -q -U billing -f examples/payment.sql -v key=K -v amount=100 -v token=42
-- charged before: {"charge": "C1"}. The balance is 900.
--
-- A late writer has the older fence 41 and is refused; its retry gets the same answer:
--
-- $ psql -X -q -U billing -f examples/payment.sql -v key=L -v amount=100 -v token=41
-- not charged: stale-fence. The balance is 900.
-- $ psql -X -q -U billing -f examples/payment.sql -v key=L -v amount=100 -v token=41
-- not charged before: "stale-fence". The balance is 900.
--
-- The client uses the key of the first payment with another amount, which is a mistake:
--
-- $ psql -X -q -U billing -f examples/payment.sql -v key=K -v amount=200 -v token=43
-- refused: token-collision. The balance is 900.
--
-- A server answers the same: POST /v1/claims with {"key":"K","payload":{"account":"alice","amount":100}} returns the
-- completed claim, with "response":{"charge":"C1"}. And for a payment that was completed through a server, this script
-- answers "charged before".

\set ON_ERROR_STOP on
\set ECHO none
\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;

BEGIN;

-- Check: is this the first request with the key? The payload is what the client asked for, so the same key with another
-- amount is a collision. as_json reads the response, whether this script or a server stored it.
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
    -- Fencing: a writer to this account must have a higher fence than all before.
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

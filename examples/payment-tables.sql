-- payment-tables.sql: the application's own tables for payment.sql. Run it once, as a role that may create a schema.
-- `role` is the role that will pay; it was granted holdfast_application:
--
-- $ psql -X -q -f examples/payment-tables.sql -v role=billing

\set ON_ERROR_STOP on
\set ECHO none
SET client_min_messages = warning;

CREATE SCHEMA IF NOT EXISTS shop;
CREATE TABLE IF NOT EXISTS shop.account (name text PRIMARY KEY, balance integer NOT NULL CHECK (balance >= 0));
CREATE TABLE IF NOT EXISTS shop.charge (
    number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account text NOT NULL REFERENCES shop.account,
    amount integer NOT NULL
);
INSERT INTO shop.account VALUES ('alice', 1000) ON CONFLICT DO NOTHING;

GRANT USAGE ON SCHEMA shop TO :"role";
GRANT SELECT, UPDATE ON shop.account TO :"role";
GRANT SELECT, INSERT ON shop.charge TO :"role";

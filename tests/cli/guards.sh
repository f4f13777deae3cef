#!/usr/bin/env bash
# Guards: setting up, asking, recording, and both in one step.
set -eu
. "$(dirname "$0")/../support/cli.sh"
export HOLDFAST_DATA=$work/store

try 0 guard pay --window 5m --json
json 'keys(j) === "name window match on_unavailable durable created_at"'
json 'j.name === "pay" && j.window === "5m" && j.match.join() === "exact" && j.on_unavailable === "open"'
json 'j.durable === true && time(j.created_at)'
cp out first
hasnt err "note"
try 0 guard pay --json
same first out
try 0 guard mail --window 1h --match trim,casefold,normalize,hash --on-unavailable closed --durable no --json
json 'j.match.join() === "trim,casefold,normalize,hash" && j.on_unavailable === "closed" && !j.durable'
has err "note: this guard remembers identities only while one process has the store open"
try 0 guard mail
has out "match           trim,casefold,normalize,hash"
has out "on unavailable  closed"
has out "durable         no  (only in memory, while the store is open)"
try 0 admit mail x@example.org
has out "not-seen"
try 0 admit mail x@example.org # forgotten, as the note said
has out "not-seen"
try 1 guard none --json
json 'j.code === "not-known"'
has err 'there is no guard "none"; check the name and the tenant, or set it up: holdfast guard NAME --window D'
try 1 guard bad --window 1h --match hash,trim
has err "invalid-request"
try 1 guard bad --window 1h --match trim,trim
try 1 guard bad --window 0
has err '--window "0" is too short'

# The match rule stays while an identity is under guard.
try 0 guard rule --window 1h --match trim
try 0 record rule x
try 1 guard rule --window 1h --match casefold
has err "window-not-elapsed"
has err "the guard has live entries, and its rule is trim"
try 0 guard rule --window 2h --match trim
try 0 guard rule --window 1h --match casefold --force --json
json 'j.match.join() === "casefold"'
try 2 guard rule --force
has err "guard: --force needs --window D"

try 0 check pay 17
has out "not-seen"
try 0 check pay 17 --json
json 'keys(j) === "seen" && j.seen === false'
try 0 record pay 17 --result 'receipt 4711' --json
json 'keys(j) === "ok" && j.ok === true'
try 0 check pay 17 --json
json 'keys(j) === "seen recorded_at expires_at result" && j.seen && j.result === "receipt 4711"'
json 'Date.parse(j.expires_at) - Date.parse(j.recorded_at) === 300000'
cp out first
try 0 record pay 17 --result 'another receipt'
has out "ok"
try 0 check pay 17 --json
same first out
try 0 check pay 17
has out "seen"
has out "recorded  20"
has out "result    receipt 4711"

try 0 admit pay 18 --json
json 'j.seen === false'
try 0 admit pay 18 --json
json 'j.seen === true && time(j.recorded_at)'
try 0 admit pay 18
checks=$((checks + 1))
[ "$(head -1 out)" = seen ] || fail "the first line is not the answer"

# A match rule that lasts, unlike the guard in memory alone.
try 0 guard news --window 1h --match trim,casefold
try 0 admit news ' Ann@Example.org '
has out "not-seen"
try 0 admit news 'ann@example.ORG'
hasnt out "not-seen"

# A short window closes.
try 0 guard blink --window 1ms
try 0 record blink x
sleep 0.02
try 0 check blink x --json
json 'j.seen === false'

for verb in check record admit; do
  try 1 "$verb" none x --json
  json 'j.code === "not-known" && j.status === 404'
  has err 'there is no guard "none"'
  try 1 "$verb" pay '' --json
  json 'j.code === "invalid-request" && j.status === 400'
  has err "IDENTITY is empty"
done
try 2 check pay x --result r
has err "unknown option"
try 1 check pay 17 --tenant other
has err "not-known"
finish

#!/usr/bin/env bash
# Lists: newest first, filters, limits, cursors, and nothing made by looking.
set -eu
. "$(dirname "$0")/../support/cli.sh"

# Looking makes no store.
for what in "list" "show 00000000000000000000000000" "check g x" "resource r" "guard g"; do
  # shellcheck disable=SC2086
  try 3 $what --data "$work/none"
  has err "$work/none"
  # shellcheck disable=SC2086
  try 3 $what --data "$work/none" --json
  json 'j.code === "store-absent" && j.status === 503'
done
checks=$((checks + 1))
[ ! -e none ] || fail "a store was made by looking"

export HOLDFAST_DATA=$work/store
try 0 resource small --capacity 5
try 0 list
has err "no holds"
hasnt err "options"
try 0 list --requester nobody
has err "no holds match these options"
try 0 list --json
json 'keys(j) === "holds next_cursor" && j.holds.length === 0 && j.next_cursor === null'
for i in 1 2 3 4 5; do try 0 hold small --for "guest-$i" --duration 15m --key "s$i" --json; done
last_id=$(field id)
try 0 hold other --for guest-1 --duration 15m --key o1 --json
other=$(field id)
try 0 confirm "$last_id" --key c1
try 0 release "$other" --key r1

try 0 list --json
json 'j.holds.length === 6 && j.holds[0].resource === "other" && j.holds[5].requester === "guest-1"'
json 'j.holds.every(h => h.id.length === 26) && new Set(j.holds.map(h => h.id)).size === 6'
try 0 list --state held --json
json 'j.holds.length === 4 && j.holds.every(h => h.state === "held")'
try 0 list --state confirmed --json
json 'j.holds.length === 1 && j.holds[0].requester === "guest-5"'
try 0 list --state released --json
json 'j.holds.length === 1 && j.holds[0].resource === "other"'
try 0 list --state expired --json
json 'j.holds.length === 0'
try 0 list --resource small --json
json 'j.holds.length === 5'
try 0 list --requester guest-1 --json
json 'j.holds.length === 2'
try 0 list --requester guest-1 --resource other --json
json 'j.holds.length === 1'
try 0 list --from 2100-01-01 --json
json 'j.holds.length === 0'
try 0 list --to 2100-01-01 --from 2020-01-01T00:00:00+01:00 --json
json 'j.holds.length === 6'
try 0 list --to @1000 --json
json 'j.holds.length === 0'
try 0 list --tenant other --json
json 'j.holds.length === 0'

# A page at a time.
try 0 list --limit 4 --json
json 'j.holds.length === 4 && typeof j.next_cursor === "string"'
cursor=$(field next_cursor)
try 0 list --limit 4 --cursor "$cursor" --json
json 'j.holds.length === 2 && j.next_cursor === null && j.holds[1].requester === "guest-1"'
try 0 list --limit 0 --json
json 'j.holds.length === 6'
try 0 list --limit 2
has err "--cursor"
has out "REQUESTER"
checks=$((checks + 1))
[ "$(wc -l <out)" = 3 ] || fail "not a title and two rows"
try 0 list
hasnt err "--cursor"
finish

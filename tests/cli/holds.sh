#!/usr/bin/env bash
# The life of a hold through the program: every way to end it, every refusal, and retries.
set -eu
. "$(dirname "$0")/../support/cli.sh"
export HOLDFAST_DATA=$work/store

# Place, and hear the same answer again.
try 0 hold room-307 --for guest-91 --duration 15m --key k1 --json
json 'keys(j) === "id resource requester state placed_at expires_at"'
json 'j.resource === "room-307" && j.requester === "guest-91" && j.state === "held" && j.id.length === 26'
json 'time(j.placed_at) && Date.parse(j.expires_at) - Date.parse(j.placed_at) === 900000'
hasnt err "replayed"
id=$(field id)
cp out first
try 0 hold room-307 --for guest-91 --duration 15m --key k1 --json
same first out
has err "(replayed: first answered at 20"
try 0 hold --json --key=k1 --duration=15m --for=guest-91 -- room-307
same first out

# For people: the same on stdout for the replay.
try 0 hold room-308 --for guest-91 --duration 90s --key h1
has out "state      held"
has out "(90s)"
cp out first
try 0 hold room-308 --for guest-91 --duration 90s --key h1
same first out
has err "(replayed: first answered at 20"

# No key: one is made, and works for a retry.
try 0 hold room-309 --for guest-91 --duration 15m --json
has err "key: 0"
key=$(sed -n 's/^key: //p' err)
checks=$((checks + 1))
[[ $key =~ ^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$ ]] || fail "no UUIDv7: $key"
cp out first
try 0 hold room-309 --for guest-91 --duration 15m --json --key "$key"
same first out
hasnt err "key:"

# One key, one action and one set of parameters.
try 1 hold room-307 --for guest-92 --duration 15m --key k1
has err "token-collision"
try 1 hold room-307 --for guest-91 --duration 16m --key k1 --json
json 'keys(j) === "type title status detail code retry" && j.retry === "new-key" && j.type === "urn:holdfast:token-collision"'
json 'j.status === 422 && j.code === "token-collision" && j.title && j.detail'
has err "token-collision: "
try 1 confirm "$id" --key k1
has err "token-collision"

# A refusal is remembered too.
try 1 hold room-307 --for guest-92 --duration 15m --key k2 --json
json 'j.code === "resource-unavailable" && j.status === 409'
cp out first
try 0 release "$id" --key k3 --json
json 'j.state === "released" && time(j.released_at) && keys(j).endsWith("expires_at released_at")'
try 1 hold room-307 --for guest-92 --duration 15m --key k2 --json
same first out
has err "(replayed: "
try 0 hold room-307 --for guest-92 --duration 15m --key k4 --json
id=$(field id)

# Ended is ended.
try 0 confirm "$id" --key c1 --json
json 'j.state === "confirmed" && time(j.confirmed_at)'
cp out first
try 0 confirm "$id" --key c1 --json
same first out
for verb in confirm release expire; do
  try 1 "$verb" "$id" --key "again-$verb" --json
  json 'j.code === "not-held" && j.status === 409'
done
try 0 show "$id" --json
same first out
try 0 show "$id"
has out "confirmed  20"
hasnt out "reversed"

# The payment came late: a new hold in the place of the expired one, or the money back.
try 0 hold late-room --for guest-92 --duration 1ms --key late-1 --json
late=$(field id)
try 0 confirm "$late" --late reacquire --key late-2 --json
json "j.reacquires === '$late' && j.state === 'confirmed' && j.id !== '$late'"
new=$(field id)
try 0 show "$new"
has out "reacquires  $late"
try 0 show "$late"
has out "state      expired"
try 0 hold full-room --for guest-92 --duration 1ms --key late-3 --json
late=$(field id)
try 0 hold full-room --for guest-93 --duration 1h --key late-4
try 1 confirm "$late" --late reacquire --key late-5 --json
json "j.code === 'window-elapsed' && j.verdict === 'refund'"
has err "Refund the payment"
try 2 confirm "$late" --late perhaps --key late-6

# A client that numbers its requests sends its number in place of a key.
try 0 hold till-room --for guest-92 --duration 1h --client 'till 4' --sequence 1 --json
hasnt err "key:"
json 'j.state === "held"'
till=$(field id)
cp out first
try 0 hold till-room --for guest-92 --duration 1h --client 'till 4' --sequence 1 --json
has err "(replayed: first answered at 20"
same first out
try 1 hold till-room --for guest-93 --duration 1h --client 'till 4' --sequence 1
has err "token-collision"
try 0 confirm "$till" --client 'till 4' --sequence 2
try 1 hold other --for guest-93 --duration 1h --client 'till 4' --sequence 1000003
has err "invalid-request: sequence: 1000003 is more than 1000000 above the highest number"
try 0 reverse "$till" --client 'till 4' --sequence 300
try 1 release "$till" --client 'till 4' --sequence 44
has err "window-elapsed: sequence: 44 is 256 or more below the highest number"
try 0 trace --client 'till 4' --sequence 1
has out 'Number 1 of client "till 4": 1 event'
has out "bound until the client's highest number is 257"
try 0 trace --client 'till 4' --sequence 1 --json
json 'j.found && j.events.length === 1 && j.events[0].sequence === 1 && j.events[0].client === "till 4"'
try 1 trace --client 'till 4' --sequence 3
has err 'No request with number 3 of client "till 4" is in the journal'
try 2 trace --client 'till 4'
has err "--client and --sequence belong together"
try 2 trace x --client 'till 4' --sequence 1
try 2 trace
try 2 release "$till" --sequence 5
has err "--client and --sequence belong together"
try 2 release "$till" --key k --client c --sequence 5
has err "--key and --client exclude each other"
try 2 release "$till" --client c --sequence 0
has err "--sequence: \"0\" is invalid"
try 1 release "$till" --client '' --sequence 1
has err "--client is empty"

# Giving a confirmed unit back, once.
try 0 reverse "$id" --key r1 --json
json "j.reverses === '$id' && j.state === 'released' && j.id !== '$id' && j.resource === 'room-307'"
reversal=$(field id)
cp out first
try 0 reverse "$id" --key r1 --json
same first out
try 1 reverse "$id" --key r2
has err "not-held"
try 1 reverse "$reversal" --key r3
has err "not-held"
try 0 show "$id" --json
json 'j.state === "confirmed"'
try 0 show "$reversal"
has out "reverses   $id"
hasnt out "reversed "
try 0 show "$id" # it stays confirmed, and yet was given back
has out "state      confirmed"
has out "reversed   20"
has out "by $reversal"
try 0 confirm "$id" --key c1 # the first answer, and nothing that came later
hasnt out "reversed"
try 0 list --resource room-307
has out "$reversal  released (reversal)"
has out "$id  confirmed "
try 0 hold room-307 --for guest-93 --duration 15m --key k5 --json
id=$(field id)

# Time.
try 1 expire "$id" --key e1 --json
json 'j.code === "window-not-elapsed" && j.status === 409'
try 0 hold room-310 --for guest-91 --duration 500ms --key k6 --json
id=$(field id)
sleep 0.6
try 0 show "$id"
has out "overdue"
try 0 list --resource room-310
has out "$id  held (overdue) "
try 1 confirm "$id" --key c2 --json # still held, but too late; this command's end expires it
json 'j.code === "window-elapsed" && j.status === 409'
try 1 confirm "$id" --key c3 --json # expired by now
json 'j.code === "not-held" && j.status === 409'
try 0 hold room-310 --for guest-92 --duration 15m --key k7 --json
try 0 show "$id" --json
json 'j.state === "expired" && time(j.expired_at) && j.expired_at >= j.expires_at'

# Nobody home.
for verb in confirm release expire reverse; do
  try 1 "$verb" 00000000000000000000000000 --key "none-$verb" --json
  json 'j.code === "not-known" && j.status === 404'
  try 1 "$verb" nonsense --key "nonsense-$verb"
  has err 'not-known: ID "nonsense" is not the id of a hold'
done
try 1 show 00000000000000000000000000 --json
json 'j.code === "not-known"'
try 1 show nonsense
has err '"nonsense"'

# Fences only rise.
try 0 hold fenced --for a --duration 15m --fence 5 --key f1 --json
try 0 resource fenced --capacity 9 --json
json 'j.fence === 5'
try 1 hold fenced --for a --duration 15m --fence 5 --key f2 --json
json 'j.code === "stale-fence" && j.status === 412'
try 0 hold fenced --for a --duration 15m --fence 6 --key f3

# Tenants do not see each other.
try 0 hold room-307 --for guest-1 --duration 15m --key k1 --tenant other --json
id=$(field id)
try 1 show "$id"
try 0 show "$id" --tenant other
HOLDFAST_TENANT=other try 0 show "$id"

# Names are bytes of UTF-8, and harmless on a terminal.
try 0 hold $'r\xc3\xb6om\033[31m' --for $'a\tb' --duration 1m --json
json 'j.resource === "r\u00f6om\u001b[31m" && j.requester === "a\tb"'
try 0 list --resource $'r\xc3\xb6om\033[31m'
has out 'öom\x1b[31m'
try 0 hold $'see\xe2\x80\xaegpj.exe' --for $'two\xe2\x80\xa8lines' --duration 1m # would be read backwards, would be two
has out 'see\u{202e}gpj.exe'
has out 'two\u{2028}lines'
# What is long is cut for a sentence, not in the middle of a character.
long=$(printf 'x%.0s' $(seq 59))
try 1 show "$long"$'\xc3\xa4 and more'
has err "\"$long...\""
try 1 show "x$long and more"
has err "\"x$long...\""

# ==== Resources: showing, capacity, closing and opening, and the strict registry. ====
export HOLDFAST_DATA=$work/resources

try 0 resource hall --capacity 2 --json
json 'keys(j) === "name capacity held confirmed available open fence"'
json 'j.name === "hall" && j.capacity === 2 && j.held === 0 && j.confirmed === 0 && j.available === 2'
json 'j.open === true && j.fence === 0'
cp out first
try 0 resource hall --json
same first out
try 0 resource hall
has out "capacity   2  (0 held, 0 confirmed)"
has out "available  2"
try 1 resource cellar --json
json 'j.code === "not-known"'

try 0 hold hall --for a --duration 15m --key h1
try 0 hold hall --for b --duration 15m --key h2
try 1 hold hall --for c --duration 15m --key h3
has err "resource-unavailable"
try 0 resource hall --json
json 'j.held === 2 && j.available === 0'
try 1 resource hall --capacity 1 --json
json 'j.code === "resource-unavailable"'
try 0 resource hall --capacity 3
try 0 resource hall --close --json
json 'j.open === false && j.available === 0 && j.capacity === 3'
try 1 hold hall --for c --duration 15m --key h4
try 0 resource hall --close --json
try 0 resource hall --open --capacity 4 --json
json 'j.open === true && j.available === 2'
try 0 hold hall --for c --duration 15m --key h5

# Overdue holds count as held until they are expired, and the output says so.
try 0 resource late --capacity 3
try 0 hold late --for a --duration 15m --key l1
try 0 hold late --for b --duration 6s --key l2
try 0 hold late --for c --duration 6s --key l3
for _ in $(seq 600); do
  try 0 resource late
  ! grep -q 'of which 2 overdue' out || break
  sleep 0.1
done
has out "capacity   3  (3 held of which 2 overdue, 0 confirmed)"
has out "available  0  (and the overdue ones, which a new hold expires first)"
try 0 resource late --json
json 'j.held === 3 && j.available === 0'
try 0 hold late --for d --duration 15m --key l4
try 0 resource late
has out "capacity   3  (2 held, 0 confirmed)"
checks=$((checks + 1))
grep -qx 'available  1' out || fail "not one unit is free"

# Open registry: a first hold makes it. Strict: it does not.
try 0 hold shed --for a --duration 15m --key s1
try 0 resource shed --json
json 'j.capacity === 1 && j.held === 1'
try 1 hold barn --for a --duration 15m --key s2 --registry strict --json
json 'j.code === "resource-unavailable"'
try 1 hold barn --for a --duration 15m --key s3 # it stays as it was set
HOLDFAST_REGISTRY=strict try 0 hold barn --for a --duration 15m --key s4 --registry open

try 2 resource hall --open --close
has err "exclude each other"
# Looking does not configure.
for option in "--registry strict" "--idempotency-window 1h" "--token-max-length 9"; do
  # shellcheck disable=SC2086
  try 2 resource hall $option
  has err "${option% *} is only for commands that write"
  # shellcheck disable=SC2086
  try 2 guard none $option
  has err "is only for commands that write"
done
HOLDFAST_REGISTRY=strict try 0 resource hall

# ==== Lists: newest first, filters, limits, cursors, and nothing made by looking. ====
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

export HOLDFAST_DATA=$work/lists
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

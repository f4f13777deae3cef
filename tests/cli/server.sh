#!/usr/bin/env bash
# Every command through a server is what it is with a directory: the same words, the same exit code. Then who may
# call, and TLS.
set -eu
. "$(dirname "$0")/../support/cli.sh"
. "$(dirname "$0")/../support/server.sh"
long=$(printf 'x%.0s' $(seq 1025))

serve --data "$work/remote"
declare -A local_id remote_id

# both CODE ARGUMENTS...: run it on a directory and through the server, each with its own ids for @NAME. What was said
# must be equal but for ids, keys that were made, and times.
mask() {
  sed -E -i 's/[0-9a-hjkmnp-tv-z]{26}/ID/g; s/(--cursor |"next_cursor":")[0-9]+/\1CURSOR/g; s/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,12}Z/TIME/g
    s/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/UUID/g' "$@"
}
both() {
  local code=$1 here=() there=() argument
  shift
  for argument in "$@"; do
    case $argument in
    @[a-z]) here+=("${local_id[${argument#@}]}") there+=("${remote_id[${argument#@}]}") ;;
    *) here+=("$argument") there+=("$argument") ;;
    esac
  done
  try "$code" "${here[@]}" --data "$work/local"
  cp out local.out && cp err local.err
  try "$code" "${there[@]}" --server "$url"
  cp out remote.out && cp err remote.err
  mask local.out local.err remote.out remote.err
  same local.out remote.out
  same local.err remote.err
}
# hold NAME ARGUMENTS...: the same for a hold; its ids are kept under NAME.
hold() {
  local name=$1 key=$2
  shift 2
  both 0 hold "$@" --key "$key" --json
  remote_id[$name]=$(field id)
  try 0 hold "$@" --key "$key" --json --data "$work/local"
  local_id[$name]=$(field id)
}

# ---- Holds ----
hold a k1 room-307 --for guest-91 --duration 15m
both 0 hold room-307 --for guest-91 --duration 15m --key k1
both 0 hold room-307 --for guest-91 --duration 15m --key k1 --json
both 1 hold room-307 --for guest-92 --duration 15m --key k1
both 1 hold room-307 --for guest-92 --duration 15m --key k1 --json
both 1 hold room-307 --for guest-92 --duration 15m --key k2
both 1 hold room-307 --for guest-92 --duration 15m --key k2 --json
both 0 hold room-308 --for guest-92 --duration 90m
has remote.err "key: UUID"
both 0 hold room-309 --for guest-92 --duration 90m --json
for verb in confirm release expire reverse; do
  both 1 "$verb" 00000000000000000000000000 --key "none-$verb"
  both 1 "$verb" 00000000000000000000000000 --key "none-$verb" --json
  both 1 "$verb" nonsense --key "nonsense-$verb"
  both 1 "$verb" nonsense --key "nonsense-$verb" --json
done
both 0 show @a
both 0 show @a --json
both 1 show 00000000000000000000000000
both 1 show nonsense --json
both 1 expire @a --key e1
both 0 confirm @a --key c1
both 0 confirm @a --key c1 --json
both 1 release @a --key r1
both 0 reverse @a --key v1
both 1 reverse @a --key v2 --json
both 0 show @a # with who gave it back, found among the holds of the resource
has remote.out "reversed   TIME  by ID"
hold b k3 fenced --for a --duration 15m --fence 5
both 1 hold fenced --for a --duration 15m --fence 5 --key f2
both 0 release @b --key r2 --json

# Whatever a name or a key may have in it arrives as it is.
n=0
for name in 'a/b' 'a?b=c&d' 'a%2Fb' '..' '.' $'t\xc3\xb6pf \xf0\x9f\x94\x91' $'tab\tand\033[31m' 'quote"and\back' ' blank ' '#x' '+'; do
  n=$((n + 1))
  both 0 resource "$name" --capacity 3 --json
  both 0 hold "$name" --for "$name" --duration 15m --key "odd-$n" --json
  both 0 resource "$name"
  both 0 list --resource "$name" --requester "$name"
  both 0 guard "$name" --window 1h
  both 0 admit "$name" "$name" --result "$name" --json
  both 0 check "$name" "$name"
done
n=0
for key in $'caf\xc3\xa9' $'\xe2\x82\xac, "x"' 'a"b' 'a\b' ' front' 'back ' '"all"' '""' 'semi;colon, comma' '~!@#$%^&*()_+' 'a/b?c' "${long:0:256}"; do
  n=$((n + 1))
  both 0 hold "keyed-$n" --for q --duration 15m --key "$key"
  both 0 hold "keyed-$n" --for q --duration 15m --key "$key" # replayed, and both know since when
  both 0 trace "$key"
done
has remote.out "Key "

# What a directory takes and HTTP cannot carry.
try 2 hold a --for b --duration 1m --key $'a\tb' --server "$url"
has err "hold: the key has a control character"
try 2 check '..' $'\xff' --server "$url"
has err "check: the identity is not UTF-8, so it cannot be sent to a server"
try 2 record '..' x --result $'\xff' --server "$url"
has err "record: the result is not UTF-8"
try 2 trace $'\xff' --server "$url"
has err "is not UTF-8"
both 1 hold $'a\xff' --for b --duration 1m --key n3 # malformed everywhere
both 1 hold "$long" --for b --duration 1m --key n2
both 1 hold a --for b --duration 1m --key "${long:0:257}"
both 1 hold a --for b --duration 0 --key n8 --json

# ---- Lists ----
both 0 list
both 0 list --json
both 0 list --limit 3
both 0 list --limit 3 --json
both 0 list --limit 0 --json
both 0 list --state confirmed
both 0 list --state expired
has remote.err "no holds match these options"
both 0 list --requester guest-92 --json
both 0 list --from 2100-01-01
both 0 list --from 1969-12-31T23:00:00Z --to @4102444800000 --limit 2
both 0 list --to 1960-01-01
both 2 list --state nonsense
try 0 list --limit 3 --json --server "$url" # a cursor is of its own store
remote_id[c]=$(field next_cursor)
try 0 list --limit 3 --json --data "$work/local"
local_id[c]=$(field next_cursor)
both 0 list --limit 3 --cursor @c

# ---- Claims ----
both 0 claim list
has remote.err "no claims"
both 0 claim begin pay-1 --payload '{"pay":100,"to":"ann"}' --lease 1h
both 1 claim begin pay-1 --payload '{ "to": "ann", "pay": 1e2 }' --lease 1h
has remote.err "in-progress"
both 1 claim begin pay-1 --payload '{"pay":101}'
has remote.err "token-collision"
both 0 claim begin pay-2 --fingerprint 'order 17' --lease 1h --retention 90d --on-abandon retry --json
both 0 claim begin mail-3 --fingerprint "$(printf 'order 17' | sha256sum | cut -c1-64)" --lease 1h
both 0 claim show mail-3 --json
both 0 claim heartbeat mail-3 --fence 3 --lease 2h
both 0 claim abandon mail-3 --fence 3
both 0 claim show mail-3
has remote.out "unknown since"
both 0 claim list
both 0 claim list --json
both 0 claim list --status unknown
both 0 claim list --prefix pay- --limit 1
both 0 claim list --status failed
has remote.err "no claims match these options"
both 0 claim complete pay-1 --fence 1 --response '{"charge":"ch_1"}'
has remote.out '{"charge":"ch_1"}'
both 0 claim begin pay-1 --payload '{"pay":100,"to":"ann"}'
has remote.err "(replayed: first answered at TIME)"
both 0 claim complete pay-1 --fence 1 --response '{"charge":"ch_1"}' --json
both 1 claim complete pay-1 --fence 1 --response 'another'
both 1 claim heartbeat pay-1 --fence 1
both 1 claim complete pay-2 --fence 1
both 1 claim complete pay-2 --fence 99
both 0 claim fail pay-2 --fence 2 --error 'card declined' --retryable
both 0 claim show pay-2 --json
both 0 claim list --status retryable
both 0 claim begin pay-2 --fingerprint 'order 17'
both 0 claim fail pay-2 --fence 4 --error '{"code":7}'
has remote.out '{"code":7}'
both 1 claim show nobody
both 1 claim begin "$long" --payload 1
both 1 claim begin x --payload 1 --lease 0
both 2 claim begin x --payload '{'
both 2 claim begin x
both 2 claim begin x --payload 1 --fingerprint y
both 2 claim list x
both 2 claim show
both 2 claim nonsense x
both 2 claim complete pay-1
has remote.err "claim complete needs --fence N"
both 2 claim show pay-1 --fence 1
both 2 claim complete pay-1 --fence 0

# ---- Leases ----
both 1 lease show nobody
both 0 lease grant leader --holder worker-7 --ttl 1h --key l1
both 0 lease grant leader --holder worker-7 --ttl 1h --key l1 # replayed
has remote.err "(replayed"
both 1 lease grant leader --holder worker-8 --ttl 1h --key l1
has remote.err "token-collision"
both 1 lease grant leader --holder worker-8 --ttl 1h --key l2
has remote.err "lease-held"
both 0 lease grant other --holder worker-8 --ttl 1h
has remote.err "key: UUID"
both 0 lease show leader
both 0 lease show leader --json
both 0 lease renew leader --fence 5 --ttl 2h
both 0 lease renew leader --fence 5 --json
both 1 lease renew leader --fence 99
both 1 lease release leader --fence 1
has remote.err "stale-fence"
both 1 lease delete leader --key l3
has remote.err "lease-held"
both 0 lease release leader --fence 5
has remote.out "released  TIME"
both 0 lease release leader --fence 5 # twice is safe
both 1 lease renew leader --fence 5
has remote.err "not-held"
both 0 lease delete leader --key l4 --json
both 0 lease delete other --fence 6 --key l5
both 1 lease show leader --json
both 0 lease grant short --holder q --ttl 1ms
sleep 1.1 # the server's clock is known in whole seconds
both 0 lease show short
has remote.out "(1ms; it has run out)"
both 1 lease grant "$long" --holder q --ttl 1h
both 1 lease grant x --holder "" --ttl 1h
both 1 lease grant x --holder q --ttl 0
both 2 lease grant x --holder q
has remote.err "lease grant needs --ttl D"
both 2 lease grant x --ttl 1h
has remote.err "lease grant needs --holder H"
both 2 lease renew x
both 2 lease renew x --fence 0
both 2 lease release x --fence 1 --ttl 1h
has remote.err "lease release does not accept --ttl"
both 2 lease show
has remote.err "lease show takes a NAME"
both 2 lease grab x
has remote.err "expected grant, renew, release, show or delete"

# ---- Registers ----
both 1 register show nobody
both 0 register write config --value '{ "b": [1, 2], "a": null }' --key g1
has remote.out 'value     {"b":[1,2],"a":null}'
both 0 register write config --value '{"b":[1,2],"a":null}' --key g1 # the same value, so replayed
has remote.err "(replayed"
both 0 register write config --value 'not JSON' --fence 4 --json
both 1 register write config --value 1 --fence 4
has remote.err "stale-fence"
both 1 register write config --value 1 --if-version 1
has remote.err "version-mismatch"
both 0 register write config --value '"text"' --if-version 2
both 1 register write config --value 1 --if-version 0
both 0 register show config
both 0 register show config --json
both 0 register write led --value 1 --require-fence yes
has remote.out "writes without a fence  refused"
both 1 register write led --value 2
has remote.err "stale-fence"
both 0 register write led --value 2 --fence 1 --require-fence no
both 2 register write led --value 2 --require-fence maybe
both 0 resource led --require-fence yes
has remote.out "holds without a fence  refused"
both 1 hold led --for w --duration 1h --key led-1
has remote.err "stale-fence"
both 0 resource led --require-fence no --json
n=0
for merge in 'max:17' 'min:-3' 'or:true' 'union:["b","a","b","\u00e9"]' 'lww:{"value":{"q":1},"timestamp":-5,"node":"n1"}' \
  'vector:{"a":1,"b":9007199254740993}' 'counter:{"web-1":17,"web-2":4}' 'updown:{"n":{"up":5,"down":7}}'; do
  n=$((n + 1))
  both 0 register merge "merged-$n" --type "${merge%%:*}" --value "${merge#*:}"
  both 0 register merge "merged-$n" --type "${merge%%:*}" --value "${merge#*:}" --json
  both 0 register show "merged-$n"
done
has remote.out "total     -2"
both 1 register merge merged-1 --type min --value 1
has remote.err "has the type max"
both 1 register merge x --type counter --value '{"":1}'
both 1 register merge x --type counter --value '{"a":9223372036854775808}'
both 2 register merge x --type max --value '1.5'
both 2 register merge x --type max --value '1,"type":"min"'
has remote.err "--value: expected JSON"
both 2 register merge x --type union --value '{"a":1}'
has remote.err "--value: expected an array, got an object."
both 2 register merge x --type sum --value 1
both 2 register merge x --type max
both 2 register merge x --value 1
both 2 register merge x --type max --value 1 --key k
has remote.err "register merge does not accept --key"
both 1 register delete config --if-version 1
both 0 register delete config --if-version 3 --key g2
both 0 register delete config --if-version 3 --key g2 --json
both 1 register delete config --key g3
both 1 register write config --value 1 --fence 4 # its fence stays in force
both 0 register write config --value 1 --fence 5 --json
both 0 register delete merged-7
has remote.out "type      deleted"
both 1 register write "$long" --value 1
both 2 register write x
both 2 register show x --fence 1
both 0 register write 'a/b ..' --value $'tab\tand\033[31m'

# ---- Resources ----
both 1 resource nobody
both 1 resource nobody --json
both 0 resource room-307
both 0 resource room-307 --json
both 0 resource room-307 --capacity 7 --close
both 0 resource room-307 --open --json
both 0 resource many --capacity 2
both 0 hold many --for a --duration 15m --key m1
both 0 hold many --for b --duration 15m --key m2
both 1 resource many --capacity 1
both 0 resource many

# ---- Guards ----
both 1 guard nobody
both 1 check nobody x --json
both 0 guard pay --window 5m --match trim,casefold --on-unavailable closed
both 0 check pay once --fail-if-seen
both 0 admit pay once --fail-if-seen
has remote.out "not-seen"
both 1 admit pay once --fail-if-seen
both 1 check pay once --fail-if-seen --json
both 0 check pay once
both 2 record pay once --fail-if-seen
both 0 guard pay --json
both 1 guard pay --window 1h --match hash,trim
both 0 check pay 17
both 0 record pay 17 --result 'receipt 4711'
both 0 record pay ' 17 ' --result other
both 0 record pay 17 --json
both 0 check pay 17
both 0 check pay 17 --json
both 0 admit pay 18
both 0 admit pay 18
both 0 admit pay 19 --json
both 0 admit pay 19 --json
both 1 admit pay '  '
both 1 admit pay ''
both 0 record pay empty --result ''
both 0 check pay empty
try 0 guard short --window 1h --durable no --server "$url" # the server remembers while it runs, so nothing is to be said
hasnt err "note"
try 0 admit short x --server "$url"
has out "not-seen"
try 0 admit short x --server "$url"
checks=$((checks + 1))
[ "$(head -1 out)" = seen ] || fail "a guard in memory forgets between two commands"
# Any JSON may be a result; people see it as it was written.
node -e 'fetch(process.argv[1] + "/v1/guards/pay/record", { method: "POST", body: "{\"identity\":\"j\",\"result\":{\"n\":[1,true]}}" })
  .then(r => process.exit(r.status === 200 ? 0 : 1))' "$url" || fail "no result was recorded"
try 0 check pay j --server "$url"
has out 'result    {"n":[1,true]}'

# ---- Numbered clients ----
both 0 hold numbered --for till --duration 1h --client 'till 4' --sequence 1
both 0 hold numbered --for till --duration 1h --client 'till 4' --sequence 1
both 1 hold numbered --for till --duration 2h --client 'till 4' --sequence 1
both 1 hold numbered --for till --duration 2h --client 'till 4' --sequence 1000002
both 0 hold numbered-2 --for till --duration 1h --client 'till 4' --sequence 400
both 1 hold numbered --for till --duration 2h --client 'till 4' --sequence 144
both 0 trace --client 'till 4' --sequence 1
both 1 trace --client 'till 4' --sequence 2
try 2 hold numbered --for till --duration 1h --client $'till\t4' --sequence 1 --server "$url"
has err "the client has a control character"

# ---- What reads the journal ----
both 0 trace k1
both 1 trace nobody
both 1 trace ''
try 1 trace nobody --server "$url" --json
json 'j.code === "not-known" && j.status === 404'
try 0 audit --server "$url" --json
head=$(node -p 'JSON.parse(require("fs").readFileSync("out")).journal.chain_head')
try 0 audit --server "$url" --expect-head "$head"
has out "The expected head is in the chain."
try 0 audit --server "$url" --expect-head "$head" --json
json 'j.verdict === "ok" && j.expected_head_found'
try 1 audit --server "$url" --expect-head "${head//[0-9]/a}"
has out "MISSING HEAD: no batch has the expected hash."
both 2 audit --expect-head x
has remote.err "the 64 hexadecimal digits of a hash"
try 0 trace k1 --server "$url" --json
json 'j.kind === "key" && j.found && j.events.length === 1'
for side in "--data $work/remote" "--server $url"; do # the same store, by its files and by the server
  for form in "audit" "audit --json" "export --format jsonl -"; do
    # shellcheck disable=SC2086
    try 0 $form $side
    cat out >>"report${side:2:4}"
  done
done
# Where the server keeps its files is nobody's business over HTTP.
has reportdata "$work/remote"
hasnt reportserv "$work"
sed -i '/^  directory /d; s/"directory":"[^"]*",//' reportdata
same reportdata reportserv
has reportserv "No duplicate state change occurred: "
has reportserv "all 38 checks passed."
try 0 audit --json --server "$url"
json 'j.verdict === "ok" && j.checks.length > 20'
try 0 export --format jsonl - --server "$url"
cp out first
try 0 export --format jsonl "$work/all.jsonl" --server "$url"
checks=$((checks + 1))
[ ! -s out ] || fail "something on stdout"
same first all.jsonl
try 1 export --format jsonl "$work/all.jsonl" --server "$url"
has err "all.jsonl already exists and was not changed. Name another file."
same first all.jsonl
: >busy.db.tmp
try 1 export --format sqlite "$work/busy.db" --server "$url"
has err "busy.db.tmp already exists"
try 3 export --format jsonl "$work/no/such/folder" --server "$url"
try 2 export --format sqlite - --server "$url"
try 0 export --format sqlite "$work/all.db" --server "$url"
for file in all.jsonl all.db; do
  [ "$(stat -c %a "$work/$file")" = 600 ] || fail "$file can be read by others: $(stat -c %a "$work/$file")"
done
checks=$((checks + 1))
[ "$(head -c 15 all.db)" = "SQLite format 3" ] || fail "not a database"
checks=$((checks + 1))
[ ! -e all.db.tmp ] && [ ! -e all.jsonl.tmp ] || fail "a temporary file is left"
if [ -e /dev/full ]; then
  got=0
  "$hf" export --format jsonl - --server "$url" >/dev/full 2>err || got=$?
  checks=$((checks + 1))
  [ "$got" = 3 ] || fail "exit code $got for an export that could not be written"
fi

# ---- Version, and where a server is named ----
try 0 version --server "$url"
has out "holdfast "
has out "server   "
try 0 version --server "$url" --json
json 'j.version === j.server'
HOLDFAST_SERVER=$url try 0 list --json
json 'j.holds.length > 20'
HOLDFAST_SERVER=$url HOLDFAST_DATA=$work/nowhere try 0 show "${remote_id[a]}"
HOLDFAST_SERVER=http://127.0.0.1:1 try 0 list --server "$url/" # a slash at its end is fine
try 3 hold x --for y --duration 1m --key z --data "$work/remote"
has err "is already open, by $url: stop that process, or send requests to it (use --server $url instead of --data)"
try 3 list --data "$work/remote" --json
json "j.code === 'store-busy' && j.detail.includes('--server $url')"
# The note of who has the store is lost: neither a command nor a second server gets in.
cp remote/LOCK LOCK.before && rm remote/LOCK
try 3 hold x --for y --duration 1m --key z --data "$work/remote"
has err "is already open, by another process"
try 3 serve --listen 127.0.0.1:0 --data "$work/remote" --sandbox $sandbox
has err "is already open, by another process"
try 0 audit --data "$work/remote" --json
json 'j.journal.open_by === "an unknown process"'
cp LOCK.before remote/LOCK
try 3 hold x --for y --duration 1m --key z --data "$work/remote"
has err "is already open, by $url"
try 1 list --server "$url/elsewhere"
has err "not-known: There is no call with this path"
for what in "list" "hold c --for d --duration 1m --json"; do
  # shellcheck disable=SC2086
  HOLDFAST_IDEMPOTENCY_WINDOW=1h HOLDFAST_REGISTRY=strict try 0 $what --server "$url" # of directories: idle here
done
# Longer than a page: the cursors are followed.
node -e '
  const lines = [...Array(2500).keys()].map(i => JSON.stringify({ op: "place_hold", key: "p" + i, resource: "p" + i,
    requester: "crowd", duration: "1h" })).join("\n");
  fetch(process.argv[1] + "/v1/batch", { method: "POST", body: lines }).then(r => r.text())
    .then(t => process.exit(t.trimEnd().split("\n").every(l => JSON.parse(l).status === 201) ? 0 : 1));
' "$url" || fail "the holds were not placed"
try 0 list --requester crowd --limit 0 --json --server "$url"
json 'j.holds.length === 2500 && new Set(j.holds.map(h => h.id)).size === 2500 && j.next_cursor === null'
json 'j.holds[0].resource === "p2499" && j.holds[2499].resource === "p0"'
try 0 list --requester crowd --limit 2001 --server "$url"
has err "there are more: continue with --cursor "
checks=$((checks + 1))
[ "$(wc -l <out)" = 2002 ] || fail "not a title and 2001 rows"
try 0 list --requester crowd --limit 0 --cursor "$(sed -n 's/.*--cursor \([0-9]*\).*/\1/p' err)" --json --server "$url"
json 'j.holds.length === 499 && j.holds[0].resource === "p498"'
# An address that is not this machine's own by name: the network could read the credential.
HOLDFAST_CREDENTIAL=secret try 1 list --limit 1 --server "http://0.0.0.0:${url##*:}"
has err "forbidden: Without an auth file this server accepts requests only from its own machine"
has err "warning: the credential is sent to http://0.0.0.0:${url##*:} unencrypted"
hasnt err secret
HOLDFAST_CREDENTIAL=secret try 0 list --limit 1 --server "$url"
hasnt err warning
unserve
try 3 list --server "$url"
has err "server-failed: cannot reach the server at $url: Connection refused; is it running (holdfast serve), and is this its address?"
try 3 hold x --for y --duration 1m --server "$url" --json
has err "key: "
json 'j.code === "server-failed" && j.status === 503 && j.detail.includes("Connection refused")'
try 0 audit --data "$work/remote"

# ---- The audit's verdict and the state of an export come through ----
serve --data "$work/damaged"
for i in 1 2 3 4; do try 0 hold "d$i" --for q --duration 1h --key "d$i" --server "$url"; done
flip "$work/damaged/journal-00000001.log" 8300
try 1 audit --server "$url"
has out "DAMAGED: the journal is damaged or was changed"
try 1 audit --server "$url" --json
json 'j.verdict === "damaged"'
try 1 export --format jsonl "$work/part.jsonl" --server "$url"
has err "store-damaged: The server's journal is damaged. The undamaged records were exported."
checks=$((checks + 1))
[ -s part.jsonl ] || fail "what is whole was not exported"
unserve

# ---- Who may call ----
line() { echo "$1 $2 $(printf %s "$3" | sha256sum | cut -c1-64)"; }
(
  umask 077
  { line acme write acme-writes; line acme read acme-reads; line other admin other-rules; } >auth
  echo acme-writes >credential
  printf 'other-rules\r\n' >other-credential
  cp credential open-credential && chmod o+r open-credential
  : >empty-credential
  printf 'a b' >blank-credential
  printf '%s' "$long$long$long$long" >long-credential
  printf 'a\0b' >nul-credential
)
serve --data "$work/shared" --auth-file auth
try 1 list --server "$url"
has err "unauthorized: Authentication required"
has err "On the command line, use --credential-file FILE or HOLDFAST_CREDENTIAL."
try 1 list --server "$url" --json
json 'j.code === "unauthorized" && j.status === 401'
HOLDFAST_CREDENTIAL=wrong try 1 hold a --for b --duration 1m --key k1 --server "$url"
has err "unauthorized"
big=$(printf '%060000d' 7)
HOLDFAST_CREDENTIAL=wrong try 1 record g x --result "$big" --server "$url" # refused before its body is read
has err "unauthorized"
HOLDFAST_CREDENTIAL=acme-reads try 1 hold a --for b --duration 1m --key k1 --server "$url"
has err "forbidden: "
HOLDFAST_CREDENTIAL=acme-reads try 0 list --server "$url"
try 0 hold a --for b --duration 1m --key k1 --server "$url" --credential-file credential
has out "state      held"
HOLDFAST_CREDENTIAL=wrong try 0 show "$(awk '/^id/ { print $2 }' out)" --server "$url" --credential-file credential
HOLDFAST_CREDENTIAL=acme-writes HOLDFAST_CREDENTIAL_FILE=/nonexistent try 0 list --server "$url" --json
json 'j.holds.length === 1'
HOLDFAST_CREDENTIAL_FILE=other-credential try 0 list --server "$url" --json # another tenant sees nothing of it
json 'j.holds.length === 0'
try 1 trace k1 --server "$url" --credential-file other-credential
try 1 audit --server "$url" --credential-file credential --expect-head "$(printf '0%.0s' {1..64})"
has err "forbidden: expect_head is for the audit of the whole store. Use the credential of an operator"
try 1 export --format jsonl "$work/theirs" --server "$url" --credential-file credential
has err "forbidden"
checks=$((checks + 1))
[ ! -e theirs ] && [ ! -e theirs.tmp ] || fail "a refused export made a file"
try 0 export --format jsonl - --server "$url" --credential-file other-credential
hasnt out '"k1"'
try 0 audit --server "$url" --credential-file credential
has out 'Only tenant "acme"'
try 2 list --server "$url" --credential-file open-credential
has err "every user may read or write it; use chmod o-rw"
for file in empty blank long nul; do
  try 2 list --server "$url" --credential-file $file-credential
  has err credential
done
try 1 list --server "$url" --credential-file credential --tenant acme
# Neither arguments nor messages show the credential.
for file in out err; do hasnt $file acme-writes; done
unserve

# One key of two tenants: an operator sees whose each event is.
(
  umask 077
  line '*' operator op >>auth
)
serve --data "$work/shared" --auth-file auth
HOLDFAST_CREDENTIAL=other-rules try 0 hold b --for c --duration 1m --key k1 --server "$url"
HOLDFAST_CREDENTIAL=op try 0 trace k1 --server "$url"
has out "events in 2 tenants"
has out '  tenant "acme": place_hold by key "k1" answered ok'
has out '  tenant "other": place_hold by key "k1" answered ok'
HOLDFAST_CREDENTIAL=op try 0 trace k1 --server "$url" --json
json 'j.tenants.map(t => t.tenant).join() === "acme,other" && j.tenants.every(t => t.events === 1 && t.summary)'
HOLDFAST_CREDENTIAL=acme-reads try 0 trace k1 --server "$url" --json
json 'j.events.length === 1 && !("tenants" in j)'
HOLDFAST_CREDENTIAL=op try 0 list --tenant other --server "$url" --json
json 'j.holds.length === 1 && j.holds[0].resource === "b"'
id=$(sed -n 's/.*"id":"\([^"]*\)".*/\1/p' out)
HOLDFAST_CREDENTIAL=op try 0 show "$id" --tenant other --server "$url"
HOLDFAST_CREDENTIAL=op try 1 show "$id" --tenant acme --server "$url"
HOLDFAST_CREDENTIAL=acme-reads try 1 list --tenant other --server "$url"
unserve

# ---- TLS ----
if command -v openssl >/dev/null; then
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=Test authority" \
    -keyout ca.key -out ca.pem 2>/dev/null
  certificate() { # NAME SAN
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=test" -keyout "$1.key" -out "$1.csr" 2>/dev/null
    openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out "$1.pem" \
      -extfile <(echo "subjectAltName=$2") 2>/dev/null
    chmod 600 "$1.key"
  }
  certificate right IP:127.0.0.1,DNS:localhost
  certificate wrong IP:127.0.0.2,DNS:example.org
  serve --data "$work/secret" --tls-cert right.pem --tls-key right.key
  checks=$((checks + 1))
  [[ $url == https://* ]] || fail "not https: $url"
  try 3 list --server "http${url#https}"
  has err "if it uses TLS, use https://"
  try 0 hold a --for b --duration 1m --key k1 --server "$url" --tls-ca ca.pem
  try 0 hold a --for b --duration 1m --key k1 --server "$url" --tls-ca ca.pem
  has err "(replayed: first answered at"
  HOLDFAST_TLS_CA=ca.pem try 0 list --server "https://localhost:${url##*:}" --json
  json 'j.holds.length === 1'
  try 0 export --format sqlite "$work/secret.db" --server "$url" --tls-ca ca.pem
  checks=$((checks + 1))
  [ "$(head -c 15 secret.db)" = "SQLite format 3" ] || fail "not a database"
  try 0 audit --server "$url" --tls-ca ca.pem
  try 3 hold a --for b --duration 1m --key k2 --server "$url"
  has err "its certificate is not trusted: "
  try 3 list --server "$url" --tls-ca wrong.pem
  has err "its certificate is not trusted"
  try 3 list --server "http://127.0.0.1:${url##*:}"
  has err "no usable answer from http://"
  unserve
  serve --data "$work/secret" --tls-cert wrong.pem --tls-key wrong.key
  try 3 hold a --for b --duration 1m --key k1 --server "$url" --tls-ca ca.pem
  has err "its certificate is not trusted: IP address mismatch"
  try 3 hold a --for b --duration 1m --key k1 --server "https://localhost:${url##*:}" --tls-ca ca.pem
  has err "its certificate is not trusted: hostname mismatch"
  unserve
  serve --data "$work/secret"
  try 3 list --server "https://127.0.0.1:${url##*:}" --tls-ca ca.pem
  has err "it does not use TLS; try http:// in the URL"
  unserve
else
  echo "openssl is not here: TLS is not checked"
fi
finish

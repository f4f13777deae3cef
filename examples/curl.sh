#!/bin/sh
# A tour of the interface, with curl alone.
#
#     holdfast serve &
#     sh curl.sh                           # http://127.0.0.1:4653
#     CREDENTIAL=... sh curl.sh https://holdfast.example.com     # if the server has an auth file; role admin
#
# The tour makes calls of every group and compares every answer. The first difference ends it with exit code 1. It uses
# names of its own, so you can run it again, also on a server with other clients.
# CURL_OPTIONS has more options for curl, such as "--cacert ca.pem".
set -eu

url=${1:-http://127.0.0.1:4653}
run=tour-$(date +%s)-$$
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

say() { printf '\n== %s\n' "$*"; }

surprise() {
  printf '\nSURPRISE: %s\n' "$*"
  cat "$work/head" "$work/body" 2>/dev/null || true
  printf '\n'
  exit 1
}

# call STATUS METHOD PATH [KEY [BODY]]: make a call; it must be answered with STATUS. KEY - is none.
call() {
  status=$1 method=$2 path=$3 key=${4:--} body=${5:-}
  printf '%-4s %s' "$method" "$path"
  set -- -sS -X "$method" -D "$work/head" -o "$work/body" -w '%{http_code}'
  if [ "$key" != - ]; then
    printf '  (key %s)' "$key"
    set -- "$@" -H "Idempotency-Key: $key"
  fi
  [ -z "$body" ] || set -- "$@" --data-binary "$body"
  [ -z "${CREDENTIAL:-}" ] || set -- "$@" -H "Authorization: Bearer $CREDENTIAL"
  rm -f "$work/head" "$work/body"
  # shellcheck disable=SC2086
  got=$(curl ${CURL_OPTIONS:-} "$@" "$url$path") || surprise "$method $path: no answer"
  printf '\n     %s %s\n' "$got" "$(head -n 1 "$work/body" | cut -c 1-300)"
  [ "$got" = "$status" ] || surprise "$method $path was answered with $got, and $status was expected"
}

# field NAME: the value of the first member of this name.
field() { grep -o "\"$1\":\"\{0,1\}[^\",}]*" "$work/body" | head -n 1 | sed 's/^"[^"]*":"\{0,1\}//'; }

has() { grep -qF -- "$1" "$work/body" || surprise "the answer has no $1"; }
is() { [ "$(field "$1")" = "$2" ] || surprise "$1 is \"$(field "$1")\", and \"$2\" was expected"; }
header() { grep -qi "^$1:" "$work/head" || surprise "the answer has no $1"; }
no_header() { ! grep -qi "^$1:" "$work/head" || surprise "the answer has $1"; }
keep() { cp "$work/body" "$work/kept"; }
same() { cmp -s "$work/body" "$work/kept" || surprise "the answer differs from the first one"; }

say "The server"
call 200 GET /healthz
call 200 GET /readyz
has '"ready":true'
call 200 GET /v1/openapi.json
has '"openapi":"3.1.0"'
if [ -z "${CREDENTIAL:-}" ]; then # with an auth file, the figures may be the operator's alone
  call 200 GET /metrics
  has 'holdfast_ready 1'
fi
call 200 GET /
has '<!doctype html>'
call 404 GET /v1/nothing
call 405 POST /v1/audit
header Allow

say "Resources: what holds take units of"
call 404 GET "/v1/resources/$run-room"
call 200 PUT "/v1/resources/$run-room" - '{"capacity":2}'
is available 2
call 200 GET "/v1/resources/$run-room"
call 200 GET '/v1/resources?limit=1'
has "\"$run-room\""

say "Holds: place one, and retry because the answer was lost"
order="{\"resource\":\"$run-room\",\"requester\":\"guest-91\",\"duration\":\"15m\"}"
call 201 POST /v1/holds "$run-1" "$order"
is state held
header Idempotency-Expires
no_header Idempotent-Replayed
id=$(field id)
keep
call 201 POST /v1/holds "$run-1" "$order"
header Idempotent-Replayed
same
call 201 POST /v1/holds "\"$run-1\"" "$order" # in quotes it is the same key
same

say "Refused: a key of another request, no key, an unknown field"
call 422 POST /v1/holds "$run-1" "{\"resource\":\"$run-room\",\"requester\":\"guest-92\",\"duration\":\"15m\"}"
is code token-collision
call 400 POST /v1/holds - "$order"
is code invalid-request
call 400 POST /v1/holds "$run-x" '{"resource":"r","requester":"q","duration":"15m","colour":"red"}'
is code invalid-request

say "A hold ends once"
call 409 POST "/v1/holds/$id/expire" "$run-2"
is code window-not-elapsed
call 200 POST "/v1/holds/$id/confirm" "$run-3"
is state confirmed
keep
call 200 POST "/v1/holds/$id/confirm" "$run-3"
header Idempotent-Replayed
same
call 409 POST "/v1/holds/$id/release" "$run-4"
is code not-held
call 200 POST "/v1/holds/$id/reverse" "$run-5"
is reverses "$id"
call 404 POST /v1/holds/nobody/confirm "$run-6"
is code not-known
call 200 GET "/v1/holds/$id"
is state confirmed

say "The capacity is never exceeded; a refusal is remembered like a success"
call 201 POST /v1/holds "$run-7" "$order"
second=$(field id)
call 201 POST /v1/holds "$run-8" "$order"
call 409 POST /v1/holds "$run-9" "$order"
is code resource-unavailable
keep
call 200 POST "/v1/holds/$second/release" "$run-10"
is state released
call 409 POST /v1/holds "$run-9" "$order" # there is room now, and still this key has its answer
header Idempotent-Replayed
same
call 200 GET "/v1/holds?resource=$run-room&state=held"
has '"next_cursor":null'
call 200 GET "/v1/holds?resource=$run-room&limit=1"
cursor=$(field next_cursor)
call 200 GET "/v1/holds?resource=$run-room&limit=1&cursor=$cursor"

say "Guards: have I seen this lately?"
call 200 PUT "/v1/guards/$run-comments" - '{"window":"60s","match":["trim","casefold"]}'
call 200 GET "/v1/guards/$run-comments"
is window 1m
call 200 GET '/v1/guards?limit=1'
call 200 POST "/v1/guards/$run-comments/check" - '{"identity":"Nice post!"}'
has '"seen":false'
call 200 POST "/v1/guards/$run-comments/admit" - '{"identity":"Nice post!","result":{"comment":17}}'
has '"seen":false'
call 200 POST "/v1/guards/$run-comments/admit" - '{"identity":" nice POST! "}'
has '"seen":true'
has '"result":{"comment":17}'
call 200 POST "/v1/guards/$run-comments/record" - '{"identity":"Another one"}'
has '"ok":true'
call 200 GET "/v1/guards/$run-comments/entries"
has another

say "Claims: an effect outside of this store, once"
work_on="{\"key\":\"$run-charge\",\"payload\":{\"card\":\"4242\",\"amount\":1200},\"lease\":\"60s\"}"
call 201 POST /v1/claims - "$work_on"
fence=$(field fence)
call 409 POST /v1/claims - "$work_on"
is code in-progress
header Retry-After
call 200 POST "/v1/claims/$run-charge/heartbeat" - "{\"fence\":$fence}"
call 200 POST "/v1/claims/$run-charge/abandon" - "{\"fence\":$fence}"
is status unknown
call 200 POST "/v1/claims/$run-charge/complete" - "{\"fence\":$fence,\"response\":{\"receipt\":\"r-1\"}}"
is status completed
call 200 POST /v1/claims - "$work_on"
header Idempotent-Replayed
has '"receipt":"r-1"'
call 422 POST /v1/claims - "{\"key\":\"$run-charge\",\"payload\":{\"card\":\"4242\",\"amount\":9900}}"
is code token-collision
call 200 GET "/v1/claims/$run-charge"
call 201 POST /v1/claims - "{\"key\":\"$run-mail\",\"fingerprint\":\"mail to guest-91\"}"
fence=$(field fence)
call 200 POST "/v1/claims/$run-mail/fail" - "{\"fence\":$fence,\"retryable\":true,\"error\":\"the mail server is away\"}"
has '"retryable":true'
call 201 POST /v1/claims - "{\"key\":\"$run-mail\",\"fingerprint\":\"mail to guest-91\"}"
[ "$(field fence)" -gt "$fence" ] || surprise "the fence did not rise"
call 412 POST "/v1/claims/$run-mail/complete" - "{\"fence\":$fence}"
is code stale-fence

say "Leases: authority over a name, with a fence"
call 201 POST "/v1/leases/$run-leader" "$run-11" '{"holder":"node-a","ttl":"30s"}'
fence=$(field fence)
call 409 POST "/v1/leases/$run-leader" "$run-12" '{"holder":"node-b","ttl":"30s"}'
is code lease-held
call 200 POST "/v1/leases/$run-leader/renew" - "{\"fence\":$fence}"
call 200 GET "/v1/leases/$run-leader"
is holder node-a
call 200 POST "/v1/leases/$run-leader/release" - "{\"fence\":$fence}"

say "Registers: written with the newest fence or the right version, or merged"
call 200 PUT "/v1/registers/$run-price" "$run-13" "{\"value\":{\"eur\":12},\"fence\":$fence}"
is version 1
call 412 PUT "/v1/registers/$run-price" "$run-14" "{\"value\":{\"eur\":13},\"fence\":$fence}"
is code stale-fence
call 412 PUT "/v1/registers/$run-price" "$run-15" '{"value":{"eur":13},"if_version":7}'
is code version-mismatch
call 200 PUT "/v1/registers/$run-price" "$run-16" '{"value":{"eur":13},"if_version":1}'
is version 2
call 200 POST "/v1/registers/$run-visits/merge" - '{"type":"counter","value":{"node-a":3,"node-b":4}}'
is total 7
call 200 POST "/v1/registers/$run-visits/merge" - '{"type":"counter","value":{"node-a":3}}'
is total 7
call 200 GET "/v1/registers/$run-visits"

say "A bulk request: many operations, one commit, answers in the same order"
call 200 POST /v1/batch - "{\"op\":\"place_hold\",\"key\":\"$run-20\",\"resource\":\"$run-desk\",\"requester\":\"guest-91\",\"duration\":\"15m\"}
{\"op\":\"place_hold\",\"key\":\"$run-20\",\"resource\":\"$run-desk\",\"requester\":\"guest-91\",\"duration\":\"15m\"}
{\"op\":\"check\",\"guard\":\"$run-comments\",\"identity\":\"Nice post!\"}
{\"op\":\"merge\",\"name\":\"$run-visits\",\"type\":\"counter\",\"value\":{\"node-b\":5}}
{\"op\":\"confirm\",\"key\":\"$run-21\",\"id\":\"nobody\"}"
[ "$(wc -l <"$work/body")" = 5 ] || surprise "five lines were expected"
has '"status":201,"replayed":false'
has '"status":201,"replayed":true'
has '"status":404,"replayed":false'

say "What happened to my request?"
call 200 GET "/v1/tokens/$run-9"
is action place_hold
has '"status":409'
call 404 GET "/v1/tokens/$run-never"
call 200 GET "/v1/trace/$id"
has '"kind":"hold"'
has '"words":"confirmed by key'
call 200 GET "/v1/trace/$run-1"
has '"kind":"key"'
call 200 GET /v1/audit
is verdict ok
call 200 GET '/v1/export?format=jsonl'
has "\"$run-1\""

printf '\nThe tour is over; everything was as it must be.\n'

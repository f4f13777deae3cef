#!/usr/bin/env bash
# A server that goes away, loses answers, or is none at all: what happened is never told wrongly, and nothing hangs.
set -eu
. "$(dirname "$0")/../support/cli.sh"
. "$(dirname "$0")/../support/server.sh"

hold() { try "$1" hold r --for q --duration 15m --key k1 --timeout 5s --server "$url" "${@:2}"; }
asked() { # how often it was asked
  checks=$((checks + 1))
  [ "$(wc -l <asked)" = "$1" ] || { cp asked out; fail "asked $(wc -l <asked) times, not $1"; }
  rm -f asked
}

# ---- Answers that no Holdfast server gives: it may have happened, and nobody is told that it did not ----
while IFS='|' read -r how words; do
  standin "$how"
  hold 4
  has err "indeterminate: "
  has err "$words"
  has err 'It may have happened: retry with the same key, --key "k1"'
  checks=$((checks + 1))
  [ ! -s out ] || fail "something on stdout"
  rm -f asked
  hold 4 --json
  json 'j.code === "indeterminate" && j.status === 503 && j.detail.includes("k1")'
  asked 1 # nonsense is not asked for twice
  try 3 list --timeout 5s --server "$url" # looking changes nothing, so nothing is unknown
  has err "server-failed: "
  unstand
done <<'TABLE'
nonsense|it does not speak HTTP/1.1
tls|it uses TLS; use https:// in the URL
bare-lf|a line of its head does not end with CR and LF
no-length|it has no Content-Length
two-lengths|its Content-Length is not one number
no-number|its Content-Length is not one number
chunked|it is chunked
folded|a line of its head is not a name, a colon and a value
huge|its body is longer than 64 MiB
interim-flood|it has too many interim answers
endless-head|its head
endless-line|its head is longer than 32768 bytes
html|is not from a Holdfast server, perhaps from a proxy: status 200, text/html
html-502|status 502, text/html
wrong-json|the answer is not from a Holdfast server: the member "id" is missing
wrong-state|a word that this program knows
wrong-id|the id of a hold
more-json|expected nothing more
TABLE

# Somebody in between who did not pass it on.
for how in html-404 redirect broken-problem evil-code; do
  standin $how
  hold 3
  has err "server-failed: the answer from $url is not from a Holdfast server"
  unstand
done

standin html-404 # a path in the URL stands before all calls
try 3 hold r --for q --duration 15m --key k1 --server "$url/shop/eu/"
try 3 list --server "$url/shop"
has asked 'POST /shop/eu/v1/holds "k1"'
has asked 'GET /shop/v1/holds?limit=100 -'
unstand

for how in html html-404 wrong-json; do # nor does it have a version
  standin $how
  try 3 version --server "$url" --timeout 5s
  has err "server-failed: "
  unstand
done
try 3 version --server http://127.0.0.1:1 --timeout 2s

# Refusals that this program does not know by name go by their status.
standin new-code
hold 1
has err "brand-new: Something new."
hold 1 --json
json 'j.code === "brand-new"'
unstand
standin new-500
hold 4
try 3 show 00000000000000000000000000 --server "$url"
unstand
standin busy
hold 3
has err "too-busy: Later."
unstand
standin unsure
hold 4
unstand
# What a server says is harmless on a terminal.
standin evil-problem
hold 1
has err 'not-held: \x1b[31mred\x07'
unstand
standin evil-text
try 0 audit --server "$url"
has out 'one\x1b[31m'
has out two
unstand
standin violations
try 1 audit --server "$url"
has out "VIOLATIONS: 1"
unstand
standin no-verdict
try 3 audit --server "$url"
has err "no known verdict"
checks=$((checks + 1))
[ ! -s out ] || fail "an audit without a verdict is shown"
unstand

# Good answers that look strange: an interim one before, more members than are known, bytes behind.
for how in interim more-members behind; do
  standin $how
  hold 0
  has out "requester  q"
  unstand
done

standin smuggle # an answer that comes before its question is not listened to
hold 0
has err "(replayed)"
hasnt err 1999
unstand

# ---- Pages ----
for how in same-page long-page longer-page odd-cursor; do
  standin $how
  try 3 list --limit 100 --timeout 5s --server "$url"
  has err "server-failed: "
  unstand
done
standin same-page
try 3 list --limit 0 --timeout 5s --server "$url"
has err "the server's pages are not in order"
unstand

# ---- Exports: whole or not at all ----
standin short-export
try 3 export --format jsonl "$work/cut" --server "$url"
has err "it closed the connection before its answer was complete"
checks=$((checks + 1))
[ ! -e cut ] && [ ! -e cut.tmp ] || fail "a part of an export is left"
asked 1
try 3 export --format jsonl - --server "$url"
unstand
standin wrong-export
try 3 export --format jsonl - --server "$url"
checks=$((checks + 1))
[ ! -s out ] || fail "what is no export went to stdout"
unstand
standin damaged-export
try 1 export --format jsonl "$work/damaged" --server "$url"
has err "store-damaged: "
checks=$((checks + 1))
[ -e damaged ] || fail "what is whole was not exported"
unstand

# ---- Slow: the timeout is for the whole answer. A drip would end with a good one, a byte at a time ----
for how in silent drip; do
  standin $how
  for what in "4 hold r --for q --duration 15m --key k1" "3 list" "3 audit" "3 export --format jsonl -"; do
    # shellcheck disable=SC2086
    try ${what%% *} ${what#* } --timeout 700ms --server "$url"
    has err "timeout while waiting for the answer"
  done
  unstand
done

standin silent # it takes the connection and never shakes hands: nothing was sent
try 3 hold r --for q --duration 15m --key k1 --timeout 700ms --server "https${url#http}"
has err "timeout while waiting for the answer"
unstand
standin greets
try 3 hold r --for q --duration 15m --key k1 --server "https${url#http}"
has err "it does not use TLS; try http:// in the URL"
hold 4
has err "it does not speak HTTP/1.1"
unstand

# ---- Connections that break: three attempts, with the same key, unless that could do something twice ----
for how in close reset short; do
  standin $how
  rm -f asked
  try 4 hold r --for q --duration 15m --timeout 5s --server "$url"
  key=$(sed -n 's/^key: //p' err) # it was told before the request was sent
  has err "--key \"$key\""
  checks=$((checks + 1))
  [ "$(sort -u asked)" = "POST /v1/holds \"$key\"" ] || { cp asked out; fail "not the same request each time"; }
  asked 3
  try 4 resource r --capacity 2 --server "$url"
  has err "retrying is safe"
  asked 3
  try 4 record g x --server "$url"
  asked 3
  try 4 admit g x --server "$url"
  has err "holdfast check shows whether the identity is recorded"
  asked 1
  try 3 list --server "$url"
  asked 3
  try 3 check g x --server "$url"
  asked 3
  unstand
done
standin once
hold 0
has out "requester  q"
asked 2
unstand

# ---- A real server behind a network that loses answers ----
serve --data "$work/store"
real=$url
standin swallow "$real"
rm -f asked
hold 4
asked 3
try 0 list --server "$real" --json
json 'j.holds.length === 1'
id=$(node -e 'console.log(JSON.parse(require("fs").readFileSync("out")).holds[0].id)')
try 0 hold r --for q --duration 15m --key k1 --json --server "$real"
has err "(replayed: first answered at 20"
json "j.id === '$id'"
try 0 guard g --window 1h --server "$real"
try 4 admit g x --server "$url"
try 0 check g x --server "$real"
checks=$((checks + 1))
[ "$(head -1 out)" = seen ] || fail "the swallowed admit did not arrive"
unstand
standin swallow-once "$real"
rm -f asked
try 0 confirm "$id" --key c1 --json --server "$url" # the retry gets the answer of the first attempt
has err "(replayed: first answered at 20"
json "j.id === '$id' && j.state === 'confirmed'"
head -2 asked >twice
checks=$((checks + 1))
[ "$(sort -u twice)" = "POST /v1/holds/$id/confirm \"c1\"" ] || fail "not the same request twice"
unstand

# ---- The server dies with the request in its hands, and while it is stopped nobody waits for ever ----
url=$real
kill -STOP "$server"
try 3 list --timeout 500ms --server "$url"
got=0
"$hf" hold dying --for q --duration 15m --key d1 --timeout 20s --server "$url" >out 2>err &
asking=$!
# Until the system has it for the server, which stands still: an open connection with bytes that are not read.
unread=$(printf ': [0-9A-F]+:%04X [0-9A-F]+:[0-9A-F]+ 01 [0-9A-F]+:0*[1-9A-F][0-9A-F]* ' "${url##*:}")
for _ in $(seq 1200); do
  ! grep -qE "$unread" /proc/net/tcp || break
  sleep 0.05
done
kill -KILL "$server"
wait "$asking" || got=$?
wait "$server" 2>/dev/null || true
server=
last="holdfast hold dying, while the server is killed"
checks=$((checks + 1))
[ "$got" = 4 ] || fail "exit code $got, not 4"
has err '--key "d1"'
serve --data "$work/store"
try 0 hold dying --for q --duration 15m --key d1 --server "$url"
try 0 list --resource dying --json --server "$url"
json 'j.holds.length === 1'
try 0 audit --server "$url"
unserve
finish

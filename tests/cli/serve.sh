#!/usr/bin/env bash
# The config file of serve: what may stand in it, what goes before it, and how it is refused. Nothing but the last part
# starts a server: a value that does not fit shows whose value it was.
set -eu
. "$(dirname "$0")/../support/cli.sh"
. "$(dirname "$0")/../support/server.sh"
config() { printf '%s\n' "$@" >conf; }

# ---- Whose value counts ----
config 'threads = file'
try 2 serve --config conf
has err 'holdfast: conf:1: threads: "file" is invalid; expected: a whole number from 1 to 64'
export HOLDFAST_THREADS=environment
try 2 serve --config conf
has err 'HOLDFAST_THREADS: "environment" is invalid'
try 2 serve --config conf --threads line
has err '--threads: "line" is invalid'
unset HOLDFAST_THREADS
HOLDFAST_CONFIG=conf try 2 serve
has err 'conf:1: threads: "file" is invalid'

# ---- Values ----
# One that does not fit is named with its line, also if that is found out only when it is used.
: >cert
: >auth
while IFS='|' read -r code line words; do
  config '# one line' 'sandbox = off' "$line"
  try "$code" serve --config conf
  has err "holdfast: conf:3: $words"
  # check-config finds the same, in the same line, without starting anything.
  try 2 check-config conf
  case $line in listen\ =\ 0* | listen\ =\ 1* | data*) words= ;; esac
  has err "holdfast: conf:3: $words"
  has err "holdfast: conf has 1 mistake"
done <<'TABLE'
2|max-connections = 0|max-connections: "0" is invalid; expected: a whole number from 1
2|max-body = 1 MB|max-body: "1 MB" is invalid; expected: a size from 1024 to 67108864 bytes, such as 1MiB
2|max-body = 1023|max-body: "1023" is invalid
2|max-body = 65MiB|max-body: "65MiB" is invalid
2|memory-max = most of it|memory-max: "most of it" is invalid; expected: a size
2|idempotency-window = soon|idempotency-window: "soon" is invalid; expected: a duration
2|idempotency-window = 0|idempotency-window: "0" is invalid; expected: at least 1ms, such as 24h
2|token-max-length = 1025|token-max-length: "1025" is invalid; expected: a whole number from 1 to 1024
2|registry = maybe|registry: "maybe" is invalid; expected: one of open, strict
2|store = paper|store: "paper" is invalid
2|log = xml|log: "xml" is invalid; expected: one of text, json
2|log-keys = none|log-keys: "none" is invalid
2|log-duplicates = maybe|log-duplicates: "maybe" is invalid
2|listen = here|cannot listen on "here": expected an address and a port, such as 127.0.0.1:4653
2|listen = 127.0.0.1:65536|cannot listen on "127.0.0.1:65536": expected an address
2|listen = 0.0.0.0:0|without --auth-file the server listens on loopback addresses only
3|listen = 192.0.2.1:0|cannot listen on "192.0.2.1:0": Cannot assign
2|auth-file = absent|absent cannot be opened: No such file
2|auth-file = auth|auth
2|tls-cert = cert|TLS needs both --tls-cert and --tls-key
2|tls-key = cert|TLS needs both --tls-cert and --tls-key
3|data = absent/too|cannot create the directory "absent/too": the directory "absent" does not exist. Create it first
3|data = cert|
TABLE
config 'sandbox = perhaps'
try 2 serve --config conf
has err 'conf:1: sandbox: "perhaps" is invalid; expected: one of on, off'
config 'sandbox = off' 'tls-key = absent' 'tls-cert = cert'
try 2 serve --config conf
has err 'holdfast: conf:2: absent cannot be opened'
config 'sandbox = off' 'tls-key = cert' 'tls-cert = absent'
try 2 serve --config conf
has err 'holdfast: conf:3: absent cannot be opened'
# What the file says and something else overrules is not to blame.
config 'listen = 127.0.0.1:0' 'max-body = 1MiB' 'auth-file = auth'
try 2 serve --config conf --sandbox off --auth-file absent
has err 'holdfast: absent cannot be opened'
try 2 serve --config conf --max-body 0
has err 'holdfast: --max-body: "0" is invalid'
HOLDFAST_MAX_BODY=1 try 2 serve --config conf
has err 'holdfast: HOLDFAST_MAX_BODY: "1" is invalid'
mkdir $'a\e[2Jb'
config 'threads = 0'
mv conf $'a\e[2Jb/conf'
try 2 serve --config $'a\e[2Jb/conf'
has err '[2Jb/conf:1: threads'
hasnt err $'\e[2J'

# ---- Lines ----
config '# comment' '' 'threads = "quo\"ted \\"   # comment'
try 2 serve --config conf
has err '"quo"ted \" is invalid'
config 'threads = 1' 'threds = 2'
try 2 serve --config conf
has err 'holdfast: conf:2: unknown name "threds"; did you mean threads; see: holdfast help serve'
config '--threads = 2'
try 2 serve --config conf
has err 'conf:1: unknown name "--threads"; did you mean threads'
config 'max_body = 1MiB'
try 2 serve --config conf
has err 'did you mean max-body'
config 'nothing-like-it-at-all = 1'
try 2 serve --config conf
has err 'conf:1: unknown name "nothing-like-it-at-all"; see'
config $'\e[2Jx = 1'
try 2 serve --config conf
has err 'conf:1: the line contains a control character'
config 'log = text' '# again' 'log = json'
try 2 serve --config conf
has err 'conf:3: log is already set in line 1; remove one of them'
config 'threads'
try 2 serve --config conf
has err 'conf:1: expected: name = value'
# An option of another command, a global one that serve does not take, and two that a file cannot have.
for name in capacity tenant server help config; do
  config "$name = x"
  try 2 serve --config conf
  has err "conf:1: unknown name \"$name\""
done

# ---- A flag ----
config 'welcome = perhaps'
try 2 serve --config conf
has err 'conf:1: welcome must be yes or no, not "perhaps"'

# ---- Files ----
try 2 serve --config absent
has err 'the config file "absent" cannot be read: No such file or directory'
try 2 serve --config .
has err 'the config file "." cannot be read'
head -c 65537 /dev/zero | tr '\0' '\n' >conf
try 2 serve --config conf
has err 'longer than 65536 bytes'
{ head -c 65520 /dev/zero | tr '\0' '\n'; echo 'threads = last'; } | head -c 65536 >conf
try 2 serve --config conf
has err '"last" is invalid'
{ printf 'threads = '; head -c 5000 /dev/zero | tr '\0' x; } >conf
try 2 serve --config conf
has err 'conf:1: the line is longer than 4096 bytes'

# ---- check-config: every mistake at once, in the order of lines ----
line() { echo "$1 $2 $(printf %s "$3" | sha256sum | cut -c1-64)"; }
mkdir "ready store" && chmod 700 "ready store"
config '# everything is wrong' 'data = /no/such/place/store' 'listen 127.0.0.1:0' 'threads = 0' 'threds = 2' 'max-body = 7' \
  'listen = 0.0.0.0:80' 'tls-cert = missing.pem' 'log = xml' 'log = text' 'welcome = maybe' 'memory-max = lots' 'x = "unclosed' \
  'idempotency-window = 0s' 'tls-key = nokey.pem'
try 2 check-config conf
cat >expected <<'TABLE'
holdfast: conf:2: cannot create the directory "/no/such/place/store": the directory "/no" does not exist. Create it first
holdfast: conf:3: expected: name = value
holdfast: conf:4: threads: "0" is invalid; expected: a whole number from 1 to 64
holdfast: conf:5: unknown name "threds"; did you mean threads; see: holdfast help serve
holdfast: conf:6: max-body: "7" is invalid; expected: a size from 1024 to 67108864 bytes, such as 1MiB
holdfast: conf:7: "0.0.0.0:80" is not a loopback address: without --auth-file the server listens on loopback addresses only, because every caller would have full access. Give --auth-file FILE, or --listen 127.0.0.1:4653
holdfast: conf:8: missing.pem cannot be opened: No such file or directory.
holdfast: conf:9: log: "xml" is invalid; expected: one of text, json
holdfast: conf:10: log is already set in line 9; remove one of them
holdfast: conf:11: welcome must be yes or no, not "maybe"
holdfast: conf:12: memory-max: "lots" is invalid; expected: a size from 1048576 to 18446744073709551615 bytes, such as 1MiB
holdfast: conf:13: the closing quote is missing
holdfast: conf:14: idempotency-window: "0s" is invalid; expected: at least 1ms, such as 24h
holdfast: conf:15: nokey.pem cannot be opened: No such file or directory.
holdfast: conf has 14 mistakes
TABLE
same err expected
checks=$((checks + 1))
[ ! -s out ] || fail "something on stdout"
try 2 check-config conf --json
json 'j.ok === false && j.mistakes.length === 14 && j.mistakes.every((m, i) => m.line === i + 2 && m.text)'
json 'j.mistakes[2].text.startsWith("threads: ")'
# What serve would take, with what is in force.
config 'data = "ready store"' 'threads = 2' 'log = json'
try 0 check-config conf
has out 'data                  ready store  (line 1)'
has out 'threads               2  (line 2)'
has out 'listen                127.0.0.1:4653  (default)'
has out 'log                   json  (line 3)'
try 0 check-config conf --threads 3 --json
json 'j.ok && j.settings.find(s => s.name === "threads").value === "3" && j.settings.find(s => s.name === "threads").from === "option"'
json 'j.settings.find(s => s.name === "log").line === 3 && j.settings.find(s => s.name === "max-body").from === "default"'
try 2 check-config conf --listen '[::]:0'
has err 'holdfast: "[::]:0" is not a loopback address'
HOLDFAST_THREADS=x HOLDFAST_LISTEN=nonsense HOLDFAST_DATA=/no/such HOLDFAST_JSON=1 try 0 check-config conf
has out 'threads               2  (line 2)'
config 'postgres = "host=db dbname=shop password=s3cret"'
try 0 check-config conf
has out 'postgres              database "shop" at db:'
hasnt out s3cret
config 'postgres = "host=db password=s3cret"' 'memory-max = 1GiB' 'tenant-records-max = 5'
try 2 check-config conf
has err 'conf:2: --memory-max is only for a store in a directory'
has err 'conf:3: --tenant-records-max is only'
config 'data = a' 'postgres = "host=db"'
try 2 check-config conf
has err 'conf:2: --data and --postgres exclude each other'
try 2 check-config absent
has err 'the config file "absent" cannot be read: No such file'
try 2 check-config absent --json
json 'j.ok === false && j.mistakes.length === 1'
# Files that are named: the auth file with its own line, the certificate with the key that belongs to it.
(umask 077 && { line acme write right; echo 'acme wrong 17'; } >auth)
config 'listen = 0.0.0.0:0' 'auth-file = auth'
try 2 check-config conf
has err 'conf:2: auth:2: the second word is the role'
(umask 077 && line acme write right >auth)
try 0 check-config conf
if command -v openssl >/dev/null; then
  for name in one two; do
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$name" -keyout $name.key -out $name.pem \
      2>/dev/null
    chmod 600 $name.key
  done
  config 'tls-cert = one.pem' 'tls-key = one.key'
  try 0 check-config conf
  config 'tls-cert = one.pem' 'tls-key = two.key'
  try 2 check-config conf
  has err 'conf:2: two.key is not the key of the certificate in one.pem'
  chmod 644 one.key
  config 'tls-cert = one.pem' 'tls-key = one.key'
  try 2 check-config conf
  has err 'conf:2: one.key may be read by every user; use chmod o-rw.'
fi
checks=$((checks + 1))
[ -z "$(ls -A 'ready store')" ] && [ ! -e holdfast-data ] || fail "the check made something"

# ---- A server out of a file ----
start_and_stop() {
  checks=$((checks + 1))
  last="holdfast serve $*"
  : >out
  "$hf" serve "$@" >out 2>err </dev/null &
  local pid=$! tries=1200
  until grep -q 'listening on' out || [ $((tries -= 1)) = 0 ] || ! kill -0 $pid 2>/dev/null; do sleep 0.05; done
  kill -TERM $pid 2>/dev/null || true
  wait $pid || fail "the server ended with $?"
}
config 'data = ":memory:"' 'listen = 127.0.0.1:0' 'sandbox = off' 'log = json' 'welcome = no'
start_and_stop --config conf
has out 'holdfast: listening on http://127.0.0.1:'
has err '"event":"stopped"'
checks=$((checks + 1))
[ "$(wc -l <out)" = 1 ] || fail 'a welcome that was not asked for'
start_and_stop --config conf --log text --welcome
has err ' info stopped '
checks=$((checks + 1))
[ "$(wc -l <out)" -gt 1 ] || fail 'no welcome'
sed -i s/welcome.*/welcome=yes/ conf
start_and_stop --config conf
checks=$((checks + 1))
[ "$(wc -l <out)" -gt 1 ] || fail 'no welcome'

# ==== What the server's log says at three in the morning: a new store or the old one, started or not, kept or gone. ====
logged() { # TEXT: does the log have it, or get it soon? Its lines are written by a thread of their own.
  checks=$((checks + 1))
  for _ in $(seq 1200); do
    ! grep -q "$1" serve.log || return 0
    sleep 0.05
  done
  grep -q "$1" serve.log || { cp serve.log err; fail "the log does not say: $1"; }
}
not_logged() {
  checks=$((checks + 1))
  ! grep -q "$1" serve.log || { cp serve.log err; fail "the log says: $1"; }
}

serve --data shop
logged 'a new store was created in shop'
unserve
logged 'stopped text="all answered requests are on disk"'

serve --data shop
not_logged 'a new store'
logged 'the store in shop was opened: 0 keys, 0 holds'

# A second one on the same store does not start, and does not say that it stopped in order.
cp serve.log first.log
code=0
"$hf" serve --data shop --listen 127.0.0.1:0 --sandbox $sandbox >out 2>serve.log </dev/null || code=$?
checks=$((checks + 1))
[ "$code" = 3 ] || fail "a second server ended with $code"
logged 'not-started'
not_logged 'on disk'
cp first.log serve.log
unserve

serve --data :memory:
unserve
logged 'the store was in memory and is lost'
not_logged 'on disk'

# A limit on the size of files is a disk without room, not a death without a word.
(ulimit -f 2048 && exec "$hf" serve --data small --listen 127.0.0.1:0 --sandbox $sandbox >out 2>serve.log </dev/null) && code=0 || code=$?
checks=$((checks + 1))
[ "$code" = 3 ] || { cp serve.log err; fail "with a limit on files it ended with $code"; }
logged 'not-started'
finish

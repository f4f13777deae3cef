#!/usr/bin/env bash
# What people type wrongly, the help they get, and the environment.
set -eu
. "$(dirname "$0")/../support/cli.sh"
export HOLDFAST_DATA=$work/store
long=$(printf 'x%.0s' $(seq 1025))

# ---- Wrong usage: exit code 2, and a sentence that has the words behind the bar. Nothing is touched. ----
while IFS='|' read -r arguments words; do
  [ -n "$arguments" ] || continue
  eval "try 2 $arguments"
  has err "$words"
  checks=$((checks + 1))
  [ ! -s out ] || fail "something on stdout"
done <<'TABLE'
nonsense|unknown command "nonsense"
hodl|did you mean hold
srve|did you mean serve
serve x|serve takes no arguments
serve --json|serve does not accept --json
serve --server http://127.0.0.1:1|serve does not accept --server
serve --tenant t|serve does not accept --tenant
serve --log xml|--log: "xml" is invalid; expected: one of text, json
serve --threads 0|--threads: "0" is invalid
serve --tls-cert x|TLS needs both
serve --listen nowhere|listen
""|unknown command ""
--json|no command given
--nonsense|unknown option "--nonsense"
-x|unknown option "-x"
check-config|check-config takes FILE, but 0 arguments were given
check-config a b|2 arguments were given
check-config a --config b|check-config: unknown option "--config"
check-config a --welcome|check-config: unknown option "--welcome"
hold|hold takes RESOURCE, but 0 arguments were given
hold a b --for c --duration 1m|2 arguments were given
hold a|hold needs --for REQUESTER
hold a --for b|hold needs --duration D
hold a --for|--for needs a value
hold a --for b --duration|--duration needs a value
hold a --for b --duration x|--duration: "x" is invalid; expected: a duration
hold a --for b --duration ""|--duration: "" is invalid
hold a --for b --duration -1|--duration: "-1" is invalid
hold a --for b --duration 1.5h|--duration: "1.5h" is invalid
hold a --for b --duration "1 h"|--duration: "1 h" is invalid
hold a --for b --duration 1w|--duration: "1w" is invalid
hold a --for b --duration 1H|--duration: "1H" is invalid
hold a --for b --duration 3651d|at most 3650d
hold a --for b --duration 99999999999999999999|--duration: "99999999999999999999"
hold a --for b --duration 1m --duration 2m|--duration is given twice
hold a --for b --duration 1m --key a --key b|--key is given twice
hold a --for b --duration 1m --fence 0|--fence: "0" is invalid; expected: a whole number from 1
hold a --for b --duration 1m --fence -1|--fence: "-1" is invalid
hold a --for b --duration 1m --fence 18446744073709551616|--fence: "18446744073709551616"
hold a --for b --duration 1m --kye k|did you mean --key
hold a --for b --duration 1m --capacity 3|hold: unknown option "--capacity"
hold a --for b --duration 1m --json=yes|--json takes no value
hold -for b|unknown option "-for"
confirm|confirm takes ID, but 0 arguments were given
confirm a b|2 arguments were given
confirm a --for b|confirm: unknown option "--for"
release|release takes ID
expire|expire takes ID
reverse|reverse takes ID
show|show takes ID
show a --key k|show: unknown option "--key"
list a|list takes no arguments, but 1 argument was given
list --state hold|--state: "hold" is invalid; expected: one of held, confirmed, released, expired
list --state ""|--state: ""
list --state HELD|--state: "HELD"
list --resource ""|--resource: "" is invalid
list --requester ""|--requester: "" is invalid
list --from yesterday|--from: "yesterday" is invalid; expected: a time
list --from 2026-13-01|--from: "2026-13-01"
list --to 2026-02-30|--to: "2026-02-30"
list --to 2026-02-03T25:00:00Z|--to: "2026-02-03T25:00:00Z"
list --to @x|--to: "@x"
list --limit x|--limit: "x" is invalid; expected: a whole number from 0
list --limit -1|--limit: "-1"
list --limit 4294967296|--limit: "4294967296"
list --cursor x|--cursor: "x"
list --cursor 0|--cursor: "0"
resource|resource takes NAME
resource a --capacity 0|--capacity: "0" is invalid; expected: a whole number from 1 to 1000000000
resource a --capacity x|--capacity: "x"
resource a --capacity 1000000001|--capacity: "1000000001"
resource a --capacity 1e3|--capacity: "1e3"
resource a --open --close|exclude each other
resource a --open=1|--open takes no value
guard|guard takes NAME
guard a --window x|--window: "x"
guard a --match trim|--match needs --window
guard a --on-unavailable open|--on-unavailable needs --window
guard a --durable no|--durable needs --window
guard a --window 1m --match fuzzy|--match: "fuzzy" is invalid; expected: up to 4
guard a --window 1m --match trim,|--match: "trim,"
guard a --window 1m --match ""|--match: ""
guard a --window 1m --match exact,trim,casefold,normalize,hash|--match: "exact,trim
guard a --window 1m --on-unavailable maybe|expected: one of open, closed
guard a --window 1m --durable perhaps|expected: one of yes, no
check|check takes GUARD IDENTITY
check a|1 argument was given
check a b c|3 arguments were given
record a|record takes GUARD IDENTITY
admit a|admit takes GUARD IDENTITY
lease|lease takes grant|renew|release|show|delete NAME, but 0 arguments were given
lease grant a b|lease takes grant|renew|release|show|delete NAME, but 3 arguments were given
lease nonsense a|lease "nonsense": expected grant, renew, release, show or delete
register|register takes write|merge|show|delete NAME
register merge a --type sum --value 1|--type: "sum" is invalid; expected: one of max, min, or, union
register merge a --type max --value x|--value: expected JSON
register write a --value 1 --if-version x|--if-version: "x" is invalid
register show a --key k|register show does not accept --key
audit a|audit takes no arguments
trace|trace: expected either the id of a hold or a key, or --client NAME and --sequence N
export|export takes FILE
export x|export needs --format F: what to write, one of jsonl|sqlite
export --format csv x|--format: "csv" is invalid; expected: one of jsonl, sqlite
bench --nonsense|"--nonsense"
bench --rounds x|--rounds
bench --time 1ms|--time
version x|version takes no arguments
help a b|help takes [COMMAND]
help nonsense|there is no command "nonsense"
hold a --for b --duration 1m --registry maybe|--registry: "maybe" is invalid; expected: one of open, strict
hold a --for b --duration 1m --idempotency-window x|--idempotency-window: "x"
hold a --for b --duration 1m --idempotency-window 0|--idempotency-window: "0" is invalid; expected: at least 1ms
hold a --for b --duration 1m --token-max-length 0|--token-max-length: "0"
hold a --for b --duration 1m --token-max-length 1025|--token-max-length: "1025"
bench --server http://h|bench/compare
hold a --for b --duration 1m --server http://h --data d|--data and --server exclude each other
resource r --server http://h --tenant t|a server knows the tenant by the caller
audit --server http://h --tenant t|a server knows the tenant by the caller
hold a --for b --duration 1m --server http://h --registry open|--registry is set where the server is started
hold a --for b --duration 1m --server http://h --idempotency-window 1h|--idempotency-window is set where
hold a --for b --duration 1m --server http://h --token-max-length 9|--token-max-length is set where
list --credential-file x|--credential-file needs a server
list --tls-ca x|--tls-ca needs a server
list --timeout 1s|--timeout needs a server
list --server http://h --timeout 0|the timeout is 0
list --server http://h --timeout x|--timeout: "x" is invalid
list --server http://h --tls-ca x|--tls-ca needs a URL that begins with https://
list --server https://h --tls-ca /nonexistent|is not a readable file of certificates
list --server http://h --credential-file /nonexistent|the credential file "/nonexistent" cannot be used: No such file
list --server ""|begins with http:// or https://
list --server localhost:4653|begins with http:// or https://
list --server ftp://h|begins with http:// or https://
list --server HTTP//h|begins with http:// or https://
list --server http://|no usable host name
list --server http:///x|no usable host name
list --server http://me:secret@h|never in a URL
list --server http://h:0|no port from 1 to 65535
list --server http://h:65536|no port from 1 to 65535
list --server http://h:|no port from 1 to 65535
list --server http://h:12x|no / before it
list --server "http://h x"|unexpected text after its host
list --server http://h?x=1|unexpected text after its host
list --server http://h/p?x=1|unexpected text after its host
list --server http://[::1|no IPv6 address and ]
list --server http://[zz]:1|no IPv6 address and ]
list --server "http://$long"|no usable host name
list --server "http://h/$long"|longer than 255 bytes
TABLE
# A common option that a command does not list in its help is refused, wherever it stands, and never passed over.
declare -A arguments=([hold]="a --for b --duration 1m" [confirm]=a [release]=a [expire]=a [reverse]=a [show]=a [resource]=a
  [guard]=a [lease]="show a" [register]="show a" [check]="a b" [record]="a b" [admit]="a b" [trace]=a [export]="--format jsonl -")
"$hf" help --list >names
while read -r command; do
  for option in data server tenant idempotency-window token-max-length registry json; do
    ! grep -qx -- "$command --$option" names || continue
    value=x
    [ $option != json ] || value=
    # shellcheck disable=SC2086
    try 2 "--$option" $value "$command" ${arguments[$command]-}
    has err "$command does not accept --$option; see: holdfast help $command"
  done
done < <(grep -v ' ' names)
checks=$((checks + 1))
[ ! -e store ] || fail "wrong usage made a store"

# ---- Refused by the rules: exit code 1, the code, and the argument's name. ----
while IFS='|' read -r arguments words; do
  [ -n "$arguments" ] || continue
  eval "try 1 $arguments"
  has err "invalid-request"
  has err "$words"
  eval "try 1 $arguments --json"
  json 'j.code === "invalid-request" && j.status === 400'
done <<'TABLE'
hold "" --for b --duration 1m --key n1|RESOURCE is empty; expected: a name of 1 to 1024 bytes of UTF-8
hold "$long" --for b --duration 1m --key n2|RESOURCE is too long (1025 bytes): "xxx
hold $'a\xff' --for b --duration 1m --key n3|RESOURCE is not UTF-8
hold $'\xc3' --for b --duration 1m --key n4|RESOURCE is not UTF-8
hold a --for "" --duration 1m --key n5|--for is empty
hold a --for "$long" --duration 1m --key n6|--for is too long
hold a --for $'\xed\xa0\x80' --duration 1m --key n7|--for is not UTF-8
hold a --for b --duration 0 --key n8|--duration "0" is too short
hold a --for b --duration 0ms --key n9|--duration "0ms" is too short
hold a --for b --duration 1m --key ""|--key is empty; expected:
hold a --for b --duration 1m --key "${long:0:257}"|--key is too long (257 bytes)
hold a --for b --duration 1m --key abcd --token-max-length 3 --data "$work/short"|--key is too long (4 bytes): "abcd"; expected: 1 to 3 bytes
hold a --for b --duration 1m --key t1 --tenant "${long:0:65}"|--tenant is too long (65 bytes)
hold a --for b --duration 1m --key t2 --tenant $'\xff'|--tenant is not UTF-8
confirm 00000000000000000000000000 --key ""|--key is empty
resource "" --capacity 1|NAME is empty
resource "$long" --close|NAME is too long
resource $'\xff' --open|NAME is not UTF-8
guard "" --window 1m|NAME is empty
guard a --window 0s|--window "0s" is too short
guard a --window 1m --match hash,trim|hash last
record "" x|GUARD is empty
TABLE
try 0 hold a --for b --duration 1m --key "${long:0:256}"
try 0 hold "${long:0:1024}" --for "${long:0:1024}" --duration 1m
try 0 hold c --for b --duration 3650d --token-max-length 1024 --key "${long:0:1024}"

# ---- The environment: instead of an option, never over it. ----
HOLDFAST_DATA=$work/env try 0 hold a --for b --duration 1m --key e1
checks=$((checks + 1))
[ -d env ] || fail "HOLDFAST_DATA is not heard"
HOLDFAST_DATA=$work/env2 try 0 hold a --for b --duration 1m --key e1 --data "$work/env"
has err "(replayed"
checks=$((checks + 1))
[ ! -e env2 ] || fail "HOLDFAST_DATA is heard over --data"
(unset HOLDFAST_DATA && "$hf" hold a --for b --duration 1m --key e1 >out 2>err)
checks=$((checks + 1))
[ -d holdfast-data ] || fail "./holdfast-data is not the default"
try 0 --data "$work/env" --json list
json 'j.holds.length === 1'
HOLDFAST_JSON=1 try 0 list
json 'j.holds'
HOLDFAST_JSON=no try 0 list
has out "RESOURCE"
HOLDFAST_JSON=perhaps try 2 list
has err 'HOLDFAST_JSON: "perhaps" is invalid'
HOLDFAST_IDEMPOTENCY_WINDOW=x try 2 list
has err 'HOLDFAST_IDEMPOTENCY_WINDOW: "x" is invalid'
HOLDFAST_TOKEN_MAX_LENGTH=2 try 1 hold d --for b --duration 1m --key abc --data "$work/short"
has err "expected: 1 to 2 bytes"
try 1 hold d --for b --duration 1m --key abc --data "$work/short" # it stays as it was set
has err "invalid-request"
try 0 hold d --for b --duration 1m --key ab --data "$work/short"
HOLDFAST_REGISTRY=sometimes try 2 list
has err "HOLDFAST_REGISTRY"
HOLDFAST_REGISTRY= try 0 list
# A server is named by --server, or by the environment where nothing stands on the command line.
HOLDFAST_SERVER=http://127.0.0.1:1 try 3 list
has err "server-failed: cannot reach the server at http://127.0.0.1:1: Connection refused"
HOLDFAST_SERVER=http://127.0.0.1:1 try 0 list --data "$work/env"
HOLDFAST_SERVER=nonsense try 2 list
has err "HOLDFAST_SERVER: a server's URL begins with http://"
HOLDFAST_SERVER=http://127.0.0.1:1 try 0 version
HOLDFAST_SERVER=http://127.0.0.1:1 HOLDFAST_TENANT=t try 2 resource r
has err "HOLDFAST_TENANT cannot be used with HOLDFAST_SERVER"
HOLDFAST_TIMEOUT=1s HOLDFAST_CREDENTIAL_FILE=/nonexistent HOLDFAST_TLS_CA=/nonexistent try 0 list --data "$work/env"

# A key is forgotten when its window has closed.
HOLDFAST_IDEMPOTENCY_WINDOW=1ms try 0 resource w --capacity 2
try 0 hold w --for b --duration 1m --key w1 --json
id=$(field id)
sleep 0.02
try 0 hold w --for b --duration 1m --key w1 --json
json "j.id !== '$id'"
hasnt err "replayed"

# ---- Help. ----
got=0
"$hf" >out 2>err || got=$?
last="holdfast"
checks=$((checks + 1))
[ "$got" = 2 ] && [ ! -s out ] || fail "no arguments: exit code $got"
has err "usage: holdfast COMMAND"
for spelling in help --help -h; do
  try 0 $spelling
  has out "usage: holdfast COMMAND"
  checks=$((checks + 1))
  [ "$(awk 'length > 80' out | wc -l)" = 0 ] || fail "lines longer than 80"
done
try 0 help --list
grep -v ' ' out >commands
checks=$((checks + 1))
[ "$(wc -l <commands)" -ge 18 ] || fail "commands are missing"
while read -r command; do
  try 0 help "$command"
  has out "usage: holdfast $command"
  has out "Example:"
  has out "  $ holdfast $command"
  has out "Exit codes:"
  checks=$((checks + 1))
  [ "$(awk 'length > 80' out | wc -l)" = 0 ] || fail "lines longer than 80"
  cp out first
  try 0 "$command" --help
  same first out
done <commands
try 0 version
checks=$((checks + 1))
[[ $(cat out) =~ ^holdfast\ [0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "no version"
try 0 --version
try 0 version --json
json 'j.name === "holdfast" && /^\d+\.\d+\.\d+$/.test(j.version)'

# No colours when nobody sees them, and a full disk behind stdout is not a success.
unset NO_COLOR
try 0 list
hasnt out $'\033'
if [ -e /dev/full ]; then
  got=0
  "$hf" list >/dev/full 2>err || got=$?
  checks=$((checks + 1))
  [ "$got" = 3 ] || fail "exit code $got for an answer that was lost"
  has err "could not be written"
fi
# A slip of the fingers neither makes a store nor binds the key.
slip=$work/slip
try 1 hold bus --for '' --duration 1m --key slip-1 --data "$slip"
try 1 hold bus --for q --duration 0 --key slip-2 --data "$slip"
try 1 confirm nosuch --key slip-3 --data "$slip"
try 1 release '' --data "$slip"
hasnt err "key: "
checks=$((checks + 1))
[ ! -e "$slip" ] || fail "a malformed request made a store"
try 0 hold bus --for q --duration 1m --key slip-1 --data "$slip"
try 1 hold bus2 --for '' --duration 1m --key slip-4 --data "$slip"
try 0 hold bus2 --for q --duration 1m --key slip-4 --data "$slip"

# An answer that nobody could read: it has happened, and the same key tells.
if [ -e /dev/full ]; then
  got=0
  "$hf" hold full --for q --duration 1m --key df-1 --data "$slip" >/dev/full 2>err || got=$?
  checks=$((checks + 1))
  [ "$got" = 4 ] || fail "exit code $got, not 4"
  has err "Retry with the same key"
  try 0 hold full --for q --duration 1m --key df-1 --data "$slip"
  has err "replayed"
fi

finish

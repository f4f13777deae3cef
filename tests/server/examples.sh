#!/usr/bin/env bash
# The files in examples/ and the operator's manual say what the program does: every metric, option and alert that they name
# is there, everything that is there is named, and the tour of the interface runs against a real server.
set -eu
. "$(dirname "$0")/../support/cli.sh"
. "$(dirname "$0")/../support/server.sh"
examples=$HF_SOURCE/examples
manual=$HF_SOURCE/doc/OPERATIONS.md
touch out err

# check WHAT COMMAND...: the command must succeed; its words go to ./out and ./err.
check() {
  checks=$((checks + 1))
  last=$1
  "${@:2}" >out 2>err </dev/null || fail "$1"
}

# refuse WHAT COMMAND...: the command must not succeed.
refuse() {
  checks=$((checks + 1))
  last=$1
  ! "${@:2}" >out 2>err </dev/null || fail "$1"
}

# ---- Metrics ----

names() { grep -ohE '\b(holdfast|idempotency)_[a-z_]+' "$@" | sort -u; }

names "$HF_SOURCE/src/server/metrics.c" >metrics
check "metrics.c has metrics" test "$(wc -l <metrics)" -gt 30
for file in prometheus-alerts.yml grafana-dashboard.json; do
  check "$file names metrics" test "$(names "$examples/$file" | wc -l)" -gt 8
  for name in $(names "$examples/$file"); do
    check "$name, in $file, is a metric" grep -qxE "$name|${name%_*}" metrics
  done
done
while read -r name; do
  check "$name stands in the manual's table" grep -qF "| \`$name\`" "$manual"
done <metrics
for name in $(names "$manual"); do
  check "$name, in the manual, is a metric" grep -qx "$name" metrics
done

# ---- Alerts and dashboard ----

grep -oE 'alert: [A-Za-z]+' "$examples/prometheus-alerts.yml" | cut -d' ' -f2 >alerts
check "there are alerts" test "$(wc -l <alerts)" -gt 8
while read -r alert; do
  check "$alert is explained in the manual" grep -qx "### $alert" "$manual"
done <alerts
for alert in $(sed -n 's/^### \(Holdfast[A-Za-z]*\)$/\1/p' "$manual"); do
  check "$alert, in the manual, is an alert" grep -qx "$alert" alerts
done

cat >dashboard.js <<'JS'
const { panels, templating, title } = JSON.parse(require("fs").readFileSync(process.argv[2], "utf8"));
const wrong = text => { console.error(text); process.exitCode = 1; };
if (!title || !templating.list.some(v => v.name === "source" && v.type === "datasource")) wrong("no title or source");
const used = new Set();
for (const p of panels) {
  if (used.has(p.id)) wrong("panel " + p.id + " is there twice");
  used.add(p.id);
  for (const q of panels) {
    const a = p.gridPos, b = q.gridPos;
    if (p !== q && a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h)
      wrong(p.title + " lies over " + q.title);
  }
  if (p.gridPos.x + p.gridPos.w > 24) wrong(p.title + " is too wide");
  if (p.type === "row") continue;
  if (!p.targets.length) wrong(p.title + " shows nothing");
  for (const t of p.targets) console.log(t.expr.replaceAll("$__rate_interval", "5m"));
}
JS
check "the dashboard is in order" node dashboard.js "$examples/grafana-dashboard.json"
cp out expressions
check "the dashboard asks for something" test "$(wc -l <expressions)" -gt 20
if command -v promtool >/dev/null; then
  check "the alert rules are valid" promtool check rules "$examples/prometheus-alerts.yml"
  {
    echo "groups: [{ name: dashboard, rules: ["
    node -e 'for (const line of require("fs").readFileSync("expressions", "utf8").trim().split("\n"))
      console.log(`{ record: "x", expr: ${JSON.stringify(line)} },`)'
    echo "]}]"
  } >dashboard.yml
  check "the dashboard's expressions are valid" promtool check rules dashboard.yml
fi

# ---- The unit and the proxy ----

if command -v systemd-analyze >/dev/null; then
  sed "s,/usr/local/bin/holdfast,$hf," "$examples/holdfast.service" >holdfast.service
  check "the unit is valid" systemd-analyze verify --man=no ./holdfast.service
  cp err complaints
  check "the unit has nothing that systemd does not know" test ! -s complaints
fi

# ---- The config file ----

try 0 help serve
cp out help
sed -n 's/^ *--\([a-z-]*\).*/\1/p' help | grep -vxE 'config|help|json|tenant' >options
check "serve has options" test "$(wc -l <options)" -gt 12
while read -r option; do
  check "holdfast.conf has $option once" test "$(grep -cE "^#?$option = " "$examples/holdfast.conf")" = 1
  check "--$option stands in the manual's table" grep -qF "| \`$option\`" "$manual"
done <options
sed -n 's/^#\{0,1\}\([a-z-]*\) = .*/\1/p' "$examples/holdfast.conf" >named
# The unit must leave it to the file where the store is; and what the file says is the unit's own directory.
check "the file names the unit's directory" grep -qx 'data = /var/lib/holdfast' "$examples/holdfast.conf"
check "which systemd makes" grep -qx 'StateDirectory=holdfast' "$examples/holdfast.service"
refuse "the unit does not say where the store is" grep -qE '^[A-Za-z]*=.*(--(data|store|postgres)|HOLDFAST_)' \
  "$examples/holdfast.service"
while read -r option; do
  check "serve has $option" grep -qx "$option" options
done <named
# The defaults that help tells are those of the file.
cat >defaults.js <<'JS'
const fs = require("fs");
const help = fs.readFileSync("help", "utf8").replace(/\n {10,}/g, " ");
const conf = fs.readFileSync(process.argv[2], "utf8");
let told = 0;
for (const [, name, text] of help.matchAll(/^ +--([a-z-]+) [^\n]*?  +([^\n]*)/gm)) {
  const value = (conf.match(new RegExp("^#" + name + " = (.*)$", "m")) || [])[1];
  const words = [...text.matchAll(/\(([^()]*)\)/g)].map(m => m[1]);
  if (value === undefined || !words.length || words.includes("no limit")) continue;
  told++;
  if (!words.some(w => w === value || w.endsWith(value + " in a new store"))) {
    console.error(`${name}: the file has ${value}, help has ${words}`);
    process.exitCode = 1;
  }
}
if (told < 10) { console.error(`only ${told} defaults`); process.exitCode = 1; }
JS
check "the defaults in holdfast.conf are true" node defaults.js "$examples/holdfast.conf"
# Every line set, except for files and a database that are not here, in a folder of its own and on a port that is free.
sed -e 's/^data = .*/data = .\/holdfast-data/' -e '/^#\(auth-file\|tls-cert\|tls-key\|postgres\)/d' -e 's/^#\([a-z-]* = \)/\1/' -e 's/^listen = .*/listen = 127.0.0.1:0/' \
  -e 's/^welcome = no/welcome = yes/' "$examples/holdfast.conf" >holdfast.conf

# A program that was built to be watched writes or looks around at its end, which the sandbox forbids.
[ -z "${HF_LINK_FLAGS:-}" ] || sed -i 's/^sandbox = on/sandbox = off/' holdfast.conf

# ---- A real server ----

command -v curl >/dev/null || { echo "curl is missing; tests/server/examples.sh needs it" >&2; exit 1; }
"$hf" serve --config holdfast.conf >server.out 2>server.err </dev/null &
pid=$!
trap 'kill "$pid" 2>/dev/null || true; rm -rf "$work"' EXIT
for _ in $(seq 600); do
  grep -q '^holdfast: listening on ' server.out && [ "$(wc -l <server.out)" -ge 4 ] && break
  kill -0 "$pid" 2>/dev/null || break
  sleep 0.1
done
url=$(sed -n 's/^holdfast: listening on //p' server.out)
[ -n "$url" ] || { cat server.out server.err; echo "the server did not start with holdfast.conf"; exit 1; }

check "the tour runs" sh "$examples/curl.sh" "$url"
has out "The tour is over"
check "the tour runs again" sh "$examples/curl.sh" "$url"
refuse "the tour ends where nobody answers as it must" sh "$examples/curl.sh" "$url/elsewhere"
has out "SURPRISE"

# The three commands, as they are printed. They are for people, so their words are looked at and not their form.
sed 1d server.out >commands
check "three commands are printed" test "$(wc -l <commands)" = 3
for number in 1 2 3; do
  sed -n "${number}p" commands >command
  check "command $number runs" bash ./command
  cp out "answer$number"
done
has answer1 "HTTP/1.1 201 Created"
hasnt answer1 "Idempotent-Replayed"
has answer2 "Idempotent-Replayed: true"
sed -n '/^{/p' answer1 >body1
sed -n '/^{/p' answer2 >body2
same body1 body2
has answer3 "HTTP/1.1 200 OK"
check "there is one hold" test "$(grep -o '"id":' answer3 | wc -l)" = 1

check "the start page is there" curl -sS -D head "$url/"
has out "<!doctype html>"
has head "Content-Security-Policy: default-src 'none'"
has out "holdfast-data"

# Everything that /metrics answers with is documented, and the other way round; but for what only a server on a database has,
# which tests/postgres/program.c and silent.c ask for.
check "/metrics answers" curl -sS "$url/metrics"
sed -n 's/^# TYPE \([a-z_]*\) .*/\1/p' out | sort -u >served
grep -vxE 'holdfast_(database_up|standby_silent_seconds)' metrics >expected
same served expected

# Every code that the sources refuse with is described.
check "the description is there" curl -sS "$url/v1/openapi.json"
cp out openapi.json
grep -ohE '\b[45][0-9]{2}, "[a-z-]+"' "$HF_SOURCE"/src/http/*.c "$HF_SOURCE"/src/server/{handle,bulk,slow}.c |
  sort -u >codes
check "the sources have codes" test "$(wc -l <codes)" -gt 10
while read -r status code; do
  check "$code is described" grep -qF "| $(echo "$code" | tr -d '"') | ${status%,} |" openapi.json
done <codes

# What the server itself writes, beside the records, has the members that are described. (The records are held against
# their schemas by tests/unit/server_answers.c.)
cat >described.js <<'JS'
const fs = require("fs");
const schema = JSON.parse(fs.readFileSync("openapi.json", "utf8")).components.schemas[process.argv[2]];
const lines = fs.readFileSync("answer", "utf8").trim().split("\n");
for (const keys of lines.map(line => Object.keys(JSON.parse(line))))
  if (keys.some(k => !schema.properties[k]) || schema.required.some(k => !keys.includes(k))) {
    console.error(process.argv[2] + " has " + keys);
    process.exitCode = 1;
  }
JS
for pair in "health /healthz" "ready /readyz" "batch_line /v1/batch"; do
  path=${pair#* }
  body=()
  [ "$path" != /v1/batch ] || body=(--data-binary $'{"op":"check"}\n{"op":"merge","name":"n","type":"or","value":true}\n')
  check "$path answers" curl -sS "${body[@]}" "$url$path"
  cp out answer
  check "$path answers as described" node described.js "${pair% *}"
done

kill -HUP "$pid"
for _ in $(seq 600); do
  grep -q reloaded server.err && break
  sleep 0.1
done
kill -TERM "$pid"
code=0
wait "$pid" || code=$?
check "SIGTERM ends it with 0" test "$code" = 0
has server.err "reloaded"
has server.err "stopped"

# ==== The lines of doc/GUIDE.md and of the first screen of README.md do what the pages say they do. A line behind "$ " is run;
# what follows it is what it must say, but for ids, times and what "..." stands for.
trap at_exit EXIT
touch out err

# pattern LINE: a pattern of the shell that a line like it matches.
pattern() {
  sed -E 's/[0-9a-hjkmnp-tv-z]{26}/.../g; s/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,12}Z/.../g
    s/[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{8} GMT/.../g; s/[][*?\\]/\\&/g; s/\.\.\./*/g' <<<"$1"
}

# told: is what was said what the page shows? Its lines are in ./shown; a line "..." there stands for any number of lines.
told() {
  local line want at=1 skip=no said
  checks=$((checks + 1))
  tr -d '\r' <out | grep -v '^$' >said || true
  while read -r want; do
    if [ "$want" = "..." ]; then
      skip=yes
      continue
    fi
    while :; do
      said=$(sed -n "${at}p" said)
      at=$((at + 1))
      # shellcheck disable=SC2053
      [[ $said == $(pattern "$want") ]] && break
      [ $skip = yes ] && [ "$at" -le "$(wc -l <said)" ] && continue
      fail "the page shows: $want"
      return
    done
    skip=no
  done <shown
  [ "$at" -gt "$(wc -l <said)" ] || fail "it says more than the page: $(sed -n "${at}p" said)"
}

# page FILE: run its lines, in order, in one shell. The page's are behind four blanks or more.
page() {
  local command=
  : >shown
  while IFS= read -r line; do
    case $line in
    '$ '*)
      [ -z "$command" ] || told
      command=${line#'$ '}
      last=$command
      : >shown
      eval "$command" >out 2>err </dev/null || fail "it does not end well"
      ;;
    *) [ -z "$line" ] || echo "$line" >>shown ;;
    esac
  done < <(awk '/^```/ { fence = !fence } fence { next } /^    / { sub(/^ +/, ""); print; next } !/^$/ { print "" }' "$1")
  [ -z "$command" ] || told
}

serve --data "$work/guide"
# shellcheck disable=SC2034 # the lines of the page use it
U=$url
page "$HF_SOURCE/doc/GUIDE.md"
has serve.log 'warning outcome-unknown key="pay-77"'
unserve
# The program that the page shows is a part of the example as it is.
awk '/^```/ { on = $0 == "```js"; next } on' "$HF_SOURCE/doc/GUIDE.md" >shown
checks=$((checks + 1))
[ "$(wc -l <shown)" -gt 20 ] || fail "the GUIDE shows no program"
awk -v first="$(head -1 shown)" '$0 == first { on = 1 } on' "$examples/payment-node/shop.mjs" |
  head -"$(wc -l <shown)" >said
same shown said

# The first screen of the README: from the first curl to the end of its block, against the address it names.
serve --data "$work/readme"
awk '/^    \$ curl/ { on = 1 } on && /^[^ ]/ { exit } on' "$HF_SOURCE/README.md" |
  sed "s#http://127.0.0.1:4653#$url#" >screen.md
checks=$((checks + 1))
[ "$(grep -c '^    \$ curl' screen.md)" = 3 ] || fail "the first screen of the README has not three lines"
page screen.md
unserve

# Its command line, in a directory of its own.
awk '/^## On the command line/ { on = 1; next } /^## / { on = 0 } on' "$HF_SOURCE/README.md" |
  grep -v 'export PATH' >commands.md
export PATH=$HF_BUILD:$PATH
checks=$((checks + 1))
[ "$(grep -c '^    \$ ' commands.md)" -ge 4 ] || fail "the README shows no commands"
page commands.md
rm -rf "${HOLDFAST_DATA:-$work/none}"
finish

# What the scripts in tests/cli share. Source it first:
#     . "$(dirname "$0")/../support/cli.sh"
# A script runs in a folder of its own that is removed at the end, with no HOLDFAST_ variable set.
#
#     try CODE ARGUMENTS...   run holdfast; its words go to ./out and ./err; the exit code must be CODE
#     has FILE TEXT           ./FILE must have TEXT in it        hasnt FILE TEXT   must not
#     same FILE FILE          must be equal, byte for byte
#     json EXPRESSION         ./out must be JSON, and EXPRESSION over it (as j) must be true
#     field NAME              that member of the JSON in ./out
#     finish                  say how many checks there were, and fail if one did

hf=${HF_BUILD:?is the folder with the program}/holdfast
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
for name in $(env | sed -n 's/^\(HOLDFAST_[A-Z_]*\)=.*/\1/p'); do unset "$name"; done
export NO_COLOR=1
checks=0
failures=0
last=

fail() {
  failures=$((failures + 1))
  echo "FAILED: $*"
  echo "  after: $last" | cut -c1-200
  sed 's/^/  stdout: /' out | cut -c1-200 | head -20
  sed 's/^/  stderr: /' err | cut -c1-200 | head -20
}

try() {
  local want=$1 got=0
  shift
  checks=$((checks + 1))
  last="holdfast $*"
  "$hf" "$@" >out 2>err </dev/null || got=$?
  [ "$got" = "$want" ] || fail "exit code $got, not $want"
}

has() {
  checks=$((checks + 1))
  grep -qF -- "$2" "$1" || fail "no \"$2\" in $1"
}

hasnt() {
  checks=$((checks + 1))
  ! grep -qF -- "$2" "$1" || fail "\"$2\" in $1"
}

same() {
  checks=$((checks + 1))
  cmp -s "$1" "$2" || { diff "$1" "$2" | head -5; fail "$1 and $2 differ"; }
}

json() {
  checks=$((checks + 1))
  node -e '
    const text = require("fs").readFileSync("out", "utf8");
    let j;
    try { j = JSON.parse(text); } catch (e) { console.log("not JSON: " + e.message); process.exit(1); }
    const time = t => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(t);
    const keys = o => Object.keys(o).join(" ");
    process.exit(new Function("j", "time", "keys", "return " + process.argv[1])(j, time, keys) ? 0 : 1);
  ' "$1" || fail "not so: $1"
}

field() {
  node -e 'console.log(JSON.parse(require("fs").readFileSync("out", "utf8"))[process.argv[1]])' "$1"
}

finish() {
  echo "$checks checks, $failures failed"
  [ "$failures" = 0 ]
}

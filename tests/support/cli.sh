# What the scripts in tests/cli share. Source it first:
#     . "$(dirname "$0")/../support/cli.sh"
# A script runs in a folder of its own that is removed at the end, with no HOLDFAST_ variable set.
#
#     try CODE ARGUMENTS...   run holdfast; its words go to ./out and ./err; the exit code must be CODE
#     has FILE TEXT           ./FILE must have TEXT in it        hasnt FILE TEXT   must not
#     same FILE FILE          must be equal, byte for byte
#     json EXPRESSION         ./out must be JSON, and EXPRESSION over it (as j) must be true
#     field NAME              that member of the JSON in ./out
#     flip FILE AT            change the byte at that place, whatever it is
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

# One node for all questions of a script: to start it takes longer than the program that is tested. It reads a line "WORD
# EXPRESSION" for each, and answers with a line.
mkfifo questions answers
node -e '
  const fs = require("fs");
  const time = t => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(t);
  const keys = o => Object.keys(o).join(" ");
  const ask = (word, text) => {
    const j = JSON.parse(fs.readFileSync("out", "utf8"));
    if (word === "field") return String(j[text]);
    return new Function("j", "time", "keys", "return " + text)(j, time, keys) ? "yes" : "no";
  };
  require("readline").createInterface({ input: fs.createReadStream("questions") }).on("line", line => {
    const at = line.indexOf(" ");
    let said;
    try { said = ask(line.slice(0, at), line.slice(at + 1)); } catch (e) { said = "not so: " + e.message; }
    fs.writeSync(1, said.replace(/\n/g, " ") + "\n");
  });' >answers &
exec 61<answers 60>questions

json() {
  local said
  checks=$((checks + 1))
  echo "json $1" >&60
  read -r said <&61
  [ "$said" = yes ] || fail "$said: $1"
}

field() {
  local said
  echo "field $1" >&60
  read -r said <&61
  echo "$said"
}

flip() {
  local byte
  byte=$(od -An -tu1 -j "$2" -N 1 "$1")
  printf "\\$(printf %03o $((255 - byte)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

finish() {
  echo "$checks checks, $failures failed"
  [ "$failures" = 0 ]
}

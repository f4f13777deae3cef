#!/usr/bin/env bash
# bench runs, answers in both forms, and cleans up after itself. Its figures are not judged here.
set -eu
. "$(dirname "$0")/../support/cli.sh"
small="--tokens 1000 --resources 100 --time 50ms --rounds 1"
# shellcheck disable=SC2086
try 0 bench $small --dir "$work/there" --out "$work/figures"
has out "bare log"
checks=$((checks + 1))
[ ! -e there ] || fail "the folder is still there"
for file in bench.txt bench.json bench.svg; do
  checks=$((checks + 1))
  [ -s "figures/$file" ] || fail "no $file"
done
cp figures/bench.json out
json 'typeof j === "object"'
# Several rounds, as JSON, and on a terminal, where a line shows how far it is and is gone at the end. Figures that cannot
# be kept are shown all the same.
mkdir -p taken/bench.txt
last="bench on a terminal"
checks=$((checks + 1))
code=0
script -qec "'$hf' bench --tokens=1000 --resources 100 --time 60ms --rounds 2 --json --dir there --out taken >figures.json" \
  err >/dev/null </dev/null || code=$?
[ $code = 3 ] || fail "exit code $code, not 3"
has err 'measuring '
has err 'cannot write taken/bench.txt: Is a directory'
checks=$((checks + 1))
[ "$(tr -d '\n' <err | sed 's/.*\x1b\[K//' | grep -c measuring)" = 0 ] || fail "the line is still there"
cp figures.json out
json 'typeof j === "object"'
for wrong in '--tokens' '--tokens=999' '--rounds 0' '--time soon' '--resources x'; do
  # shellcheck disable=SC2086
  try 2 bench --dir there $wrong
  has err "${wrong%%[ =]*}"
done
checks=$((checks + 1))
[ ! -e there ] || fail "the folder is still there"
mkdir there
touch there/mine
# shellcheck disable=SC2086
try 2 bench $small --dir "$work/there"
checks=$((checks + 1))
[ -e there/mine ] || fail "bench removed a file that is not its own"
finish

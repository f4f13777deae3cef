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
mkdir there
touch there/mine
# shellcheck disable=SC2086
try 2 bench $small --dir "$work/there"
checks=$((checks + 1))
[ -e there/mine ] || fail "bench removed a file that is not its own"
finish

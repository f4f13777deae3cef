#!/usr/bin/env bash
# Check every model with spin: the model itself must hold in every state that can be reached, and each bug that
# its head names must be refuted. A bug that is not found means that the model is blind.
set -eu
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ "${HF_SCALE:-full}" = full ] || { echo "the models are the same in every build: checked with the release build"; exit 0; }
cd "$work"
failed=0

check() { # model bug-or-nothing; says "holds" or "refuted", with how many states were looked at
  rm -f pan*
  spin -a ${2:+-D"$2"} "$here/$1.pml" >spin.out 2>&1 || { cat spin.out; return 1; }
  gcc -O0 -w -DSAFETY -o pan pan.c || return 1 # compiling takes longer than checking
  timeout 120 ./pan -m1000000 -n >pan.out 2>&1 || { cat pan.out; return 1; }
  ! grep -q 'max search depth too small\|out of memory' pan.out || { cat pan.out; return 1; }
  states=$(awk '/states, stored/ { print $1 }' pan.out)
  verdict="says something else"
  ! grep -q "errors: 0" pan.out || verdict=holds
  ! grep -q "assertion violated" pan.out || verdict=refuted
  echo "$1${2:+ with $2}: $verdict ($states states)"
}

for path in "$here"/*.pml; do
  model=$(basename "$path" .pml)
  check "$model" "" || failed=1
  [ "$verdict" = holds ] || { cat pan.out; failed=1; }
  bugs=$(sed -n 's/.*bug \([A-Z_]*\):.*/\1/p' "$path")
  [ -n "$bugs" ] || { echo "$model has no buggy twin"; failed=1; }
  for bug in $bugs; do
    check "$model" "$bug" || failed=1
    [ "$verdict" = refuted ] || failed=1
  done
done
[ $failed = 0 ]

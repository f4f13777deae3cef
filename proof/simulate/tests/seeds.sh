#!/usr/bin/env bash
# The simulator finds nothing: in the first seeds, and in those that once showed a mistake of the store, the judge or the
# simulated disk (seeds-that-failed, a line each: seed, operations, and what it was).
set -eu
. "$HF_SOURCE/tests/support/cli.sh"
here=${HF_SOURCE:?is the folder with the source}/proof/simulate/tests

count=60
[ "${HF_SCALE:-small}" = full ] && count=2000
try 0 simulate --seeds "$count" --jobs 2
has out "$count seeds from 1"
has out "none failed"
tail -1 out

while read -r seed ops _; do
  case $seed in '' | '#'*) continue ;; esac
  try 0 simulate --seed "$seed" --ops "$ops"
done <"$here/seeds-that-failed"
finish

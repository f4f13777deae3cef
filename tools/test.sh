#!/usr/bin/env bash
# make test: build with warnings as errors and run every test, three times: with clang under the address and the undefined
# behaviour sanitizer, with gcc under the thread sanitizer, and with gcc as it is installed, where the heavy tests run at
# their full size. Before the last, plant every bug. Each run ends with ctest's summary line.
set -eu
jobs=$(nproc 2>/dev/null || echo 2)

# Tests wait more than they work: for a disk, for a patience to run out, for a process to end.
tests_at_once=$((3 * jobs))

run() { # preset folder scale
  echo "== $1"
  # Twice: where an old folder gets another compiler, cmake forgets the other settings the first time.
  for _ in 1 2; do cmake --preset "$1" -DHF_TESTS=ON -DHF_WERROR=ON -DHF_SCALE="$3" >/dev/null; done
  cmake --build "$2" -j "$jobs" -- --no-print-directory
  ctest --test-dir "$2" --output-on-failure -j "$tests_at_once"
}

run asan build-asan small
run tsan build-tsan small

echo "== bugs on purpose"
tools/bugs.sh

run release build full

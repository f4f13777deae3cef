#!/usr/bin/env bash
# make test: build with warnings as errors and run every test with clang under the address and the undefined behaviour
# sanitizer; with gcc under the thread sanitizer those that have threads; run every test with gcc as it is installed, where
# the heavy ones have their full size; and plant every bug into that last build. Each run ends with ctest's summary line.
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

# Without the tests of what no sanitizer sees: SQL functions, and an example in another language (HF_TEST_NOT).
run asan build-asan small
# The engine and the server, on both stores: HF_TEST_ONLY and HF_TEST_NOT in CMakePresets.json. What is below them, and the
# simulator, has one thread; so have the tests of SQL and of the audit. Those with several servers or clusters have threads
# that others have too.
run tsan build-tsan small

run release build full

echo "== bugs on purpose"
proof/bugs/bugs.sh

#!/usr/bin/env bash
# make test: build with warnings as errors, with both compilers, and run every test; then the same tests
# under the sanitizers. Ends with ctest's summary line of each run.
set -eu
jobs=$(nproc 2>/dev/null || echo 2)

run() { # preset folder scale
  echo "== $1"
  cmake --preset "$1" -DHF_TESTS=ON -DHF_WERROR=ON -DHF_SCALE="$3" >/dev/null
  cmake --build --preset "$1" -j "$jobs" 2>/dev/null || cmake --build "$2" -j "$jobs"
  ctest --test-dir "$2" --output-on-failure -j "$jobs"
}

run clang build-clang small
run asan build-asan small
run tsan build-tsan small

echo "== bugs on purpose"
tools/bugs.sh

run release build full

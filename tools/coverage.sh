#!/usr/bin/env bash
# make coverage: build with counters, run every test, and say what was reached. Fails unless the tests
# reach every line and every branch of src/core. Lines with HF_ASSERT have a side that must not be
# reached, so their branches are not counted.
set -eu
cd "$(dirname "$0")/.."
jobs=${JOBS:-$(nproc 2>/dev/null || echo 2)}
build=build-coverage

cmake --preset coverage -DHF_TESTS=ON >/dev/null
cmake --build "$build" -j "$jobs"
find "$build" -name '*.gcda' -delete # counts of an earlier run
ctest --test-dir "$build" --output-on-failure -j "$jobs"

report() { # filter, more arguments of gcovr
  filter=$1
  shift
  gcovr --root . --filter "$filter" --object-directory "$build" \
    --exclude-branches-by-pattern '.*HF_ASSERT.*' --gcov-ignore-parse-errors "$@" "$build"
}

echo "== src/core, branches"
report src/core/ --branches
echo "== src/core, lines"
report src/core/ --fail-under-line 100 --fail-under-branch 100 || {
  echo "coverage: src/core is not reached as a whole: see the missing lines above" >&2
  exit 1
}
echo "== src"
report src/ --print-summary

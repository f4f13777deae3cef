#!/usr/bin/env bash
# make coverage: build with counters, run every test, and say what was reached. Fails unless the tests reach every line and
# every branch of src/core, and 95 % of the lines of all of src. Lines with HF_ASSERT have a side that must not be reached,
# so their branches are not counted. What ends by _exit or by a signal is not counted either, though it was tried.
set -eu
cd "$(dirname "$0")/.."
jobs=${JOBS:-$(nproc 2>/dev/null || echo 2)}
build=build-coverage
least=95 # percent of the lines of src
status=0

cmake --preset coverage -DHF_TESTS=ON >/dev/null
cmake --build "$build" -j "$jobs" -- --no-print-directory
find "$build" -name '*.gcda' -delete # counts of an earlier run
ctest --test-dir "$build" --output-on-failure -j "$jobs" || status=1

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
  status=1
}
echo "== src, lines"
report src/ --sort-percentage --fail-under-line $least || {
  echo "coverage: less than $least % of the lines of src are reached: see the missing lines above" >&2
  status=1
}
[ $status = 0 ] || echo "coverage: failed" >&2
exit $status

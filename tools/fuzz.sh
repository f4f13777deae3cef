#!/usr/bin/env bash
# make fuzz: run every fuzz target (or one) for some time, and keep what reached something new.
#   tools/fuzz.sh SECONDS [TARGET]        JOBS targets run at once (one, if nothing is said)
# Prints a line a target and adds it to doc/proof/fuzz.record. A crash, a sanitizer's report, more than 1 GiB or 10 s for
# one input: says which input it was and how to run it again, and fails.
# The kept inputs of a target are in proof/fuzz/corpus/TARGET.pack, those that once failed in proof/fuzz/regressions/TARGET.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
only=${2:-}
jobs=${JOBS:-1}
build=$PWD/build-fuzz
work=$build/fuzz
shopt -s nullglob

# One target: unpack, run, merge, pack, tell. Called by this script itself, which gives it a TMPDIR of its own.
one() {
  name=$1
  program=$build/proof/fuzz_$name
  log=$work/$name.log
  found=$work/$name.found
  merged=$work/$name.merged
  pack=proof/fuzz/corpus/$name.pack
  regressions=("proof/fuzz/regressions/$name"/*)
  kept=$TMPDIR/$name.kept
  mkdir -p "$found" "$kept" "$work/seeds/$name"
  # A new target has no pack yet.
  [ ! -e "$pack" ] || "$build/proof/fuzz_corpus" unpack "$pack" "$kept"
  [ ${#regressions[@]} = 0 ] || cp "${regressions[@]}" "$kept"
  set -- -rss_limit_mb=1024 -timeout=10 -max_len=8192
  # The words of this target, up to the next heading.
  awk -v heading="[$name]" '/^\[/ { ours = $0 == heading; next } ours' proof/fuzz/words.dict >"$work/$name.dict"
  [ ! -s "$work/$name.dict" ] || set -- "$@" "-dict=$work/$name.dict"
  status=0
  "$program" "$@" -max_total_time="$seconds" -print_final_stats=1 -artifact_prefix="$work/$name-" \
    "$found" "$kept" "$work/seeds/$name" >"$log" 2>&1 || status=$?
  if [ "$status" != 0 ]; then
    input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
    echo "fuzz_$name failed: $(grep -m 1 -E 'not as it should be|this is a bug|runtime error|ERROR: ' "$log" || echo "status $status")"
    echo "  again: $program ${input:-(see $log)}"
    return 1
  fi
  # The pack that stands in the source has the fewest inputs that reach as many edges; the same inputs make the same pack.
  # What once failed is kept for its own sake. All that was found stays in the build folder, for the next run to begin with.
  rm -rf "$merged"
  mkdir -p "$merged"
  "$program" "$@" -set_cover_merge=1 -use_counters=0 "$merged" "$kept" "$found" "$work/seeds/$name" \
    >"$work/$name.merge.log" 2>&1
  "$build/proof/fuzz_corpus" pack "$merged" "$pack"
  inputs=("$merged"/* "${regressions[@]}")
  printf '%s %-12s %5s s, %10s runs, %6s edges, %4s inputs of %7s bytes\n' "$(date -u +%Y-%m-%dT%H:%MZ)" "$name" "$seconds" \
    "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" \
    "$(grep -o 'cov: [0-9]*' "$log" | tail -n 1 | cut -d ' ' -f 2)" "${#inputs[@]}" \
    "$(cat "${inputs[@]}" | wc -c)" | tee -a doc/proof/fuzz.record
}

if [ "${2:-}" = --one ]; then
  one "$3"
  exit
fi

cmake --preset fuzz -DHF_TESTS=ON >/dev/null
cmake --build "$build" -j "${BUILD_JOBS:-$(nproc 2>/dev/null || echo 2)}" --target fuzz_targets >/dev/null
mkdir -p "$work"
HF_SOURCE=$PWD "$build/proof/fuzz_seeds" "$work/seeds"

# Those that read real files are faster where files are memory.
parent=${TMPDIR:-/tmp}
[ -d /dev/shm ] && [ -w /dev/shm ] && parent=/dev/shm
TMPDIR=$(mktemp -d "$parent/holdfast-fuzz-XXXXXX")
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT

names=$only
[ -n "$names" ] || names=$(for source in proof/fuzz/*.c; do basename "$source" .c; done)
failed=0
echo "$names" | xargs -n 1 -P "$jobs" "$0" "$seconds" --one || failed=1
exit $failed

#!/usr/bin/env bash
# make crash N=10000: kill a loaded server N times, and judge everything that it had acknowledged. Rounds that went well are
# noted in build/kills.record, so that a run that was broken off goes on where it was; remove that file to begin anew.
set -eu
jobs=$(nproc 2>/dev/null || echo 2)
kills=${1:-10000}
case $kills in
'' | *[!0-9]*)
  echo "crash: N is \"$kills\"; expected a number of kills, such as make crash N=10000" >&2
  exit 2
  ;;
esac

cmake --preset release -DHF_TESTS=ON >/dev/null
cmake --build build -j "$jobs" --target holdfast crash_kills -- --no-print-directory
exec build/proof/crash_kills --kills "$kills" --record build/kills.record

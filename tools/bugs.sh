#!/usr/bin/env bash
# Plant every bug of src/base/bug.h, one at a time, and see it caught: those of core, journal and engine by
# `holdfast simulate` (one of the journal by a test), those of the server by the histories of real clients (proof/crash), each within its number of
# seeds, and those of PostgreSQL by the test of what no standby has. Without any bug the same must find nothing.
#
#   tools/bugs.sh [--seeds N] [--write] [NAME...]
#     --seeds 400   so many seeds a bug has to be caught in (server: rounds of 3 kills, at most 4)
#     --write       put the table into doc/TESTING.md
#
# Ends with "N caught, M missed".
set -eu
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=$(nproc 2>/dev/null || echo 2)
seeds=400 write=no names=
while [ $# -gt 0 ]; do
  case $1 in
  --seeds) seeds=$2 && shift 2 ;;
  --write) write=yes && shift ;;
  -*) echo "bugs: what is $1? (--seeds N, --write, names)" >&2 && exit 2 ;;
  *) names="$names $1" && shift ;;
  esac
done
build=$root/build-bugs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DHF_BUGS=ON -DHF_TESTS=ON -DHF_WERROR=ON >/dev/null
cmake --build "$build" -j "$jobs" --target holdfast holdfast-simulate store_found_sealed_header store_found_rot_at_work power_plain crash_kills server_tenants server_fair server_shares postgres_replicated postgres_removed postgres_reloaded postgres_lying postgres_failover postgres_swift_gone postgres_guards postgres_turns postgres_old_primary postgres_behind_commit postgres_silent -- --no-print-directory >"$work/build" 2>&1 ||
  { cat "$work/build"; exit 1; }
hf=$build/holdfast

# The list, out of the header: NAME PART WORDS
sed -n 's/^ *X(\([a-z_]*\), *\([a-z]*\), *"\(.*\)").*/\1 \2 \3/p' "$root/src/base/bug.h" >"$work/list"

# Sets $where and $said if the bug was caught.
by_simulation() {
  local from=1 many=5 code
  while [ $from -le "$seeds" ]; do
    code=0
    HF_BUG=$1 timeout 300 "$hf" simulate --seed $from --seeds $many >"$work/$1.out" 2>&1 || code=$?
    if [ $code = 1 ]; then
      where=$(sed -n 's/^seed \([0-9]*\) failed.*/\1/p' "$work/$1.out" | head -1)
      said=$(sed -n 's/^seed [0-9]* failed: //p' "$work/$1.out" | head -1)
      # The same seed goes well without the bug: then it was the bug.
      [ -n "$where" ] && "$hf" simulate --seed "$where" >"$work/$1.clean" 2>&1
      return
    fi
    [ $code = 0 ] || { tail -3 "$work/$1.out" >&2; return 1; } # neither found nor not found: it did not run
    from=$((from + many))
    many=$((many * 2))
  done
  return 1
}

# A round that fails with the bug must go well without it: then it was the bug. One of three kills may well be blind (3);
# that tells of no bug and is no fault.
round_ends() { # BUG-OR-NONE ROUND FILE: 0 fine, 1 something was lost or done twice, 3 fine but blind
  local code=0
  env ${1:+"HF_BUG=$1"} timeout 120 "$build/proof/crash_kills" --kills 3 --seed "$2" --program "$hf" >"$3" 2>&1 || code=$?
  echo $code
}

round_fails() { # NAME ROUND
  [ "$(round_ends "$1" "$2" "$work/$1.out")" = 1 ] || return 1
  case $(round_ends '' "$2" "$work/$1.clean") in 0 | 3) ;; *) return 1 ;; esac
}

by_history() {
  for round in 1 2 3 4; do
    if round_fails "$1" $round; then
      where=$round
      said=$(grep -m 1 "^seed .*: " "$work/$1.out" | sed "s/^seed [^:]*: //")
      return 0
    fi
  done
  return 1
}

# Who is who cannot be told from what one caller sees: the test of tenants tells. And a primary and its standby are real ones.
by_test() { # NAME TEST
  local folder=tests
  [ ! -e "$build/proof/$2" ] || folder=proof
  ! HF_BUG=$1 HF_BUILD=$build timeout 300 "$build/$folder/$2" >"$work/$1.out" 2>&1 || return 1
  # That it passes without the bug is looked at by every other run of the tests; here other bugs run beside it.
  HF_BUILD=$build timeout 300 "$build/$folder/$2" >"$work/$1.clean" 2>&1 ||
    HF_BUILD=$build timeout 300 "$build/$folder/$2" >"$work/$1.clean" 2>&1 ||
    { echo "$2 fails without a bug, too:" && tail -n 40 "$work/$1.clean"; return 1; } >&2
  where=1
  said=$(grep -m 1 "FAILED" "$work/$1.out")
}

one() { # NAME PART WORDS: writes a row
  local name=$1 part=$2 words=$3 where='' said='' how=seed
  if [ "$part" = server ]; then
    how=round
    case $name in
    server_tenant_ignored | server_audit_of_all)
      how=run
      by_test "$name" server_tenants || where=
      ;;
    server_one_line)
      how=run
      by_test "$name" server_fair || where=
      ;;
    server_share_configured | server_exports_unbounded | server_sheds_any | server_endings_wait)
      how=run
      by_test "$name" server_shares || where=
      ;;
    *) by_history "$name" || where= ;;
    esac
  elif [ "$part" = postgres ]; then
    how=run
    case $name in
    absence_told) by_test "$name" postgres_removed || where= ;;
    reload_ignored) by_test "$name" postgres_reloaded || where= ;;
    entry_of_another) by_test "$name" postgres_lying || where= ;;
    left_freed_at_once) by_test "$name" postgres_swift_gone || where= ;;
    old_primary_kept) by_test "$name" postgres_old_primary || where= ;;
    commit_undone) by_test "$name" postgres_behind_commit || where= ;;
    left_unreplicated) by_test "$name" postgres_swift_gone || where= ;;
    guards_crowded) by_test "$name" postgres_guards || where= ;;
    questions_behind_commits) by_test "$name" postgres_silent || where= ;;
    tenants_in_one_line) by_test "$name" postgres_turns || where= ;;
    *)
      by_test "$name" postgres_replicated || where=
      # When the primary is killed is left to chance: ten cycles, and again if they have not shown it.
      [ -z "$where" ] || HF_CYCLES=10 by_test "$name" postgres_failover || HF_CYCLES=20 by_test "$name" postgres_failover ||
        HF_CYCLES=40 by_test "$name" postgres_failover || where=
      ;;
    esac
  elif [ "$name" = header_proves_nothing ]; then
    how=run # rot of one batch and a torn write of the next, at the same time
    by_test "$name" store_found_sealed_header || where=
  elif [ "$name" = header_not_first ]; then
    how=run # the power goes between two writes, of which the later one is kept
    by_test "$name" power_plain || where=
  elif [ "$name" = entry_of_another_key ]; then
    how=run # a block in a wrong place, with all its checksums
    by_test "$name" store_found_rot_at_work || where=
  else
    by_simulation "$name" || where=
  fi
  said=$(printf %s "$said" | tr '|\t' '  ' | cut -c 1-160)
  printf '%s\t%s\t%s\t%s\t%s\n' "$name" "$part" "$words" "${where:+$how $where}" "$said" >"$work/row.$name"
  echo "$name: ${where:+caught at $how $where: $said}${where:-MISSED}" | sed "s/: \(.*\)$where\$/: \1/"
}

"$hf" simulate --seed 1 --seeds 50 >"$work/clean" 2>&1 || { echo "without a bug it finds one:"; cat "$work/clean"; exit 1; }
while read -r name part words; do
  [ -z "$names" ] || case " $names " in *" $name "*) ;; *) continue ;; esac
  while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n || true; done
  one "$name" "$part" "$words" &
done <"$work/list"
wait

caught=0 missed=0
: >"$work/table"
while read -r name part words; do
  [ -f "$work/row.$name" ] || continue
  IFS=$'\t' read -r _ _ _ where said <<<"$(sed 's/\t\t/\t-\t/' "$work/row.$name")"
  if [ "$where" = - ]; then missed=$((missed + 1)); else caught=$((caught + 1)); fi
  echo "| \`$name\` | $part | $words | ${where/#-/not caught} | $said |" >>"$work/table"
done <"$work/list"

if [ $write = yes ] && [ -z "$names" ]; then
  awk -v table="$work/table" '
    /<!-- bugs: begin/ { print; print ""; print "| bug | part | what goes wrong | caught at | what was said |"
      print "|---|---|---|---|---|"; while ((getline line < table) > 0) print line; print ""; skip = 1 }
    /<!-- bugs: end/ { skip = 0 }
    !skip || /<!-- bugs: end/ { if (!/<!-- bugs: begin/) print }' "$root/doc/TESTING.md" >"$work/testing"
  cp "$work/testing" "$root/doc/TESTING.md"
fi
# A list that could not be read, or a name that is not in it, must not look like success.
if [ -n "$names" ]; then wanted=$(echo "$names" | wc -w); else wanted=$(grep -c '^ *X(' "$root/src/base/bug.h"); fi
[ $((caught + missed)) = "$wanted" ] || { echo "$((caught + missed)) bugs were tried, and $wanted should have been"; exit 1; }
echo "$caught caught, $missed missed"
[ $missed = 0 ]

#!/usr/bin/env bash
# Plant every bug of proof/bugs/*.patch, one at a time, and see it caught. Without a bug, the same
# runs must find nothing.
#
#   proof/bugs/bugs.sh [--seeds N] [--write] [--apply] [NAME...]
#     --seeds 400   a bug has to be caught within so many seeds of the simulator
#     --write       put the table into doc/TESTING.md
#     --apply       only look whether every patch applies to the sources
#
# A bug is a header and a unified diff with one line of context, which changes .c files of src:
#
#   bug: NAME
#   part: core, journal, engine, postgres or server
#   goes-wrong: what a user of the store would see
#   caught-by: simulate                     a seed of the simulator fails
#   caught-by: histories                    clients of a server that is killed see what cannot be
#                                           (proof/crash), within four rounds of three kills
#   caught-by: test NAME [VARIABLE=VALUE [or VARIABLE=VALUE]...]
#                                           this test program fails; with "or", in one of these runs;
#                                           HF_TEST=TEST runs only that test of the program
#
# A bug with several lines "caught-by" has to be caught by each of them.
#
# The programs are those of the release build in build/. For a bug, only the files that its patch
# changes are compiled, and only the programs that have to catch it are linked: the changed objects
# come before the archives, so the linker does not take the archives' own.
#
# Ends with "N caught, M missed".
set -eu
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
jobs=$(nproc 2>/dev/null || echo 2)
seeds=400 write=no apply=no names=
while [ $# -gt 0 ]; do
  case $1 in
  --seeds) seeds=$2 && shift 2 ;;
  --write) write=yes && shift ;;
  --apply) apply=yes && shift ;;
  -*) echo "bugs: unknown option $1; expected --seeds N, --write, --apply or names" >&2 && exit 2 ;;
  *) names="$names $1" && shift ;;
  esac
done
build=$root/build
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# ---- The patches ----

# Each bug gets a folder: its patch, its part, its words and its means. The list has their names.
: >"$work/list"
awk -v work="$work" '
  function complain(text) { print "bugs: " FILENAME ":" FNR ": " text > "/dev/stderr"; bad = 1 }
  function ended() { if (bug && !(part && words && means && diff)) complain(bug ": its header or diff is incomplete") }
  /^bug: / {
    ended(); close(to); bug = $2; part = words = means = diff = ""; to = work "/" bug "/patch"
    if (bug !~ /^[a-z_]+$/ || bug in seen) { complain(bug ": expected a new name of a-z and _"); exit }
    seen[bug] = 1; system("mkdir -p " work "/" bug); print bug > (work "/list"); next
  }
  bug == "" { next }
  /^part: /       { part = $2; print part > (work "/" bug "/part"); close(work "/" bug "/part"); next }
  /^goes-wrong: / { words = substr($0, 13); print words > (work "/" bug "/words"); close(work "/" bug "/words"); next }
  /^caught-by: /  {
    means = substr($0, 12); print means >> (work "/" bug "/means"); close(work "/" bug "/means")
    if (means !~ /^(simulate|histories|test [a-z_]+( [A-Z_]+=[^ ]+( or [A-Z_]+=[^ ]+)*)?)$/)
      complain(bug ": unknown caught-by: " means)
    next
  }
  /^\+\+\+ / && $2 !~ /^b\/src\/.*\.c$/ { complain(bug ": changes " $2 "; expected a .c file of src") }
  /^[-+@ ]/ { diff = 1; print > to; next }
  /^(diff|index) / { next } # of git diff
  /./ { complain(bug ": expected a header or a diff: " $0) }
  END { ended(); exit bad }' "$root"/proof/bugs/*.patch

# Fills the bug's folder with changed copies of the files. Fuzz, or any other doubt, is a failure.
plant() { # NAME
  local file
  for file in $(sed -n 's/^+++ b\///p' "$work/$1/patch"); do
    mkdir -p "$work/$1/$(dirname "$file")"
    cp "$root/$file" "$work/$1/$file" || return 1
  done
  patch -d "$work/$1" -p1 -F0 -N -r - --no-backup-if-mismatch -i "$work/$1/patch" </dev/null
}

[ -n "$names" ] || names=$(cat "$work/list")
[ -n "$names" ] || { echo "bugs: no patch has a bug" >&2; exit 1; }
for name in $names; do
  [ -d "$work/$name" ] || { echo "bugs: no patch has a bug with the name $name" >&2; exit 1; }
  plant "$name" >"$work/$name/out" 2>&1 ||
    { echo "bugs: the patch of $name does not apply:" && cat "$work/$name/out" && : >"$work/rotten"; } >&2
done
[ ! -e "$work/rotten" ] || exit 1
if [ $apply = yes ]; then
  echo "$(echo "$names" | wc -w) patches apply"
  exit
fi

# ---- Building ----

needed() { # NAME: the programs that have to catch it
  sed -n "s/^simulate/holdfast-simulate/p; s/^histories/holdfast crash_kills/p
    s/^test \([a-z_]*\).*/holdfast \1/p" "$work/$1/means"
}

folder_of() { # PROGRAM: where in the build folder it is
  case $1 in
  holdfast | holdfast-simulate) echo . ;;
  *) if [ -d "$build/tests/CMakeFiles/$1.dir" ]; then echo tests; else echo proof; fi ;;
  esac
}

# Settings that the folder already has stay, so nothing is compiled again because of them.
(cd "$root" && cmake --preset release -DHF_TESTS=ON) >/dev/null
# shellcheck disable=SC2046
cmake --build "$build" -j "$jobs" --target holdfast-simulate $(for name in $names; do needed "$name"; done | xargs -n 1 | sort -u) \
  -- --no-print-directory >"$work/build" 2>&1 || { cat "$work/build"; exit 1; }
cc=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")

compile() { # NAME
  local file part flags
  for file in $(sed -n 's/^+++ b\///p' "$work/$1/patch"); do
    part=$(echo "$file" | cut -d / -f 2)
    flags=$(sed -n 's/^C_[A-Z]* = //p' "$build/CMakeFiles/hf_$part.dir/flags.make" | xargs)
    # A bug may well leave a function or a variable unused.
    # shellcheck disable=SC2086
    "$cc" "-I$work/$1/src" $flags -w -g0 -c "$work/$1/$file" -o "$work/$1/$(echo "$file" | tr / _).o" || return 1
  done
}

# The program is where it would be in a build folder: some start the others from there.
link() { # NAME PROGRAM
  local folder from=$build line
  folder=$(folder_of "$2")
  [ "$2" != holdfast-simulate ] && from=$build/$folder || from=$build/proof
  line=$(sed "s| -o [^ ]* | -Wl,--strip-debug -o '$work/$1/$folder/$2' '$work/$1'/*.o |" "$from/CMakeFiles/$2.dir/link.txt")
  mkdir -p "$work/$1/$folder"
  (cd "$from" && eval "$line")
}

make_all() { # NAME
  local program
  compile "$1" || return 1
  for program in $(needed "$1" | xargs -n 1 | sort -u); do link "$1" "$program" || return 1; done
}

# ---- Catching ----
# Each sets $how, $where and $said if it catches the bug.

# How does a command end without a bug? It is run once for all bugs. Prints its exit code.
clean() { # WHAT COMMAND...
  local what=$work/clean.$1 code=0
  shift
  (
    flock 9
    [ -e "$what.code" ] || { "$@" >"$what" 2>&1 9>&- || code=$?; echo $code >"$what.code"; }
  ) 9>"$what.lock"
  cat "$what.code"
}

by_simulation() { # NAME
  local from=1 many=5 code seed
  while [ $from -le "$seeds" ]; do
    code=0
    timeout 300 "$work/$1/holdfast-simulate" --seed $from --seeds $many >"$work/$1/out" 2>&1 || code=$?
    if [ $code = 1 ]; then
      seed=$(sed -n 's/^seed \([0-9]*\) failed.*/\1/p' "$work/$1/out" | head -1)
      # The same seed passes without the bug: then it was the bug.
      [ -n "$seed" ] && [ "$(clean "seed-$seed" "$build/holdfast-simulate" --seed "$seed")" = 0 ] || return 1
      how=seed where=$seed said=$(sed -n 's/^seed [0-9]* failed: //p' "$work/$1/out" | head -1)
      return 0
    fi
    [ $code = 0 ] || { tail -3 "$work/$1/out" >&2; return 1; } # neither passed nor failed: it did not run
    from=$((from + many))
    many=$((many * 2))
  done
  return 1
}

round_run() { # BUILD ROUND
  timeout 120 "$1/proof/crash_kills" --kills 3 --seed "$2" --program "$1/holdfast"
}

# A round that fails with the bug must pass without it. Three kills may all come when nothing is
# under way (code 3): such a round shows no bug, and passes.
by_histories() { # NAME
  local round code
  for round in 1 2 3 4; do
    code=0
    round_run "$work/$1" $round >"$work/$1/out" 2>&1 || code=$?
    [ $code = 1 ] || continue
    case $(clean "round-$round" round_run "$build" $round) in
    0 | 3) ;;
    *) continue ;;
    esac
    how=round where=$round said=$(grep -m 1 "^seed .*: " "$work/$1/out" | sed "s/^seed [^:]*: //")
    return 0
  done
  return 1
}

test_run() { # BUILD TEST [VARIABLE=VALUE]
  env HF_BUILD="$1" HF_SOURCE="$root" "${@:3}" timeout 300 "$1/$(folder_of "$2")/$2"
}

# Other bugs run beside it: without the bug, a test may need a second try.
test_run_twice() { test_run "$@" || test_run "$@"; }

by_test() { # NAME TEST [VARIABLE=VALUE]
  local run=$2${3:+-$3}
  ! test_run "$work/$1" "${@:2}" >"$work/$1/out" 2>&1 || return 1
  # A test that ended before it could say what failed has caught nothing.
  grep -q FAILED "$work/$1/out" || { echo "$1: $2 ended early:" && tail -n 5 "$work/$1/out"; return 1; } >&2
  [ "$(clean "$run" test_run_twice "$build" "${@:2}")" = 0 ] ||
    { echo "$2 fails without a bug, too:" && tail -n 40 "$work/clean.$run"; return 1; } >&2
  how=run where=1 said=$(grep -m 1 FAILED "$work/$1/out")
}

by_tests() { # NAME TEST [VARIABLE=VALUE [or VARIABLE=VALUE]...]
  local name=$1 test=$2 setting
  shift 2
  [ $# -gt 0 ] || { by_test "$name" "$test"; return; }
  for setting; do
    [ "$setting" = or ] || ! by_test "$name" "$test" "$setting" || return 0
  done
  return 1
}

by_all() { # NAME
  local kind rest
  while read -r kind rest; do
    where=
    case $kind in
    simulate) by_simulation "$1" ;;
    histories) by_histories "$1" ;;
    test) # shellcheck disable=SC2086
      by_tests "$1" $rest ;;
    esac </dev/null || return 1
  done <"$work/$1/means"
}

one() { # NAME: writes a row
  local name=$1 how='' where='' said=''
  if ! make_all "$name" >"$work/$name/out" 2>&1; then
    { echo "bugs: $name does not compile:" && head -20 "$work/$name/out"; } >&2
  elif by_all "$name"; then
    said=$(printf %s "$said" | tr '|\t' '  ' | cut -c 1-160)
  else
    where='' said=''
  fi
  printf '%s\t%s\n' "${where:+$how $where}" "$said" >"$work/$name/row"
  rm -rf "${work:?}/$name"/{holdfast,holdfast-simulate,tests,proof}
  if [ -n "$where" ]; then echo "$name: caught at $how $where: $said"; else echo "$name: MISSED"; fi
}

[ "$(clean all "$build/holdfast-simulate" --seed 1 --seeds 50 --jobs "$jobs")" = 0 ] ||
  { echo "without a bug it finds one:"; cat "$work/clean.all"; exit 1; }
seq 50 | while read -r seed; do echo 0 >"$work/clean.seed-$seed.code"; done

# Tests wait more than they work, so more of them run at once. They begin, so that none is left to
# run alone at the end.
for name in $names; do echo "$(grep -c '^test' "$work/$name/means") $name"; done | sort -k 1,1nr -s >"$work/order"
while read -r tests name; do
  at_once=$((tests > 0 ? 3 * jobs : jobs))
  while [ "$(jobs -rp | wc -l)" -ge $at_once ]; do wait -n || true; done
  one "$name" </dev/null &
done <"$work/order"
wait

caught=0 missed=0
: >"$work/table"
for name in $names; do
  IFS=$'\t' read -r where said <"$work/$name/row" || true
  case $where in
  [a-z]*) caught=$((caught + 1)) ;;
  *) missed=$((missed + 1)) where='not caught' said= ;;
  esac
  echo "| \`$name\` | $(cat "$work/$name/part") | $(cat "$work/$name/words") | $where | $said |" >>"$work/table"
done

if [ $write = yes ] && [ "$names" = "$(cat "$work/list")" ]; then
  awk -v table="$work/table" '
    /<!-- bugs: begin/ { print; print ""; print "| bug | part | what goes wrong | caught at | what was said |"
      print "|---|---|---|---|---|"; while ((getline line < table) > 0) print line; print ""; skip = 1 }
    /<!-- bugs: end/ { skip = 0 }
    !skip || /<!-- bugs: end/ { if (!/<!-- bugs: begin/) print }' "$root/doc/TESTING.md" >"$work/testing"
  cp "$work/testing" "$root/doc/TESTING.md"
fi
echo "$caught caught, $missed missed"
[ $missed = 0 ]

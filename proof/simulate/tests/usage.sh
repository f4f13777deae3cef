#!/usr/bin/env bash
# What simulate takes, what it refuses, what it says when a seed fails, and how it goes on from a record.
set -eu
. "$HF_SOURCE/tests/support/cli.sh"
# ---- Wrong usage is exit code 2, and nothing is run ----
try 2 simulate --seeds 0
has err "--seeds: \"0\" is invalid"
try 2 simulate --seed 0
try 2 simulate --seed minus
try 2 simulate --ops 100001
try 2 simulate --jobs 0
try 2 simulate --jobs 257
try 2 simulate something
try 2 simulate --data x
has err "does not accept --data"
try 2 simulate --sed 1
has err "did you mean --seed"
try 2 simulate --json --minimize
has err "leave --json out"
hasnt out "seeds"

try 0 simulate --ops 10 --json
v=$(field version)

# ---- A seed that fails: here because the audit of every fiftieth has no folder ----
export TMPDIR=$work/nowhere
try 1 simulate --seed 49 --seeds 3 --ops 50 --jobs 2 --record seen
has out "seed 50 failed: no folder could be made in $work/nowhere for the audit"
has out "the last fault before it: "
has out "holdfast simulate --seed 50 --ops 50 --minimize"
has out "3 seeds from 49"
has out "1 failed"
printf '%s\n' "49-49 50 $v ok" "50-50 50 $v failed" "51-51 50 $v ok" >expected
same seen expected
try 1 simulate --seed 50 --ops 50 --minimize
has out "The shortest script found that fails, 0 of "
has out "It fails at step 0: no folder"
try 1 simulate --seed 50 --ops 50 --json
json 'j.failed === 1 && j.failures.length === 1 && j.failures[0].seed === 50 && /no folder/.test(j.failures[0].sentence)'
unset TMPDIR
try 0 simulate --seed 50 --ops 50 --record seen # and now it does not
echo "49-51 50 $v ok" >expected
same seen expected

# ---- The record ----
try 0 simulate --seeds 3 --ops 60 --record record
echo "1-3 60 $v ok" >expected
same record expected
try 0 simulate --seeds 2 --ops 60 --record record --jobs 2 # goes on where it was
has out "2 seeds from 4"
try 0 simulate --seeds 1 --ops 61 --record record # another length has its own seeds
has out "1 seeds from 1"
try 0 simulate --seed 9 --ops 60 --record record # leaves a gap, if it is told to
printf '%s\n' "1-5 60 $v ok" "9-9 60 $v ok" "1-1 61 $v ok" >expected
same record expected
try 0 simulate --seeds 1 --ops 60 --record record
has out "1 seeds from 10"
echo "what is this" >broken
try 2 simulate --record broken
has err "line 1 of broken is not"
mkdir folder
try 2 simulate --record folder
try 3 simulate --ops 10 --record "$work/no/such/folder/record"
has err "cannot be opened"

# ---- Workers end with the one who asked for them ----
"$hf" simulate --seeds 1000000 --jobs 2 >out 2>err &
parent=$!
workers=
for _ in $(seq 1200); do
  workers=$(cat /proc/$parent/task/$parent/children)
  [ "$(wc -w <<<"$workers")" -lt 2 ] || break
  sleep 0.05
done
last="kill -9 of simulate"
checks=$((checks + 1))
[ "$(wc -w <<<"$workers")" = 2 ] || fail "there are not two workers: $workers"
kill -9 $parent
wait $parent 2>/dev/null || true
for _ in $(seq 1200); do
  kill -0 $workers 2>/dev/null || break
  sleep 0.05
done
checks=$((checks + 1))
for worker in $workers; do ! kill -0 "$worker" 2>/dev/null || fail "worker $worker goes on"; done

# ==== A run is a function of its seed: twice the same, in any process, beside any other. ====
try 0 simulate --seeds 12 --ops 700 --trace-hash
grep ' trace ' out >first
try 0 simulate --seeds 12 --ops 700 --trace-hash --jobs 5
grep ' trace ' out >second
same first second
checks=$((checks + 1))
[ "$(wc -l <first)" = 12 ] || fail "not a line for each seed"
checks=$((checks + 1))
[ "$(cut -d' ' -f4 first | sort -u | wc -l)" = 12 ] || fail "two seeds have the same trace"

# One seed alone is the same as among others, and another length is another run.
try 0 simulate --seed 7 --ops 700 --trace-hash
grep ' trace ' out >alone
grep '^seed 7 ' first >among
same alone among
try 0 simulate --seed 7 --ops 701 --trace-hash
grep ' trace ' out >longer
checks=$((checks + 1))
! cmp -s alone longer || fail "the number of operations makes no difference"

# Neither the environment, nor the folder, nor the time of day is part of it.
mkdir other
(cd other && TZ=Asia/Tokyo LANG=C HOME=/nowhere "$hf" simulate --seed 7 --ops 700 --trace-hash | grep ' trace ') >elsewhere
same alone elsewhere
try 0 simulate --seed 7 --ops 700 --trace-hash --json
json 'j.traces.length === 1 && j.failed === 0 && j.seeds === 1 && j.ops === 700'
checks=$((checks + 1))
grep -q "$(field traces)" alone || fail "JSON has another trace"
finish

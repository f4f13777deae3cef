#!/usr/bin/env bash
# A run is a function of its seed: twice the same, in any process, beside any other.
set -eu
. "$HF_SOURCE/tests/support/cli.sh"

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

#!/usr/bin/env bash
# The store fails: in use, damaged, newer, not a place for one, out of room in the middle of a commit.
set -eu
. "$(dirname "$0")/../support/cli.sh"
export HOLDFAST_DATA=$work/store
try 0 hold a --for b --duration 15m --key k1

# In use: the second is refused and told so, whatever it wants.
exec 9<>store/LOCK
flock 9
for what in "hold c --for b --duration 1m --key k2" "list" "show 00000000000000000000000000" \
  "resource a" "resource a --close" "guard g --window 1m" "confirm 00000000000000000000000000 --key k3"; do
  # shellcheck disable=SC2086
  try 3 $what
  has err "store-busy"
done
try 3 list --json
json 'j.code === "store-busy" && j.status === 503 && j.detail.includes("store")'
exec 9>&-
try 0 list

# What is locked is the directory: the note of who has it may be lost.
exec 9<store
flock 9
rm store/LOCK
try 3 hold c --for b --duration 1m --key k2
has err "store-busy"
exec 9<&-
try 0 list

# Two at once: one waits for nobody, both keys end up where they belong.
holders=
for i in 1 2 3 4 5 6; do
  { "$hf" hold "r$i" --for b --duration 15m --key "p$i" >"out$i" 2>"err$i" || echo $? >"rc$i"; } &
  holders="$holders $!"
done
# shellcheck disable=SC2086
wait $holders
for i in 1 2 3 4 5 6; do
  try 0 hold "r$i" --for b --duration 15m --key "p$i"
done
checks=$((checks + 1))
! grep -qv '^3$' rc[1-6] 2>/dev/null || fail "a refused second had another exit code than 3"
try 0 list --limit 0 --json
json 'j.holds.length === 7'

# Not a directory; no such parent.
echo "not a store" >file
for what in "list" "hold a --for b --duration 1m" "audit" "trace x" "export --format jsonl -" "list --json"; do
  for place in "$work/file" "$work/file/below"; do
    # shellcheck disable=SC2086
    try 3 $what --data "$place"
    has err "$place"
    has err "a store is a directory, but this is a file; use another --data DIR"
  done
done
json 'j.detail.includes("but this is a file")'
try 3 hold a --for b --duration 1m --data "$work/no/such/parent"
has err "cannot create a store in $work/no/such/parent: the directory $work/no does not exist. Create it first"
try 3 list --data "$work/no/such/parent"
has err "the first change creates a store"
for what in "list" "hold a --for b --duration 1m" "audit" "trace x" "export --format jsonl -"; do
  # shellcheck disable=SC2086
  try 2 $what --data ''
  has err "--data is empty; give the store's directory"
done

# Nothing on disk at all.
try 0 hold a --for b --duration 1m --key k1 --data :memory: --json
json 'j.state === "held"'
for what in "list" "audit" "trace x" "export --format jsonl -"; do
  # shellcheck disable=SC2086
  try 3 $what --data :memory:
  has err ":memory: is empty at the start of each command"
done
checks=$((checks + 1))
[ ! -e ":memory:" ] || fail "a directory was made for :memory:"

# The disk refuses the commit itself: nobody knows whether it happened, so 4; the retry finds the truth.
cp -r store full
end=$("$hf" audit --data "$work/full" | sed -n 's/^ *end *position //p')
got=0
(
  trap '' XFSZ
  ulimit -f $((end / 1024)) # what is there can be written again, nothing behind it
  exec "$hf" hold z --for b --duration 15m --key z1 --data "$work/full" --json >out 2>err
) || got=$?
last="holdfast hold z, with a file size limit"
checks=$((checks + 1))
[ "$got" = 4 ] || fail "exit code $got"
has err "Retry with the same key"
json 'j.code === "indeterminate" && j.status === 503'
try 0 hold z --for b --duration 15m --key z1 --data "$work/full"

# Damaged in the middle: refused, the place is named.
cp -r store damaged
journal=$(ls damaged/journal-*.log | head -1)
flip "$journal" 4200
try 3 list --data "$work/damaged"
has err "store-damaged"
has err "journal-00000001"
has err '`holdfast audit` shows what is whole'
try 3 list --data "$work/damaged" --json
json 'j.code === "store-damaged"'

# Written by a newer program.
cp -r store newer
journal=$(ls newer/journal-*.log | head -1)
rm -f newer/*.snap newer/holds.idx
node -e '
  const fs = require("fs"), file = process.argv[1], fd = fs.openSync(file, "r+"), head = Buffer.alloc(140);
  fs.readSync(fd, head, 0, 140, 0);
  head.writeUInt32LE(99, 8);
  let crc = 0xffffffff;
  for (const byte of head.subarray(0, 136)) {
    crc ^= byte;
    for (let i = 0; i < 8; i++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  }
  head.writeUInt32LE((crc ^ 0xffffffff) >>> 0, 136);
  fs.writeSync(fd, head, 0, 140, 0);
' "$journal"
try 3 list --data "$work/newer"
has err "store-newer"
finish

#!/usr/bin/env bash
# The three commands of doc/AUDIT.md on a store that the program itself has written.
set -eu
holdfast=$HF_BUILD/holdfast
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export HOLDFAST_DATA=$dir/store
unset HOLDFAST_SERVER

fail() {
    echo "audit/command: $*" >&2
    exit 1
}

"$holdfast" hold room-307 --for guest-91 --duration 15m --key order-1 --json >"$dir/hold"
id=$(grep -o '"id":"[0-9a-z]*"' "$dir/hold" | head -1 | cut -d '"' -f 4)
[ ${#id} = 26 ] || fail "no id in $(cat "$dir/hold")"
"$holdfast" hold room-307 --for guest-91 --duration 15m --key order-1 >/dev/null # a retry
"$holdfast" hold room-307 --for guest-92 --duration 15m --key order-2 >/dev/null 2>&1 && fail "two in one room"
"$holdfast" confirm "$id" --key order-1-confirm >/dev/null
"$holdfast" confirm "$id" --key order-1-confirm >/dev/null
"$holdfast" release "$id" --key order-1-release >/dev/null 2>&1 && fail "released what is confirmed"

"$holdfast" audit >"$dir/report" || fail "$(cat "$dir/report")"
head -1 "$dir/report" | grep -q '^No duplicate state change occurred: 4 requests' || fail "$(head -2 "$dir/report")"
"$holdfast" audit --json | grep -q '^{"verdict":"ok","tenant":null,"checks":\[' || fail "no JSON"

"$holdfast" trace "$id" >"$dir/life"
grep -q 'placed by key "order-1" for 15m' "$dir/life" || fail "$(cat "$dir/life")"
grep -q 'release by key "order-1-release" refused: not-held' "$dir/life" || fail "$(cat "$dir/life")"
"$holdfast" trace order-2 | grep -q 'answered resource-unavailable' || fail "the refusal is not told"
"$holdfast" trace nobody >/dev/null 2>&1 && fail "traced nobody"

"$holdfast" export --format sqlite "$dir/history.db"
"$holdfast" export --format sqlite "$dir/history.db" 2>"$dir/why" && fail "overwritten"
grep -q 'already exists' "$dir/why" || fail "$(cat "$dir/why")"
"$holdfast" export --format jsonl "$dir/history.jsonl"
# As the store itself: nobody else may read what is in it, whatever the umask.
(umask 022 && cd "$dir" && "$holdfast" export --format sqlite open.db && "$holdfast" export --format jsonl open.jsonl)
for file in "$dir/open.db" "$dir/open.jsonl" "$HOLDFAST_DATA/journal-00000001.log"; do
    [ "$(stat -c %a "$file")" = 600 ] || fail "$file can be read by others: $(stat -c %a "$file")"
done
tail -1 "$dir/history.jsonl" | grep -q '^{"type":"end"' || fail "the lines are cut off"
if command -v sqlite3 >/dev/null; then
    [ "$(sqlite3 "$dir/history.db" 'SELECT count(*) FROM tokens')" = 4 ] || fail "not four keys"
    [ "$(sqlite3 "$dir/history.db" 'SELECT count(*) FROM keys_used_twice')" = 0 ] || fail "a key twice"
    [ "$(sqlite3 "$dir/history.db" "SELECT group_concat(outcome) FROM (SELECT outcome FROM hold_life
        WHERE id = '$id' ORDER BY position)")" = 'held,confirmed,refused: not-held' ] || fail "another life"
fi

# One byte of the first batch, and the audit says so.
byte=$(od -An -tu1 -j 4200 -N 1 "$HOLDFAST_DATA/journal-00000001.log")
printf "\\$(printf %03o $((255 - byte)))" |
    dd of="$HOLDFAST_DATA/journal-00000001.log" bs=1 seek=4200 conv=notrunc status=none
"$holdfast" audit >"$dir/report" 2>&1 && fail "a changed byte is not noticed"
grep -q '^DAMAGED' "$dir/report" || fail "$(head -3 "$dir/report")"
echo ok

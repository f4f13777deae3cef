#!/usr/bin/env bash
# Every pack in the source is unpacked and packed again as the same bytes, and a test that is given a broken one fails and
# says why. HF_BUILD: the folder of the build. HF_SOURCE: that of the sources.
set -eu
programs=${HF_BUILD:?HF_BUILD names no folder}/proof
corpus=${HF_SOURCE:?HF_SOURCE names no folder}/proof/fuzz/corpus
work=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-packs-XXXXXX")
trap 'rm -rf "$work"' EXIT

fail() {
  echo "packs.sh: $*" >&2
  exit 1
}

# ---- There and back ----
packs=0
for pack in "$corpus"/*.pack; do
  name=$(basename "$pack" .pack)
  "$programs/fuzz_corpus" unpack "$pack" "$work/$name"
  "$programs/fuzz_corpus" pack "$work/$name" "$work/$name.pack"
  cmp "$pack" "$work/$name.pack" || fail "$name is not packed as it was"
  packs=$((packs + 1))
done
[ -z "$(find "$corpus" -type f ! -name '*.pack')" ] || fail "$corpus has something that no test runs"

# ---- Broken packs: the test fails, runs nothing of it, and names it ----
# refused FILE WORDS
refused() {
  ! "$programs/fuzz_url" "$1" >"$work/out" 2>"$work/err" || fail "a test passed with $1"
  grep -q "$2" "$work/err" || fail "$1 was refused without \"$2\": $(cat "$work/err")"
  [ ! -s "$work/out" ] || fail "inputs of $1 were run"
  ! "$programs/fuzz_corpus" unpack "$1" "$work/nothing" 2>"$work/err" || fail "$1 was unpacked"
  grep -q "$2" "$work/err" || fail "$1 was not unpacked without \"$2\""
  [ ! -e "$work/nothing" ] || fail "something of $1 was unpacked"
}
size=$(wc -c <"$corpus/url.pack")
head -c $((size - 1)) "$corpus/url.pack" >"$work/cut.pack"
refused "$work/cut.pack" "cut.pack: it is cut short"
: >"$work/empty.pack"
refused "$work/empty.pack" "empty.pack: it does not begin with HOLDFUZ1"
{ printf 'NOTAPACK' && tail -c +9 "$corpus/url.pack"; } >"$work/magic.pack"
refused "$work/magic.pack" "magic.pack: it does not begin with HOLDFUZ1"
{ cat "$corpus/url.pack" && printf 'x'; } >"$work/more.pack"
refused "$work/more.pack" "more.pack: there is something behind its last input"
refused "$work/missing.pack" "missing.pack: No such file"

# ---- A folder without files makes no pack, and leaves the one that was there ----
mkdir "$work/none"
cp "$corpus/url.pack" "$work/kept.pack"
! "$programs/fuzz_corpus" pack "$work/none" "$work/kept.pack" 2>"$work/err" || fail "nothing was packed"
grep -q "it has no files" "$work/err" || fail "an empty folder was refused without a reason"
cmp "$corpus/url.pack" "$work/kept.pack" || fail "a pack was lost"
echo "$packs packs"

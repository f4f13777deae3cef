#!/usr/bin/env bash
# Install into a temporary prefix, build examples/embed.c and threads.c against what was installed, by pkg-config, once with
# the shared and once with the static library, and compare what it prints.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$HF_BUILD" --prefix "$work/prefix" >/dev/null
pc=$(dirname "$(find "$work/prefix" -name holdfast.pc)")
# The .pc file names the prefix of configuration; the installed one is asked for with a variable.
config() { PKG_CONFIG_PATH="$pc" pkg-config --define-variable=prefix="$work/prefix" "$@" holdfast; }
lib=$(config --variable=libdir)
san=${HF_LINK_FLAGS:-}
cat > "$work/wanted" <<'TXT'
form-1: order 1
form-1: order 1 (already submitted)
form-2: order 2
form-1: token-collision: This key is already bound to another action or to other parameters. Nothing was changed. Use a new key for a new request, or send exactly the first request to get its answer.
2 receipts to send
TXT
# shellcheck disable=SC2046,SC2086
cc -Wall -Wextra -Werror $san "$HF_SOURCE/examples/embed.c" $(config --cflags --libs) -o "$work/shared"
LD_LIBRARY_PATH="$lib" "$work/shared" > "$work/got"
diff "$work/wanted" "$work/got"
# shellcheck disable=SC2046,SC2086
cc -Wall -Wextra -Werror $san "$HF_SOURCE/examples/threads.c" -pthread $(config --cflags --libs) -o "$work/threads"
LD_LIBRARY_PATH="$lib" "$work/threads" "$work/data-threads" > "$work/got"
echo "200 deliveries: 100 charges, 100 were told to wait or got the response, 0 failures" | diff - "$work/got"
mv "$lib"/libholdfast.so* "$work" # so that -lholdfast is the archive
# shellcheck disable=SC2046,SC2086
cc -Wall -Wextra -Werror $san "$HF_SOURCE/examples/embed.c" $(config --cflags --static --libs) -o "$work/static"
mv "$work"/libholdfast.so* "$lib"
"$work/static" "$work/data" > "$work/got"
diff "$work/wanted" "$work/got"
# The library with the journal alone: built, installed and used without libpq. Asked for a database, it says so.
cmake -S "$HF_SOURCE" -B "$work/alone" -DHF_POSTGRES=OFF -DCMAKE_BUILD_TYPE=Debug >/dev/null
cmake --build "$work/alone" -j 2 >/dev/null
cmake --install "$work/alone" --prefix "$work/prefix-alone" >/dev/null
[ ! -e "$work/prefix-alone/bin" ] || { echo "the library alone has installed a program"; exit 1; }
pc=$(dirname "$(find "$work/prefix-alone" -name holdfast.pc)")
alone() { PKG_CONFIG_PATH="$pc" pkg-config --define-variable=prefix="$work/prefix-alone" "$@" holdfast; }
cat > "$work/ask.c" <<'C'
#include <holdfast.h>
#include <stdio.h>
int main(void)
{
    struct hf_options options = { .postgres = "host=127.0.0.1" };
    struct hf_db *db;
    struct hf_error why;
    return hf_open(NULL, &options, &db, &why) == HF_OK ? 1 : puts(why.text) < 0;
}
C
rm "$(alone --variable=libdir)"/libholdfast.so*
# shellcheck disable=SC2046
for program in ask embed; do
  source=$work/ask.c && [ $program = ask ] || source=$HF_SOURCE/examples/embed.c
  cc -Wall -Wextra -Werror "$source" $(alone --cflags --static --libs) -o "$work/$program"
  ! ldd "$work/$program" | grep libpq
done
"$work/ask" | grep -q 'built without PostgreSQL'
"$work/embed" "$work/data-alone" > "$work/got"
diff "$work/wanted" "$work/got"
# On disk, the next run of the program finds what the first one did.
"$work/static" "$work/data" > "$work/got"
grep -q '^form-1: order 1 (already submitted)$' "$work/got"
grep -q '^form-2: order 2 (already submitted)$' "$work/got"
# Only the header's names are visible from outside.
nm -D --defined-only "$lib/libholdfast.so" | awk '$2 ~ /[TDBR]/ {print $3}' | grep -v '^__gcov\|^mangle_path' | sort > "$work/symbols"
while read -r symbol; do
  grep -qw "$symbol" "$HF_SOURCE/include/holdfast.h" || { echo "exported but not in the header: $symbol"; exit 1; }
done < "$work/symbols"
[ -s "$work/symbols" ]
for page in holdfast.1 holdfast.3; do
  [ -n "$(find "$work/prefix" -name "$page")" ] || { echo "not installed: $page"; exit 1; }
done
[ -s "$work/prefix/share/holdfast/roles.sql" ] || { echo "not installed: share/holdfast/roles.sql"; exit 1; }
"$work/prefix/bin/holdfast" version

#!/usr/bin/env bash
# Every #include in src goes from a folder to one that it may know: the list below has all allowed pairs, and is the floor plan of the
# house. A pair that is not used any more must go, too. Standard headers and libraries: each belongs to the folders named behind it.
# HF_SOURCE: the folder of the sources.
set -eu
cd "${HF_SOURCE:?HF_SOURCE names no folder}/src"

# folder: what it may include besides itself and the public header holdfast.h
allowed='
base:
core:           base
store/record:   base core
store:          base core store/journal store/postgres
store/journal:  base core store store/record
store/postgres: base core store store/record
engine:         base store store/record
refusal:        base core
net:            base
http:           base net
json:           base
api:            base core http json refusal
audit:          base core json store/postgres
client:         base core net http api json
server:         base core http api audit json refusal store/postgres
cli:            base api audit client json refusal server store/postgres
'
# header: the only folders that may include it
owned='
libpq-fe.h:      store/postgres
openssl/ssl.h:   net
sqlite3.h:       audit
seccomp.h:       server
zstd.h:          store/journal audit
utf8proc.h:      core base server cli store/postgres
'

grep -rn --include='*.[ch]' '^ *# *include' . | sed 's/:[0-9]*:/:/' |
  awk -v allowed="$allowed" -v owned="$owned" '
    function list(text, into,    lines, n, i, at) {
      n = split(text, lines, "\n")
      for (i = 1; i <= n; i++)
        if ((at = index(lines[i], ":")) > 0)
          into[substr(lines[i], 1, at - 1)] = substr(lines[i], at + 1) " "
    }
    function folder_of(path) { return sub(/\/[^\/]*$/, "", path) ? path : "" }
    function complain(text) { print "layers: " text > "/dev/stderr"; bad = 1 }
    BEGIN { list(allowed, may); list(owned, owners) }
    {
      at = index($0, ":")
      file = substr($0, 3, at - 3)
      from = folder_of(file)
      there[from] = 1
      to = substr($0, at + 1)
      if (match(to, /<[^>]*>/)) {
        header = substr(to, RSTART + 1, RLENGTH - 2)
        if (header in owners && index(owners[header], " " from " ") == 0)
          complain(file " includes <" header ">, which only these may:" owners[header])
        next
      }
      match(to, /"[^"]*"/)
      header = substr(to, RSTART + 1, RLENGTH - 2)
      to = folder_of(header)
      if (to == "" || to == from) # "" is holdfast.h
        next
      seen[from ">" to] = 1
      if (index(may[from], " " to " ") == 0)
        complain(file " includes \"" header "\", and " from " may know only:" may[from])
    }
    END {
      for (from in may) {
        if (!(from in there))
          complain("there is no folder " from)
        n = split(may[from], names, " ")
        for (i = 1; i <= n; i++)
          if (!((from ">" names[i]) in seen))
            complain(from " includes nothing of " names[i] ": take it off the list")
      }
      if (!bad)
        print "layers: every include follows the list"
      exit bad
    }'

# ==== The core is pure, from the linker's view: whatever its archive leaves undefined is on the list below,
# and it has no variables. No clock, no randomness, no files, no memory of its own can hide behind that.
# HF_BUILD: the build folder.
archive=${HF_BUILD:?HF_BUILD names no build folder}/libhf_core_archive.a
[ -f "$archive" ] || { echo "purity: there is no $archive" >&2; exit 1; }

allowed='
hf_assert_fail
hf_sha256_init hf_sha256_add hf_sha256_end hf_sha256_of
hf_utf8_valid
memchr memcmp memcpy memmove memset strcmp strlen
utf8proc_decompose_char utf8proc_get_property utf8proc_iterate utf8proc_reencode
'
# What compilers put in by themselves: stack protector, checked copies, sanitizers, coverage counters.
by_compiler='_GLOBAL_OFFSET_TABLE_|__stack_chk_fail|__(memcpy|memset|memmove)_chk|bcmp'
instrumented='__(asan|ubsan|tsan|gcov|sanitizer|sancov|llvm)_.*|_Unwind_Resume'

defined=$(nm --defined-only "$archive" | awk 'NF == 3 { print $3 }' | sort -u)
undefined=$(nm -u "$archive" | awk '$1 == "U" || $1 == "w" { print $2 }' | sort -u)
[ -n "$undefined" ] || { echo "purity: nm shows nothing undefined in $archive" >&2; exit 1; }

bad=0
plain=yes
for symbol in $(comm -23 <(echo "$undefined") <(echo "$defined")); do
  grep -qE "^($instrumented)$" <<<"$symbol" && { plain=no; continue; }
  grep -qE "^($by_compiler)$" <<<"$symbol" && continue
  grep -qwF -- "$symbol" <<<"$allowed" && continue
  echo "purity: the core must not use $symbol" >&2
  nm -A -u "$archive" | awk -v s="$symbol" '$NF == s { print "  in " $1 }' >&2
  bad=1
done

# Counters and sanitizers have variables of their own; without them there is none.
if [ "$plain" = yes ]; then
  variables=$(size -A "$archive" | awk '/^[^ ]+ +:/ || /\(ex / { file = $1 }
    $1 ~ /^\.(data|bss|tdata|tbss)(\.|$)/ && $1 !~ /^\.data\.rel\.ro/ && $2 > 0 {
      print "  " $2 " bytes of " $1 " in " file }')
  if [ -n "$variables" ]; then
    printf 'purity: the core must have no variables\n%s\n' "$variables" >&2
    bad=1
  fi
fi
[ "$bad" = 0 ] && echo "purity: $(wc -w <<<"$allowed") symbols allowed, none beside them used"
exit "$bad"

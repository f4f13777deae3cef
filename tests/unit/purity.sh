#!/usr/bin/env bash
# The core is pure, from the linker's view: whatever its archive leaves undefined is on the list below,
# and it has no variables. No clock, no randomness, no files, no memory of its own can hide behind that.
# HF_BUILD: the build folder.
set -eu
archive=${HF_BUILD:?HF_BUILD names no build folder}/libhf_core_archive.a
[ -f "$archive" ] || { echo "purity: there is no $archive" >&2; exit 1; }

allowed='
hf_assert_fail
hf_sha256_init hf_sha256_add hf_sha256_end hf_sha256_of
hf_utf8_valid
memchr memcmp memcpy memmove memset strlen
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

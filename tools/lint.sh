#!/usr/bin/env bash
# make lint: formatting, clang-tidy, cppcheck, shell syntax. Prints what is wrong and fails.
set -eu
cd "$(dirname "$0")/.."
jobs=${JOBS:-$(nproc 2>/dev/null || echo 2)}
cmake --preset dev -DHF_TESTS=ON -DHF_BENCH=ON >/dev/null
status=0

# Files that git knows or would take in, and that are there.
files() { git ls-files -co --exclude-standard -- "$@" | while read -r file; do [ ! -f "$file" ] || echo "$file"; done; }

# Looked at closely: the program, the load generator, and those tests that are programs of some size themselves. The other
# tests are full of cmocka's macros, in which the analysers see ghosts; the compilers and sanitizers look at those.
mapfile -t units < <(files 'src/*.c' 'bench/*.c' 'proof/*.c')

files 'src/*.[ch]' 'include/*.h' 'tests/*.[ch]' 'proof/*.[ch]' 'examples/*.[ch]' 'bench/*.[ch]' |
  xargs clang-format --dry-run -Werror || status=1
! files 'src/*.[ch]' 'include/*.h' 'tests/*.[ch]' 'proof/*.[ch]' 'examples/*.[ch]' 'bench/*.[ch]' |
  LC_ALL=C.UTF-8 xargs grep -nP '^.{101,}' || { echo "lint: lines of more than 100 columns" && status=1; }
printf '%s\n' "${units[@]}" | xargs -P "$jobs" -n 4 clang-tidy -p build-dev --quiet 2>/dev/null || status=1
cppcheck --quiet -j "$jobs" --std=c11 --enable=warning,portability,performance --inline-suppr --error-exitcode=1 \
  --suppress=missingIncludeSystem -I include -I src -I tests -I proof "${units[@]}" || status=1
for script in $(files '*.sh') .ci/run bench/compare; do bash -n "$script" || status=1; done
exit $status

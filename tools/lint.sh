#!/usr/bin/env bash
# make lint: formatting, clang-tidy, cppcheck, shell syntax. Prints what is wrong and fails.
set -eu
cmake --preset dev -DHF_TESTS=ON >/dev/null
status=0
mapfile -t sources < <(git ls-files 'src/*.c' 'src/*.h' 'include/*.h' 'tests/*.c' 'tests/*.h' 'examples/*.c')
clang-format --dry-run -Werror "${sources[@]}" || status=1
mapfile -t units < <(git ls-files 'src/*.c')
clang-tidy -p build-dev --quiet "${units[@]}" 2>/dev/null || status=1
cppcheck --quiet --std=c11 --enable=warning,portability,performance --inline-suppr --error-exitcode=1 \
  --suppress=missingIncludeSystem -I include -I src src || status=1
for script in $(git ls-files '*.sh') .ci/run; do bash -n "$script" || status=1; done
exit $status

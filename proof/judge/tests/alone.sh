#!/usr/bin/env bash
# The judge stands alone: nothing in its objects needs a symbol of the library or of the program, and nothing in its
# sources includes a header of theirs. HF_BUILD: the build folder. HF_SOURCE: the source.
set -eu
build=${HF_BUILD:?HF_BUILD names no build folder}
source=${HF_SOURCE:?HF_SOURCE names no source folder}

objects=("$build"/proof/CMakeFiles/hf_simulation.dir/judge/*.o)
[ -f "${objects[0]}" ] || { echo "alone: there are no objects of the judge in $build" >&2; exit 1; }
expected=$(find "$source/proof/judge" -maxdepth 1 -name '*.c' | wc -l)
[ "${#objects[@]}" -ge "$expected" ] ||
  { echo "alone: ${#objects[@]} objects for $expected sources" >&2; exit 1; }

undefined=$(nm -u "${objects[@]}" | awk '$1 == "U" || $1 == "w" { print $2 }' | sort -u)
[ -n "$undefined" ] || { echo "alone: nm shows nothing undefined" >&2; exit 1; }
if grep -E '^(hf_|sim_)' <<<"$undefined" >&2; then
  echo "alone: the judge must not need these" >&2
  exit 1
fi

# Headers: the public one, its own, and the language's.
foreign=$(grep -hE '^#include "' "$source"/proof/judge/*.[ch] | grep -vE '"(holdfast\.h|judge/[a-z_]+\.h)"' || true)
if [ -n "$foreign" ]; then
  printf 'alone: the judge must not include\n%s\n' "$foreign" >&2
  exit 1
fi
echo "alone: ${#objects[@]} objects, none of which needs the library"

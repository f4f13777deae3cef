#!/usr/bin/env bash
# The lines of doc/GUIDE.md and of the first screen of README.md do what the pages say they do. A line behind "$ " is run;
# what follows it is what it must say, but for ids, times and what "..." stands for.
set -eu
. "$(dirname "$0")/../support/cli.sh"
. "$(dirname "$0")/../support/server.sh"
touch out err

# pattern LINE: a pattern of the shell that a line like it matches.
pattern() {
  sed -E 's/[0-9a-hjkmnp-tv-z]{26}/.../g; s/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,12}Z/.../g
    s/[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{8} GMT/.../g; s/[][*?\\]/\\&/g; s/\.\.\./*/g' <<<"$1"
}

# told: is what was said what the page shows? Its lines are in ./shown; a line "..." there stands for any number of lines.
told() {
  local line want at=1 skip=no said
  checks=$((checks + 1))
  tr -d '\r' <out | grep -v '^$' >said || true
  while read -r want; do
    if [ "$want" = "..." ]; then
      skip=yes
      continue
    fi
    while :; do
      said=$(sed -n "${at}p" said)
      at=$((at + 1))
      # shellcheck disable=SC2053
      [[ $said == $(pattern "$want") ]] && break
      [ $skip = yes ] && [ "$at" -le "$(wc -l <said)" ] && continue
      fail "the page shows: $want"
      return
    done
    skip=no
  done <shown
  [ "$at" -gt "$(wc -l <said)" ] || fail "it says more than the page: $(sed -n "${at}p" said)"
}

# page FILE: run its lines, in order, in one shell. The page's are behind four blanks or more.
page() {
  local command=
  : >shown
  while IFS= read -r line; do
    case $line in
    '$ '*)
      [ -z "$command" ] || told
      command=${line#'$ '}
      last=$command
      : >shown
      eval "$command" >out 2>err </dev/null || fail "it does not end well"
      ;;
    *) [ -z "$line" ] || echo "$line" >>shown ;;
    esac
  done < <(awk '/^    / { sub(/^ +/, ""); print; next } !/^$/ { print "" }' "$1")
  [ -z "$command" ] || told
}

serve --data "$work/guide"
# shellcheck disable=SC2034 # the lines of the page use it
U=$url
page "$HF_SOURCE/doc/GUIDE.md"
has serve.log 'warning outcome-unknown key="pay-77"'
unserve

# The first screen of the README: from the first curl to the end of its block, against the address it names.
serve --data "$work/readme"
awk '/^    \$ curl/ { on = 1 } on && /^[^ ]/ { exit } on' "$HF_SOURCE/README.md" |
  sed "s#http://127.0.0.1:4653#$url#" >screen.md
checks=$((checks + 1))
[ "$(grep -c '^    \$ curl' screen.md)" = 3 ] || fail "the first screen of the README has not three lines"
page screen.md
unserve

# Its command line, in a directory of its own.
awk '/^## On the command line/ { on = 1; next } /^## / { on = 0 } on' "$HF_SOURCE/README.md" |
  grep -v 'export PATH' >commands.md
export PATH=$HF_BUILD:$PATH
checks=$((checks + 1))
[ "$(grep -c '^    \$ ' commands.md)" -ge 4 ] || fail "the README shows no commands"
page commands.md
rm -rf "${HOLDFAST_DATA:-$work/none}"
finish

#!/usr/bin/env bash
# Man pages and completions say what the program's own tables say: every command, every option.
set -eu
. "$(dirname "$0")/../support/cli.sh"
source=${HF_SOURCE:?is the folder with the source}
bash_completion=$source/src/cli/completion/holdfast.bash
zsh_completion=$source/src/cli/completion/_holdfast
touch out err

try 0 help --list
cp out names
grep -v ' ' names >commands

# ---- The man pages, as a reader sees them ----
checks=$((checks + 1))
if command -v mandoc >/dev/null; then
  for page in "$source"/doc/man/*.[13]; do
    checks=$((checks + 1))
    mandoc -T lint -W warning "$page" >lint || { cat lint; fail "mandoc finds fault with $page"; }
    mandoc -T ascii -O width=200 "$page" | sed 's/.\x08//g' >>pages
  done
  while read -r command; do
    checks=$((checks + 1))
    grep -qE "^ +$command( |$)|holdfast ([a-z| ]*\| )?$command\b" pages || fail "no man page has the command $command"
  done <commands
  while read -r option; do
    checks=$((checks + 1))
    grep -qE -- "$option( |,|\$)" pages || fail "no man page has the option $option"
  done < <(awk '{ print $2 }' names | grep . | sort -u)
  for name in HOLDFAST_DATA HOLDFAST_STORE HOLDFAST_POSTGRES HOLDFAST_TENANT HOLDFAST_JSON HOLDFAST_REGISTRY HOLDFAST_TOKEN_MAX_LENGTH \
    HOLDFAST_IDEMPOTENCY_WINDOW HOLDFAST_SERVER HOLDFAST_CREDENTIAL HOLDFAST_CREDENTIAL_FILE HOLDFAST_TLS_CA HOLDFAST_TIMEOUT \
    NO_COLOR; do
    has pages "$name"
  done
else
  echo "mandoc is not here: the man pages are not checked"
fi

# ---- What help shows is what the program says ----
example() { # of the command, without the line that was typed
  "$hf" help "$1" | sed -n '/^Example:/,/^$/p' | sed '1,2d;/^$/d;s/^  //' >example
}
export HOLDFAST_DATA=$work/store
try 0 hold room-307 --for guest-91 --duration 15m --key order-8123 --json
id=$(field id)
try 1 hold room-307 --for guest-92 --duration 15m --key order-8124
try 0 confirm "$id" --key order-8123-paid
try 1 confirm "$id" --key order-8123-again
try 0 audit
head -2 out >said
example audit
same example said
try 0 reverse "$id" --key refund-77
try 0 hold room-307 --for guest-93 --duration 100ms --key order-8125
sleep 0.2
try 0 resource room-307 --capacity 2
example resource
same example out
unset HOLDFAST_DATA

# ---- bash: ask it as bash would ----
. "$bash_completion"
offers() { # words so far; the last one is being typed
  COMP_WORDS=(holdfast "$@")
  COMP_CWORD=$#
  _holdfast
  printf '%s\n' "${COMPREPLY[@]}" | sort -u >offered
}
expect() {
  checks=$((checks + 1))
  last="completion of: ${COMP_WORDS[*]}"
  grep -qxF -- "$1" offered || { cp offered out; fail "bash does not offer $1"; }
}
offers ""
while read -r command; do expect "$command"; done <commands
offers help ""
while read -r command; do expect "$command"; done <commands
while read -r command option; do
  [ -n "$option" ] || continue
  offers "$command" --
  expect "$option"
done <names
# And nothing that the command does not take.
while read -r command; do
  offers "$command" --
  while read -r option; do
    checks=$((checks + 1))
    grep -qx -- "$command $option" names || fail "bash offers $option for $command"
  done < <(grep '^--' offered)
done <commands
offers list --state ""
for word in held confirmed released expired; do expect $word; done
offers list --state = con
expect confirmed
offers --data x guard g --match trim,
expect trim,hash
checks=$((checks + 1))
! grep -q 'trim,trim' offered || fail "a step is offered twice"
offers --registry s
expect strict
offers export --format ""
expect sqlite

# ---- zsh: read it, and find each command's options in its branch ----
checks=$((checks + 1))
if command -v zsh >/dev/null; then
  zsh -n "$zsh_completion" || fail "zsh cannot read the completion"
fi
branch() { # of the command, with the groups it names
  awk -v command="$1" '
    /^  asking=\(/ { group = "asking" } /^  kept=\(/ { group = "kept" } /^  look=\(/ { group = "look" } /^  store=\(/ { group = "store" } /^  key=\(/ { group = "key" }
    group { text[group] = text[group] $0 "\n" }
    group && /\)$/ && (/^  \)/ || /^  key/) { group = "" }
    /^  [a-z|-]+\)/ { split(substr($1, 1, length($1) - 1), names, "|"); inside = 0
                     for (i in names) if (names[i] == command) inside = 1 }
    inside { own = own $0 "\n" }
    /;;$/ { inside = 0 }
    END { print own
          if (own ~ /\$store/) print text["store"] text["look"] text["asking"] text["kept"]
          if (own ~ /\$look/) print text["look"] text["asking"] text["kept"]
          if (own ~ /\$asking/) print text["asking"]
          if (own ~ /\$kept/) print text["kept"]
          if (own ~ /\$key/) print text["key"] }
  ' "$zsh_completion"
}
while read -r command option; do
  checks=$((checks + 1))
  last="zsh completion of $command"
  if [ -z "$option" ]; then
    grep -q "^    '$command:" "$zsh_completion" || fail "zsh does not offer $command"
  else
    branch "$command" >out
    grep -qE -- "$option(=|\[)" out || fail "zsh does not offer $option for $command"
  fi
done <names
finish

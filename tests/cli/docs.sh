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

# ---- OPERATIONS.md knows what the program says: each refused start, and each cause of a storage-failure ----
operations=$source/doc/OPERATIONS.md
node -e '
  const fs = require("fs");
  const source = process.argv[1];
  // Every sentence behind HF_STORE_DAMAGED, %s and the like as a gap.
  for (const file of ["src/store/journal/recover.c", "src/store/postgres/migrate.c"]) {
    const text = fs.readFileSync(source + "/" + file, "utf8");
    for (const m of text.matchAll(/HF_STORE_DAMAGED,\s*((?:"(?:[^"\\]|\\.)*"|[A-Z][A-Z_a-z0-9]*|\s)+)/g)) {
      let whole = "";
      for (const part of m[1].matchAll(/"((?:[^"\\]|\\.)*)"|([A-Z][A-Z_a-z0-9]*)/g))
        whole += part[1] !== undefined ? part[1].replace(/\\(.)/g, "$1") : part[2].startsWith("PRI") ? "u" : "<" + part[2] + ">";
      console.log(whole);
    }
  }' "$source" >refusals
checks=$((checks + 1))
[ "$(wc -l <refusals)" -ge 10 ] || fail "the refusals of a start were not found"
sed -n '/^## Damaged journal/,/^## /p' "$operations" >page
while read -r sentence; do
  checks=$((checks + 2))
  last="refusal: $sentence"
  case $sentence in
  *"doc/POSTGRES.md"*) ;;
  *"<READ_FIRST>"*) ;;
  *) fail "it does not name the page" ;;
  esac
  # The words up to the first value, or up to the end of the first sentence, are in the table.
  words=$(printf '%s\n' "$sentence" | sed -E 's/^%s //; s/(%[a-z]*[sdu]|[:.,] ).*//; s/ +$//')
  [ "${#words}" -ge 10 ] && grep -qF -- "$words" page || fail "doc/OPERATIONS.md, Damaged journal, does not know \"$words\""
done <refusals
has "$source/src/store/journal/recover.c" '#define READ_FIRST "Before you change a file, read \"Damaged journal\" in doc/OPERATIONS.md"'
sed -n '/^### HoldfastStorageFailures/,/^### HoldfastMemoryFull/p' "$operations" >page
sed -n '/^const char \*hf_why_name/,/^}/p' "$source/src/refusal/why.c" | sed -n 's/.*= "\([a-z-]*\)".*/\1/p' | grep -v unknown >causes
checks=$((checks + 1))
[ "$(wc -l <causes)" -ge 15 ] || fail "the causes were not found"
while read -r cause; do has page "\`$cause\`"; done <causes

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

#!/usr/bin/env bash
# The config file of serve: what may stand in it, what goes before it, and how it is refused. Nothing but the last part
# starts a server: a value that does not fit shows whose value it was.
set -eu
. "$(dirname "$0")/../support/cli.sh"

config() { printf '%s\n' "$@" >conf; }

# ---- Whose value counts ----
config 'threads = file'
try 2 serve --config conf
has err '--threads: "file" does not fit'
export HOLDFAST_THREADS=environment
try 2 serve --config conf
has err 'HOLDFAST_THREADS: "environment" does not fit'
try 2 serve --config conf --threads line
has err '--threads: "line" does not fit'
unset HOLDFAST_THREADS
HOLDFAST_CONFIG=conf try 2 serve
has err '"file" does not fit'

# ---- Lines ----
config '# comment' '' 'threads = "quo\"ted \\"   # comment'
try 2 serve --config conf
has err '"quo"ted \" does not fit'
config 'threads = 1' 'threds = 2'
try 2 serve --config conf
has err 'holdfast: conf:2: unknown name "threds", perhaps you mean threads; see: holdfast help serve'
config '--threads = 2'
try 2 serve --config conf
has err 'conf:1: unknown name "--threads", perhaps you mean threads'
config 'max_body = 1MiB'
try 2 serve --config conf
has err 'perhaps you mean max-body'
config 'nothing-like-it-at-all = 1'
try 2 serve --config conf
has err 'conf:1: unknown name "nothing-like-it-at-all"; see'
config $'\e[2Jx = 1'
try 2 serve --config conf
has err 'conf:1: there is a control character'
config 'log = text' '# again' 'log = json'
try 2 serve --config conf
has err 'conf:3: log stands in line 1 already; leave one of them out'
config 'threads'
try 2 serve --config conf
has err 'conf:1: a line is: name = value'
# An option of another command, a global one that serve does not take, and two that a file cannot have.
for name in capacity tenant server help config; do
  config "$name = x"
  try 2 serve --config conf
  has err "conf:1: unknown name \"$name\""
done

# ---- A flag ----
config 'welcome = perhaps'
try 2 serve --config conf
has err 'conf:1: welcome is yes or no, not "perhaps"'

# ---- Files ----
try 2 serve --config absent
has err 'the config file "absent" cannot be read: No such file or directory'
try 2 serve --config .
has err 'the config file "." cannot be read'
head -c 65537 /dev/zero | tr '\0' '\n' >conf
try 2 serve --config conf
has err 'more than 65536 bytes'
{ head -c 65520 /dev/zero | tr '\0' '\n'; echo 'threads = last'; } | head -c 65536 >conf
try 2 serve --config conf
has err '"last" does not fit'
{ printf 'threads = '; head -c 5000 /dev/zero | tr '\0' x; } >conf
try 2 serve --config conf
has err 'conf:1: the line has more than 4096 bytes'

# ---- A server out of a file ----
serve() {
  checks=$((checks + 1))
  last="holdfast serve $*"
  : >out
  "$hf" serve "$@" >out 2>err </dev/null &
  local pid=$! tries=200
  until grep -q 'listening on' out || [ $((tries -= 1)) = 0 ] || ! kill -0 $pid 2>/dev/null; do sleep 0.05; done
  kill -TERM $pid 2>/dev/null || true
  wait $pid || fail "the server ended with $?"
}
config 'data = ":memory:"' 'listen = 127.0.0.1:0' 'sandbox = off' 'log = json' 'welcome = no'
serve --config conf
has out 'holdfast: listening on http://127.0.0.1:'
has err '"event":"stopped"'
checks=$((checks + 1))
[ "$(wc -l <out)" = 1 ] || fail 'a welcome that was not asked for'
serve --config conf --log text --welcome
has err ' info stopped '
checks=$((checks + 1))
[ "$(wc -l <out)" -gt 1 ] || fail 'no welcome'
sed -i s/welcome.*/welcome=yes/ conf
serve --config conf
checks=$((checks + 1))
[ "$(wc -l <out)" -gt 1 ] || fail 'no welcome'

finish

# What the scripts with a server share. Source it behind cli.sh.
#
#     serve ARGUMENTS...      start holdfast serve on a free port, or on $listen if that is set; $url and $server are its
#                             address and process
#     unserve                 stop it; its exit code must be 0
#     standin HOW [URL]       start a stand-in that is no good server (standin.js); $url is its address
#     unstand                 stop it
# Whatever still runs at the end is stopped.

server=
stand=
sandbox=on
[ -z "${HF_LINK_FLAGS-}" ] || sandbox=off # sanitizers and coverage write files and make calls that it forbids
at_exit() {
  for process in $server $stand; do kill -9 "$process" 2>/dev/null || true; done
  rm -rf "$work"
}
trap at_exit EXIT

# Wait until the file has a line with an address in it.
address_of() {
  for _ in $(seq 1200); do
    url=$(sed -n 's/.*listening on \(http[^ ]*\)$/\1/p' "$1" | head -1)
    [ -z "$url" ] || return 0
    sleep 0.05
  done
  : >out && cp "$2" err
  fail "no server came up"
  finish
  exit 1
}

serve() {
  : >served # so that an older address is not taken for this one's
  "$hf" serve --listen "${listen:-127.0.0.1:0}" --sandbox $sandbox "$@" >served 2>serve.log </dev/null &
  server=$!
  address_of served serve.log
}

unserve() {
  local got=0
  checks=$((checks + 1))
  kill -TERM "$server"
  wait "$server" || got=$?
  server=
  [ "$got" = 0 ] || { cp serve.log err; fail "the server ended with $got"; }
}

standin() {
  rm -f asked
  : >stood
  node "$(dirname "$0")/../support/standin.js" "$@" >stood 2>stand.log </dev/null &
  stand=$!
  address_of stood stand.log
}

unstand() {
  kill "$stand"
  wait "$stand" 2>/dev/null || true
  stand=
}

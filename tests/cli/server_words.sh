#!/usr/bin/env bash
# What the server's log says at three in the morning: a new store or the old one, started or not, kept or gone.
set -eu
. "$(dirname "$0")/../support/cli.sh"
. "$(dirname "$0")/../support/server.sh"

logged() { # TEXT: does the log have it, or get it soon? Its lines are written by a thread of their own.
  checks=$((checks + 1))
  for _ in $(seq 1200); do
    ! grep -q "$1" serve.log || return 0
    sleep 0.05
  done
  grep -q "$1" serve.log || { cp serve.log err; fail "the log does not say: $1"; }
}
not_logged() {
  checks=$((checks + 1))
  ! grep -q "$1" serve.log || { cp serve.log err; fail "the log says: $1"; }
}

serve --data shop
logged 'a new store was created in shop'
unserve
logged 'stopped text="all answered requests are on disk"'

serve --data shop
not_logged 'a new store'
logged 'the store in shop was opened: 0 keys, 0 holds'

# A second one on the same store does not start, and does not say that it stopped in order.
cp serve.log first.log
code=0
"$hf" serve --data shop --listen 127.0.0.1:0 --sandbox $sandbox >out 2>serve.log </dev/null || code=$?
checks=$((checks + 1))
[ "$code" = 3 ] || fail "a second server ended with $code"
logged 'not-started'
not_logged 'on disk'
cp first.log serve.log
unserve

serve --data :memory:
unserve
logged 'the store was in memory and is lost'
not_logged 'on disk'

# A limit on the size of files is a disk without room, not a death without a word.
(ulimit -f 2048 && exec "$hf" serve --data small --listen 127.0.0.1:0 --sandbox $sandbox >out 2>serve.log </dev/null) && code=0 || code=$?
checks=$((checks + 1))
[ "$code" = 3 ] || { cp serve.log err; fail "with a limit on files it ended with $code"; }
logged 'not-started'

finish

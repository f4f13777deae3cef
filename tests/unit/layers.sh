#!/usr/bin/env bash
# Every #include in src goes from a folder to one that it may know: the list below has all allowed pairs, and is the floor plan of the
# house. A pair that is not used any more must go, too. Standard headers and libraries: each belongs to the folders named behind it.
# HF_SOURCE: the folder of the sources.
set -eu
cd "${HF_SOURCE:?HF_SOURCE names no folder}/src"

# folder: what it may include besides itself and the public header holdfast.h
allowed='
base:
core:           base
store/record:   base core
store:          base core store/journal store/postgres
store/journal:  base core store store/record
store/postgres: base core store store/record
engine:         base store store/record
net:            base
http:           base net
json:           base
api:            base core http json
audit:          base core json store/postgres
client:         base core net http api json
server:         base core http api audit json store/postgres
cli:            base api audit client json server store/postgres
'
# header: the only folders that may include it
owned='
libpq-fe.h:      store/postgres
openssl/ssl.h:   net
sqlite3.h:       audit
seccomp.h:       server
zstd.h:          store/journal audit
utf8proc.h:      core base server cli
'

grep -rn --include='*.[ch]' '^ *# *include' . | sed 's/:[0-9]*:/:/' |
  awk -v allowed="$allowed" -v owned="$owned" '
    function list(text, into,    lines, n, i, at) {
      n = split(text, lines, "\n")
      for (i = 1; i <= n; i++)
        if ((at = index(lines[i], ":")) > 0)
          into[substr(lines[i], 1, at - 1)] = substr(lines[i], at + 1) " "
    }
    function folder_of(path) { return sub(/\/[^\/]*$/, "", path) ? path : "" }
    function complain(text) { print "layers: " text > "/dev/stderr"; bad = 1 }
    BEGIN { list(allowed, may); list(owned, owners) }
    {
      at = index($0, ":")
      file = substr($0, 3, at - 3)
      from = folder_of(file)
      there[from] = 1
      to = substr($0, at + 1)
      if (match(to, /<[^>]*>/)) {
        header = substr(to, RSTART + 1, RLENGTH - 2)
        if (header in owners && index(owners[header], " " from " ") == 0)
          complain(file " includes <" header ">, which only these may:" owners[header])
        next
      }
      match(to, /"[^"]*"/)
      header = substr(to, RSTART + 1, RLENGTH - 2)
      to = folder_of(header)
      if (to == "" || to == from) # "" is holdfast.h
        next
      seen[from ">" to] = 1
      if (index(may[from], " " to " ") == 0)
        complain(file " includes \"" header "\", and " from " may know only:" may[from])
    }
    END {
      for (from in may) {
        if (!(from in there))
          complain("there is no folder " from)
        n = split(may[from], names, " ")
        for (i = 1; i <= n; i++)
          if (!((from ">" names[i]) in seen))
            complain(from " includes nothing of " names[i] ": take it off the list")
      }
      if (!bad)
        print "layers: every include follows the list"
      exit bad
    }'

#!/usr/bin/env bash
# Resources: showing, capacity, closing and opening, and the strict registry.
set -eu
. "$(dirname "$0")/../support/cli.sh"
export HOLDFAST_DATA=$work/store

try 0 resource hall --capacity 2 --json
json 'keys(j) === "name capacity held confirmed available open fence"'
json 'j.name === "hall" && j.capacity === 2 && j.held === 0 && j.confirmed === 0 && j.available === 2'
json 'j.open === true && j.fence === 0'
cp out first
try 0 resource hall --json
same first out
try 0 resource hall
has out "capacity   2  (0 held, 0 confirmed)"
has out "available  2"
try 1 resource cellar --json
json 'j.code === "not-known"'

try 0 hold hall --for a --duration 15m --key h1
try 0 hold hall --for b --duration 15m --key h2
try 1 hold hall --for c --duration 15m --key h3
has err "resource-unavailable"
try 0 resource hall --json
json 'j.held === 2 && j.available === 0'
try 1 resource hall --capacity 1 --json
json 'j.code === "resource-unavailable"'
try 0 resource hall --capacity 3
try 0 resource hall --close --json
json 'j.open === false && j.available === 0 && j.capacity === 3'
try 1 hold hall --for c --duration 15m --key h4
try 0 resource hall --close --json
try 0 resource hall --open --capacity 4 --json
json 'j.open === true && j.available === 2'
try 0 hold hall --for c --duration 15m --key h5

# Overdue holds count as held until they are expired, and the output says so.
try 0 resource late --capacity 3
try 0 hold late --for a --duration 15m --key l1
try 0 hold late --for b --duration 6s --key l2
try 0 hold late --for c --duration 6s --key l3
for _ in $(seq 600); do
  try 0 resource late
  ! grep -q 'of which 2 overdue' out || break
  sleep 0.1
done
has out "capacity   3  (3 held of which 2 overdue, 0 confirmed)"
has out "available  0  (and the overdue ones, which a new hold expires first)"
try 0 resource late --json
json 'j.held === 3 && j.available === 0'
try 0 hold late --for d --duration 15m --key l4
try 0 resource late
has out "capacity   3  (2 held, 0 confirmed)"
checks=$((checks + 1))
grep -qx 'available  1' out || fail "not one unit is free"

# Open registry: a first hold makes it. Strict: it does not.
try 0 hold shed --for a --duration 15m --key s1
try 0 resource shed --json
json 'j.capacity === 1 && j.held === 1'
try 1 hold barn --for a --duration 15m --key s2 --registry strict --json
json 'j.code === "resource-unavailable"'
try 1 hold barn --for a --duration 15m --key s3 # it stays as it was set
HOLDFAST_REGISTRY=strict try 0 hold barn --for a --duration 15m --key s4 --registry open

try 2 resource hall --open --close
has err "exclude each other"
# Looking does not configure.
for option in "--registry strict" "--idempotency-window 1h" "--token-max-length 9"; do
  # shellcheck disable=SC2086
  try 2 resource hall $option
  has err "${option% *} is only for commands that write"
  # shellcheck disable=SC2086
  try 2 guard none $option
  has err "is only for commands that write"
done
HOLDFAST_REGISTRY=strict try 0 resource hall
finish

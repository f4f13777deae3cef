#!/usr/bin/env bash
# audit, trace and export: over a healthy store, one that is in use, one that was tampered with, a damaged
# one, and none at all.
set -eu
. "$(dirname "$0")/../support/cli.sh"
export HOLDFAST_DATA=$work/store

try 0 hold room-307 --for guest-91 --duration 15m --key order-1 --json
id=$(field id)
try 1 hold room-307 --for guest-92 --duration 15m --key order-2
try 0 guard pay --window 5m
try 0 record pay 17 --result ok
try 0 confirm "$id" --key order-1-paid

# ---- Healthy, also while somebody has it open ----
exec 9<>store/LOCK
flock 9
try 0 audit
has out "No duplicate state change occurred: 3 requests with a key, each decided once;"
has out "1 hold, made by its own key; all 38 checks passed."
has out "1 refusal stored with a key"
has out "1 resource, 1 guard, 1 recording in guards, 0 claims,"
hasnt out "INCOMPLETE"
for check in CHAIN PC1 PC11 DP1 DP4 IR1 IR8; do has out "$check"; done
try 0 audit --json
json 'j.verdict === "ok" && j.checks.length > 20 && j.checks.every(c => c.violations === 0)'
try 0 trace "$id"
has out 'order-1'
has out "confirmed"
try 0 trace "$id" --json
json 'j.kind === "hold" && j.found && j.events.length === 2'
try 0 trace order-2
has out "resource-unavailable"
try 0 trace order-2 --json
json 'j.kind === "key" && j.found && j.events[0].status === "resource-unavailable"'
try 1 trace nobody
has err "nobody"
try 1 trace nobody --json
json 'j.found === false'
try 0 trace order-1
has out 'Key "order-1": 1 event'
try 0 export --format jsonl -
checks=$((checks + 1))
node -e '
  const lines = require("fs").readFileSync("out", "utf8").trimEnd().split("\n").map(l => JSON.parse(l));
  process.exit(lines.some(l => l.key === "order-2" && l.status === "resource-unavailable") ? 0 : 1)' ||
  fail "the export has no line for a refusal"
cp out first
try 0 export --format jsonl "$work/all.jsonl"
same first all.jsonl
try 1 export --format jsonl "$work/all.jsonl"
has err "all.jsonl"
same first all.jsonl
try 0 export --format sqlite "$work/all.db"
checks=$((checks + 1))
[ "$(head -c 15 all.db)" = "SQLite format 3" ] || fail "not a database"
try 2 export --format sqlite -
try 3 export --format jsonl "$work/no/such/folder/x"
exec 9>&-

# ---- None ----
for what in audit "trace x" "export --format jsonl -" "export --format sqlite $work/none.db"; do
  # shellcheck disable=SC2086
  try 3 $what --data "$work/none"
  has err "store-absent"
done
try 3 audit --json --data "$work/none"
json 'j.code === "store-absent"'
checks=$((checks + 1))
[ ! -e none ] && [ ! -e none.db ] || fail "something was made by looking"
for what in audit "trace x" "export --format jsonl -"; do
  # shellcheck disable=SC2086
  try 3 $what --server http://127.0.0.1:1
  has err "server-failed: "
done

# ---- Tampered with: the newest batch says that somebody else confirmed, and every checksum fits ----
cp -r store tampered
node -e '
  const fs = require("fs"), file = process.argv[1], b = fs.readFileSync(file);
  const crc = bytes => {
    let c = 0xffffffff;
    for (const byte of bytes) {
      c ^= byte;
      for (let i = 0; i < 8; i++) c = c & 1 ? (c >>> 1) ^ 0x82f63b78 : c >>> 1;
    }
    return (c ^ 0xffffffff) >>> 0;
  };
  // SipHash-2-4 of whole words.
  const siphash = (k0, k1, bytes) => {
    const m = (1n << 64n) - 1n, rotl = (x, n) => ((x << n) | (x >> (64n - n))) & m;
    const v = [k0 ^ 0x736f6d6570736575n, k1 ^ 0x646f72616e646f6dn, k0 ^ 0x6c7967656e657261n, k1 ^ 0x7465646279746573n];
    const round = () => {
      v[0] = (v[0] + v[1]) & m; v[1] = rotl(v[1], 13n) ^ v[0]; v[0] = rotl(v[0], 32n);
      v[2] = (v[2] + v[3]) & m; v[3] = rotl(v[3], 16n) ^ v[2];
      v[0] = (v[0] + v[3]) & m; v[3] = rotl(v[3], 21n) ^ v[0];
      v[2] = (v[2] + v[1]) & m; v[1] = rotl(v[1], 17n) ^ v[2]; v[2] = rotl(v[2], 32n);
    };
    const word = w => { v[3] ^= w; round(); round(); v[0] ^= w; };
    for (let i = 0; i < bytes.length; i += 8) word(bytes.readBigUInt64LE(i));
    word(BigInt(bytes.length) << 56n);
    v[2] ^= 0xffn;
    for (let i = 0; i < 4; i++) round();
    return v[0] ^ v[1] ^ v[2] ^ v[3];
  };
  let batch = -1;
  for (let at = 4096; at < b.length && b.readUInt32LE(at) === 0x32424648; at += Math.ceil(b.readUInt32LE(at + 4) / 4096) * 4096)
    batch = at;
  const length = b.readUInt32LE(batch + 4), entry = batch + 112;
  const name = b.indexOf("guest-91", entry);
  if (batch < 0 || name < 0 || name > batch + length) throw new Error("no such record");
  b.write("guest-92", name);
  b.writeUInt32LE(crc(b.subarray(entry + 8, entry + b.readUInt32LE(entry))), entry + 4);
  const crypto = require("crypto");
  const key = crypto.createHash("sha256").update("holdfast entries").update(b.subarray(104, 120)).digest().subarray(0, 16);
  const nonce = Buffer.concat([b.subarray(batch + 16, batch + 24), b.subarray(batch + 8, batch + 12)]);
  const gmac = crypto.createCipheriv("aes-128-gcm", key, nonce).setAAD(b.subarray(entry, batch + length));
  gmac.final();
  gmac.getAuthTag().copy(b, batch + 64);
  b.writeBigUInt64LE(siphash(b.readBigUInt64LE(104), b.readBigUInt64LE(112), b.subarray(batch, batch + 104)), batch + 104);
  fs.writeFileSync(file, b);
' "$work/tampered/journal-00000001.log"
try 1 audit --data "$work/tampered"
has out "PC5"
has out "$id"
try 1 audit --data "$work/tampered" --json
json 'j.verdict !== "ok" && j.checks.find(c => c.name === "PC5").violations === 1'

# ---- Damaged: what is whole is shown, and it is not called well ----
cp -r store damaged
flip damaged/journal-00000001.log 8300
try 1 audit --data "$work/damaged"
has out "journal-00000001.log"
has out "CHAIN      INCOMPLETE"
has out "SEQUENCE   BROKEN"
hasnt out " ok    "
try 1 audit --data "$work/damaged" --json
json 'j.verdict === "damaged" && j.checks.every(c => c.outcome === (c.violations ? "broken" : "incomplete"))'
try 1 export --format jsonl - --data "$work/damaged"
has err "store-damaged: The journal is damaged in 1 place, and 0 entries cannot be read"

# ---- One tenant alone: nobody else's names, and none of the store's figures ----
try 0 hold bed-12 --for patient-42 --duration 15m --key visit-7 --tenant clinic --json
theirs=$(field id)
try 0 audit --tenant clinic
has out 'Only tenant "clinic": the report covers its 1 entry and no other records.'
has out "1 request with a key"
hasnt out "chain head"
hasnt out "store id"
try 0 audit --tenant clinic --json
json 'j.tenant === "clinic" && j.tenant_entries === 1 && j.holds.count === 1 && j.verdict === "ok"'
json 'keys(j.journal) === "entries records first_at last_at damaged" && j.configuration.every(c => !("position" in c))'
try 0 audit --json
json 'j.tenant === null && j.checks.every(c => c.outcome === "ok")'
HOLDFAST_TENANT=clinic try 0 audit
has out 'Only tenant "clinic"'
for name in "$id" order-1; do
  try 1 trace "$name" --tenant clinic
  has err "No hold or key \"$name\" is in the journal. Check the spelling, the tenant and the store."
done
try 1 trace "$theirs" --tenant ''
try 0 trace "$theirs" --tenant clinic
has out "patient-42"
try 0 export --format jsonl - --tenant clinic
has out "patient-42"
hasnt out "order-1"
hasnt out "guest-91"
try 0 export --format jsonl - --tenant ''
has out "order-1"
hasnt out "patient-42"
try 0 export --format jsonl "$work/nobody.jsonl" --tenant nobody
has err 'note: Tenant "nobody" has no entry in the journal'
# One key in two tenants: without --tenant, each event says whose it is.
try 0 hold bed-13 --for patient-43 --duration 15m --key order-1 --tenant clinic
try 0 claim begin order-2 --payload 1 --tenant clinic
try 0 claim begin order-2 --payload 1 --tenant lab
try 0 trace order-1
has out 'events in 2 tenants'
has out '  the default tenant: place_hold by key "order-1" answered ok'
has out '  tenant "clinic": place_hold by key "order-1" answered ok'
has out ', the default tenant: bound until'
has out ', tenant "clinic": bound until'
try 0 trace order-1 --json
json 'j.tenants.length === 2 && j.tenants[1].tenant === "clinic" && j.tenants[1].events === 1'
json 'new Set(j.events.map(e => e.tenant)).size === 2'
try 0 trace order-2
has out '  tenant "clinic": claim begin: started'
has out '  tenant "lab": claim begin: started'
try 0 trace order-1 --tenant clinic
has out 'Key "order-1" of tenant "clinic": 1 event'
try 0 trace "$theirs"
has out "Hold $theirs of tenant \"clinic\": 1 event"
try 0 trace order-1 --tenant ''
hasnt out tenant
for what in "audit" "trace x" "export --format jsonl -"; do
  # shellcheck disable=SC2086
  try 1 $what --tenant "$(printf 'x%.0s' $(seq 65))"
  has err "invalid-request: --tenant is too long (65 bytes)"
done
HOLDFAST_JSON=1 try 3 export --format jsonl - --data "$work/none" # the standard output is for the export
checks=$((checks + 1))
[ ! -s out ] || fail "something else than an export on stdout"
finish

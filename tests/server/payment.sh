#!/usr/bin/env bash
# examples/payment-node charges each order once: the shop is killed at any of its lines and after any write to a socket,
# its recovery too; then shop, server and provider are killed at random. A control shows that without claims the same kills
# charge a card twice.
set -eu
. "$(dirname "$0")/../support/cli.sh"
. "$(dirname "$0")/../support/server.sh"
example=$HF_SOURCE/examples/payment-node
touch out err orders.jsonl

# Kill the shop at its STEP-th step: a line that is about to run, or bytes that it has just given to a socket. A worker holds
# the debugger, with a breakpoint on every line.
cat >step.mjs <<'JS'
import { Socket } from "node:net";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
const steps = new Int32Array(new SharedArrayBuffer(4));
const STEP = Number(process.env.STEP);
const EXAMPLE = pathToFileURL(process.env.EXAMPLE).href + "/";
function step() {
  if (Atomics.add(steps, 0, 1) + 1 === STEP) process.kill(process.pid, "SIGKILL");
}
function lines() {
  const session = new (require("node:inspector").Session)();
  session.connectToMainThread();
  session.on("Debugger.paused", () => { step(); session.post("Debugger.resume"); });
  session.post("Debugger.enable");
  for (let line = 0; line < 200; line++)
    for (const name of ["shop", "log"])
      session.post("Debugger.setBreakpointByUrl", { url: EXAMPLE + name + ".mjs", lineNumber: line });
  session.post("Runtime.evaluate", { expression: "1" }, () => parentPort.postMessage("ready"));
  setInterval(() => {}, 1e6);
}
const worker = new Worker(`const { parentPort, workerData: { steps, STEP, EXAMPLE } } = require("node:worker_threads");
  ${step} (${lines})();`, { eval: true, execArgv: [], workerData: { steps, STEP, EXAMPLE } });
await new Promise((resolve, reject) => worker.once("message", resolve).once("error", reject));
worker.unref();
for (const name of ["_write", "_writev"]) {
  const write = Socket.prototype[name];
  Socket.prototype[name] = function (...given) {
    write.apply(this, given);
    step();
  };
}
JS

# A server that remembers outcomes and no claims: what a shop does that looks into its table, charges, and then writes there.
cat >unclaimed.mjs <<'JS'
import { createServer } from "node:http";
const known = new Map();
let fence = 0;
createServer(async (request, response) => {
  let body = "";
  for await (const part of request) body += part;
  const { key: begun, ...given } = body ? JSON.parse(body) : {};
  const [, , , key, verb] = request.url.split("/").map(decodeURIComponent);
  if (verb === "complete") known.set(key, { key, status: "completed", response: given.response });
  response.end(JSON.stringify(!body ? { claims: [], next_cursor: null }
    : known.get(begun) ?? { key: begun, status: "started", fence: ++fence }));
}).listen(0, "127.0.0.1", function () { console.log("listening on http://127.0.0.1:" + this.address().port); });
JS

# What the ledger and the shop's file must say of the orders on stdin.
cat >judge.mjs <<'JS'
import { readFileSync } from "node:fs";
const read = name => readFileSync(name, "utf8").split("\n").filter(Boolean).map(line => JSON.parse(line));
const ledger = read("ledger.jsonl").filter(line => line.charge);
const outcomes = read("orders.jsonl");
const wrong = text => { console.error(text); process.exitCode = 1; };
const orders = readFileSync(0, "utf8").split("\n").filter(Boolean).map(line => JSON.parse(line));
for (const { id, card } of orders) {
  const charges = ledger.filter(line => line.key.startsWith(`charge:${id}#`));
  const mine = outcomes.filter(line => line.id === id);
  const due = card === "declined" ? 0 : 1;
  if (charges.length !== due) wrong(`${id} has ${charges.length} charges`);
  if (mine.length !== 1) wrong(`${id} has ${mine.length} outcomes`);
  else if (mine[0].status !== (due ? "paid" : "declined")) wrong(`${id} is ${mine[0].status}`);
  else if (due && mine[0].charge !== charges[0].charge) wrong(`${id} was charged with another number`);
}
if (!orders.length) wrong("there are no orders");
JS

# A port that no other program gets by itself: outside of the range that the system gives away.
free_port() {
  for port in $(seq $((20000 + $$ % 5000 + $1)) 30000); do
    (exec 3<>/dev/tcp/127.0.0.1/"$port") 2>/dev/null || break
  done
}

provide() {
  : >provided
  PORT=$provider_port node "$example/provider.mjs" ledger.jsonl >provided 2>provider.log </dev/null &
  stand=$!
  local own=$url
  address_of provided provider.log
  export PROVIDER=$url
  url=$own
}

kill_hard() { # without a word of the shell
  disown "$1"
  kill -9 "$1"
  while kill -0 "$1" 2>/dev/null; do sleep 0.01; done
}

# begin STEP ORDERS: start the shop; kill it at that step (0: at none). It is $shop.
begin() {
  local with=()
  [ "$1" = 0 ] || with=(--import "$work/step.mjs")
  # In a shell of its own, which says nothing of the kill; not for ever, if this script ends before it.
  (STEP=$1 EXAMPLE=$(realpath "$example") timeout 300 node "${with[@]}" "$example/shop.mjs" orders.jsonl <"$2" >shop.out 2>shop.err; exit $?) 2>/dev/null &
  shop=$!
}

# Wait for its end: $end is done or killed.
end() {
  local got=0
  wait "$shop" || got=$?
  shop=
  case $got in
  0) end=done ;;
  137) end=killed ;;
  *) end=failed && cp shop.out out && cp shop.err err && fail "the shop ended with $got" ;;
  esac
}

run() {
  begin "$@"
  end
}

order() { echo "{\"id\":\"$1\",\"card\":\"$2\",\"cents\":9900}"; }

seed=${HF_SEED:-$$}
RANDOM=$seed
echo "HF_SEED=$seed"
shop=
export LEASE_MS=1000 SLOW_MS=1500 LOSE HOLDFAST_SERVER
free_port 0
listen=127.0.0.1:$port
free_port 5000
provider_port=$port
# Every so many steps, from one that chance chooses, so that the runs together have them all.
stride=21
[ "${HF_SCALE:-small}" != full ] || stride=7

# ---- Killed at each step ----

# An order is begun, and the shop is killed at step N; its recovery is killed at step N as well; then it may end.
systematic() { # the card, and every how many answers of a charge are lost
  local n
  LOSE=$2
  provide
  for ((n = 1 + RANDOM % stride; ; n += stride)); do
    order "$1-$LOSE-$n" "$1" >one
    cat one >>all
    run "$n" one
    [ $end = killed ] || break
    run "$n" one
    [ $end = done ] || run 0 one
  done
  checks=$((checks + 1))
  [ "$n" -gt 60 ] || fail "the shop has only $n steps"
  unstand
}

serve --data store
HOLDFAST_SERVER=$url

# Without a kill: the provider takes longer than the lease, and heartbeats keep the claim.
LOSE=0
provide
order slow-0 slow >all
run 0 all
curl -sS "$url/v1/trace/charge:slow-0" >out
has out heartbeat
unstand

systematic visa 0     # every answer arrives
systematic visa 1     # none does
systematic declined 0 # the bank says no

# ---- Shop, server and provider are killed at random, with four orders at work at a time ----

saved() { wc -l <orders.jsonl; }

LOSE=3
provide
for n in $(seq 14); do order "busy-$n" visa; done >many
{ order slow-1 slow; order slow-2 slow; order declined-1 declined; } >>many
cat many >>all
kills=0
for round in $(seq 100); do
  before=$(saved)
  begin $((40 + RANDOM % 400)) many
  case $((round % 3)) in
  1 | 2) # while it works: an order is done and others are not
    while [ "$(saved)" = "$before" ] && kill -0 "$shop" 2>/dev/null; do sleep 0.02; done
    if [ $((round % 3)) = 1 ]; then
      kill_hard "$server"
      serve --data store
    else
      kill_hard "$stand"
      provide
    fi
    ;;
  esac
  end
  [ $end = killed ] || break
  kills=$((kills + 1))
done
checks=$((checks + 1))
[ $end = done ] || fail "the shop did not end"
checks=$((checks + 1))
[ "$kills" -ge 3 ] || fail "the shop was killed $kills times"

# ---- Each order was charged once ----

judge() {
  checks=$((checks + 1))
  last="the ledger"
  node judge.mjs <all >out 2>err || fail "an order is not charged once"
}

judge
for status in started unknown retryable; do
  curl -sS "$url/v1/claims?status=$status" >out
  json 'j.claims.length === 0 && j.next_cursor === null'
done
unserve
unstand
try 0 audit --data store
rm -rf orders.jsonl ledger.jsonl

# ---- The control: without claims, the same kills charge twice ----

node unclaimed.mjs >stood 2>stand.log </dev/null &
server=$!
address_of stood stand.log
HOLDFAST_SERVER=$url
LOSE=0
provide
for ((n = 53; n < 150; n += 4)); do
  order "visa-$n" visa >all
  run "$n" all
  run 0 all
  judge=$(node judge.mjs <all 2>&1 || true)
  case $judge in *"has 2 charges"*) break ;; esac
done
checks=$((checks + 1))
[ "$n" -lt 150 ] || fail "the test does not see a double charge"
finish

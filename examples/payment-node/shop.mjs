// shop.mjs: charge each order once, whatever crashes.
//
//   holdfast serve &
//   node provider.mjs &
//   echo '{"id":"order-1","card":"visa","cents":9900}' | node shop.mjs
//
// Kill it with kill -9 at any line, kill the server or the provider, and start it again with the
// same orders: each one is charged once. orders.jsonl (or the file in the first argument) has the
// outcomes. Comments that begin with "Crash" say what the next start finds, and does. Needs Node 20
// and no packages.
//
// This shop is one process. If yours is several, leave out recover(): when a process dies, the
// lease of its claim ends, the next begin is told outcome-unknown, and pay() settles the claim.
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Log } from "./log.mjs";

const HOLDFAST = process.env.HOLDFAST_SERVER ?? "http://127.0.0.1:4653";
const PROVIDER = process.env.PROVIDER ?? "http://127.0.0.1:4700";
const LEASE_MS = Number(process.env.LEASE_MS ?? 10_000);
const PREFIX = "charge:"; // of the keys of all charges, to find them again

const orders = new Log(process.argv[2] ?? "orders.jsonl");
const outcomes = new Map(orders.lines.map(outcome => [outcome.id, outcome]));

// Call until there is an answer. For calls that may be sent twice; the charge is not one of them.
async function call(url, body) {
  for (;;) {
    try {
      const r = await fetch(url, {
        method: body ? "POST" : "GET",
        body: body && JSON.stringify(body),
        signal: AbortSignal.timeout(10_000),
      });
      if (r.status < 500 && r.status !== 429) return await r.json();
    } catch { } // nothing listens, or the connection broke, or the time is over
    await sleep(100);
  }
}

const claimCall = (key, verb, body) =>
  call(`${HOLDFAST}/v1/claims/${encodeURIComponent(key)}/${verb}`, body);

// What the provider calls an attempt: the claim's key and fence. "Not charged, and never will be"
// closes one attempt, and the next one has a higher fence. If your provider deduplicates by this
// key and never forgets it, send the claim's key alone, and settle() can send the charge again.
const attempt = (key, fence) => `${key}#${fence}`;

// Send the charge, once. Without an answer, the card may have been charged or not.
async function charge(order, key, fence) {
  const beat = () => claimCall(key, "heartbeat", { fence });
  const heart = setInterval(beat, LEASE_MS / 3); // the provider may take longer than the lease
  try {
    const r = await fetch(`${PROVIDER}/charges`, {
      method: "POST",
      headers: { "Idempotency-Key": attempt(key, fence) },
      body: JSON.stringify({ card: order.card, cents: order.cents }),
      signal: AbortSignal.timeout(60_000),
    });
    return { status: r.status, ...await r.json() };
  } catch {
    return { status: "no answer" };
  } finally {
    clearInterval(heart);
  }
}

// The outcome of an attempt is not known: ask the provider, and settle the claim accordingly.
async function settle(key, fence) {
  // Unknown from now on, and not only when the lease ends: no begin starts before this is settled.
  await claimCall(key, "abandon", { fence });
  // Crash: the claim is unknown. recover() asks the provider.
  const url = `${PROVIDER}/charges/${encodeURIComponent(attempt(key, fence))}/settle`;
  const { charge } = await call(url, {});
  // Crash: the claim is unknown. recover() asks again and gets the same answer, which is final.
  if (charge) await claimCall(key, "complete", { fence, response: { charge } });
  else await claimCall(key, "fail", { fence, retryable: true, error: "not charged" });
}

async function pay(order) {
  const key = PREFIX + order.id; // one order, one key: the same after every crash
  while (!outcomes.has(order.id)) {
    // For ten years: after its retention, the key would begin again and the card be charged again.
    const begin = { key, payload: order, lease: `${LEASE_MS}ms`, retention: "3650d" };
    const claim = await call(`${HOLDFAST}/v1/claims`, begin);
    if (claim.status === "started") {
      const fence = claim.fence;
      // Crash: the claim is started. recover() asks the provider, which says "not charged".
      const answer = await charge(order, key, fence);
      // Crash: the claim is started. recover() asks the provider, which knows the charge.
      if (answer.status === 201)
        await claimCall(key, "complete", { fence, response: { charge: answer.charge } });
      else if (answer.status === 402) // declined: nothing was charged, and a retry changes nothing
        await claimCall(key, "fail", { fence, retryable: false, error: answer.error });
      else
        await settle(key, fence);
      // Crash: the claim has the outcome. Begin returns it; so does the begin of the next round.
    } else if (claim.status === "completed") {
      save({ id: order.id, status: "paid", charge: claim.response.charge });
    } else if (claim.status === "failed") {
      save({ id: order.id, status: "declined", error: claim.error });
    } else if (claim.code === "outcome-unknown") {
      await settle(key, claim.fence);
    } else if (claim.code === "in-progress") {
      await sleep(200); // another process; or the answer to our begin was lost, and its lease ends
    } else {
      throw new Error(`${key}: ${claim.detail}`); // such as an order that was changed on the way
    }
  }
}

function save(outcome) {
  orders.add(outcome);
  // Crash before this: begin returns the outcome again. After it: pay() finds the outcome here.
  outcomes.set(outcome.id, outcome);
  console.log(outcome.id, outcome.status, outcome.charge ?? outcome.error);
}

// What the last run left open: unknown claims, and started ones, because their process is dead.
async function recover() {
  for (const status of ["started", "unknown"]) {
    let cursor = "";
    do {
      const query = `status=${status}&prefix=${PREFIX}&cursor=${cursor}`;
      const page = await call(`${HOLDFAST}/v1/claims?${query}`);
      for (const claim of page.claims) await settle(claim.key, claim.fence);
      cursor = page.next_cursor;
    } while (cursor !== null);
  }
}

await recover();
const lines = readFileSync(0, "utf8").split("\n").filter(Boolean);
const todo = lines.map(line => JSON.parse(line)).values();
const worker = async () => {
  for (const order of todo) await pay(order);
};
await Promise.all([worker(), worker(), worker(), worker()]); // four orders at a time

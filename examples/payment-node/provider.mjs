// provider.mjs: a payment provider to try shop.mjs with: PORT=4700 node provider.mjs [LEDGER]
//
//   POST /charges              {card, cents}, header Idempotency-Key
//                              201 {charge}, 402 declined, 409 settled as not charged
//   POST /charges/KEY/settle   "did you charge for KEY?"
//                              200 {charge}; null means: no, and it never will
//
// Like many gateways, it notes the key and does not deduplicate: each request is a charge. The
// ledger is a durable file. After the charge, every third answer is lost (LOSE=3; 0: none). The
// card "declined" is declined; the card "slow" takes three seconds (SLOW_MS).
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { Log } from "./log.mjs";

const LOSE = Number(process.env.LOSE ?? 3);
const SLOW_MS = Number(process.env.SLOW_MS ?? 3000);
const ledger = new Log(process.argv[2] ?? "ledger.jsonl");
const refused = key => ledger.lines.some(line => line.never === key);
let answers = 0;

async function charge(key, { card, cents }) {
  if (card === "slow") await sleep(SLOW_MS);
  if (card === "declined") return [402, { error: "card declined" }];
  if (refused(key)) return [409, { error: "settled as not charged" }];
  const id = `ch_${ledger.lines.length + 1}`;
  ledger.add({ charge: id, key, cents });
  return [201, { charge: id }];
}

// The answer is final: a charge that is still on its way is refused when it arrives.
function settle(key) {
  const made = ledger.lines.find(line => line.charge && line.key === key);
  if (!made && !refused(key)) ledger.add({ never: key });
  return [200, { charge: made?.charge ?? null }];
}

const server = createServer(async (request, response) => {
  let body = "";
  for await (const part of request) body += part;
  const [, , key, verb] = request.url.split("/").map(decodeURIComponent);
  const [status, answer] = verb === "settle" ? settle(key)
    : await charge(request.headers["idempotency-key"], JSON.parse(body));
  const lost = verb !== "settle" && LOSE > 0 && ++answers % LOSE === 0;
  if (lost) request.socket.destroy();
  else response.writeHead(status).end(JSON.stringify(answer));
});
server.listen(Number(process.env.PORT ?? 4700), "127.0.0.1", () =>
  console.log(`provider: listening on http://127.0.0.1:${server.address().port}`));

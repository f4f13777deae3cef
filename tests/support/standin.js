// A stand-in for a server, for tests of the client: node standin.js HOW [URL]
// Says "listening on http://127.0.0.1:PORT" and then does HOW with every connection. What it is asked goes to the file
// ./asked, a line a request: method, path and key. URL: the real server, for those that pass requests on.
"use strict";
const net = require("net");
const fs = require("fs");
const [how, real] = process.argv.slice(2);

const hold = JSON.stringify({
  id: "0d1b6cv3p1d2pjhxab2na5d60k", resource: "r", requester: "q", state: "held",
  placed_at: "2026-11-16T01:54:05.713Z", expires_at: "2026-11-16T02:09:05.713Z",
});
const answer = (status, type, body, fields = "") =>
  `HTTP/1.1 ${status} Answer\r\nContent-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${fields}\r\n${body}`;
const problem = (status, code, detail) =>
  answer(status, "application/problem+json", JSON.stringify({ type: "urn:holdfast:" + code, title: "t", status, detail, code }));
const page = (count, cursor) => JSON.stringify({ holds: Array(count).fill(JSON.parse(hold)), next_cursor: cursor });

// What to say to a whole request.
const fixed = {
  nonsense: "hello, who is there?\r\n",
  tls: "\x15\x03\x03\x00\x02\x02\x46",
  "bare-lf": "HTTP/1.1 200 OK\nContent-Length: 2\n\n{}",
  "no-length": "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + hold,
  "two-lengths": `HTTP/1.1 201 OK\r\nContent-Type: application/json\r\nContent-Length: ${hold.length}\r\nContent-Length: 3\r\n\r\n${hold}`,
  "no-number": "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
  chunked: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
  folded: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n x\r\n\r\n{}",
  huge: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n{",
  interim: "HTTP/1.1 100 Continue\r\n\r\n" + answer(201, "application/json", hold),
  "interim-flood": "HTTP/1.1 100 Continue\r\n\r\n".repeat(50),
  behind: answer(201, "application/json", hold) + "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsmuggled!",
  html: answer(200, "text/html", "<h1>Welcome</h1>"),
  "html-404": answer(404, "text/html", "<h1>Not found</h1>"),
  "html-502": answer(502, "text/html", "<h1>Bad gateway</h1>"),
  redirect: answer(302, "text/html", "", "Location: http://127.0.0.1:1/\r\n"),
  "wrong-json": answer(200, "application/json", '{"hello":1}'),
  "wrong-state": answer(200, "application/json", hold.replace('"held"', '"melted"')),
  "wrong-id": answer(200, "application/json", hold.replace("0d1b6cv3p1d2pjhxab2na5d60k", "\\u001b[31m")),
  "more-json": answer(200, "application/json", hold + "{}"),
  "broken-problem": answer(409, "application/problem+json", "{"),
  "evil-problem": problem(409, "not-held", "\x1b[31mred\x07"),
  "evil-code": problem(409, "\x1b[31m", "x"),
  "evil-text": answer(200, "text/plain", "one\x1b[31m\ntwo\n", "Holdfast-Verdict: ok\r\n"),
  violations: answer(200, "text/plain", "VIOLATIONS: 1\n", "Holdfast-Verdict: violations\r\n"),
  "no-verdict": answer(200, "text/plain", "fine\n"),
  "new-code": problem(409, "brand-new", "Something new."),
  "new-500": problem(500, "brand-new", "Something new."),
  busy: problem(503, "too-busy", "Later."),
  unsure: problem(503, "indeterminate", "The store failed."),
  "same-page": answer(200, "application/json", page(1, "5")),
  "long-page": answer(200, "application/json", page(101, null)),
  "longer-page": answer(200, "application/json", page(1001, null)),
  "odd-cursor": answer(200, "application/json", page(1, "x")),
  "more-members": answer(201, "application/json", hold.replace("{", '{"new":[{"a":null}],')),
};

// An answer that fills what the client reads at once, and behind it one to the question that comes next.
function smuggle() {
  const first = (pad) => answer(201, "application/json", hold.replace("{", `{"pad":"${pad}",`), "Idempotent-Replayed: true\r\n");
  const next = answer(200, "application/json", '{"recorded_at":"1999-01-01T00:00:00.000Z"}');
  const pad = 16384 - Buffer.byteLength(first("x".repeat(10000))) + 10000;
  return first("x".repeat(pad)) + next;
}

let connections = 0;
function speak(socket, asked) {
  if (how in fixed) socket.write(fixed[how], "latin1");
  else if (how === "close") socket.end();
  else if (how === "reset") socket.resetAndDestroy ? socket.resetAndDestroy() : socket.destroy();
  else if (how === "once") connections === 1 ? socket.end() : socket.write(answer(201, "application/json", hold));
  else if (how === "smuggle") socket.write(connections === 1 ? smuggle() : problem(404, "not-known", "Nothing."));
  else if (how === "short") socket.end(answer(201, "application/json", hold).slice(0, -10));
  else if (how === "short-export") socket.end("HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nContent-Length: 100\r\n\r\n{}\n");
  else if (how === "wrong-export") socket.write(answer(200, "text/html", "<h1>Welcome</h1>"));
  else if (how === "damaged-export") socket.write(answer(200, "application/x-ndjson", "{}\n", "Holdfast-Verdict: damaged\r\n"));
  else if (how === "endless-head") flood(socket, "HTTP/1.1 200 OK\r\n", "X-More: of the same\r\n");
  else if (how === "endless-line") flood(socket, "HTTP/1.1 200 OK\r\nX-Long: ", "x".repeat(1000));
  else if (how === "drip") drip(socket, answer(200, "application/json", hold));
  else if (how === "swallow" || how === "swallow-once") pass(socket, asked, how === "swallow" || connections === 1);
  // silent: nothing
}

function flood(socket, first, rest) {
  socket.write(first);
  const more = () => { while (!socket.destroyed && socket.write(rest)); };
  socket.on("drain", more);
  more();
}

function drip(socket, text) {
  let at = 0;
  const timer = setInterval(() => (at < text.length ? socket.write(text[at++]) : clearInterval(timer)), 100);
  socket.on("close", () => clearInterval(timer));
}

// Pass the request on to the real server; the answer is lost on the way back, or not.
function pass(socket, asked, lose) {
  const { hostname, port } = new URL(real);
  const upstream = net.connect(port, hostname, () => upstream.write(asked));
  upstream.on("data", (data) => (lose ? (upstream.destroy(), socket.destroy()) : socket.write(data)));
  upstream.on("error", () => socket.destroy());
  socket.on("close", () => upstream.destroy());
}

net.createServer((socket) => {
  connections++;
  if (how === "greets") socket.write("220 mail.example.org at your service\r\n");
  let asked = Buffer.alloc(0);
  socket.on("error", () => {});
  socket.on("data", (data) => {
    asked = Buffer.concat([asked, data]);
    for (;;) {
      const text = asked.toString("latin1");
      const end = text.indexOf("\r\n\r\n");
      const size = end < 0 ? 0 : end + 4 + Number((/content-length: (\d+)/i.exec(text.slice(0, end)) || [0, 0])[1]);
      if (end < 0 || asked.length < size) return;
      const request = asked.subarray(0, size);
      asked = asked.subarray(size);
      const key = (/idempotency-key: (.*)\r/i.exec(text.slice(0, end + 2)) || ["", "-"])[1];
      fs.appendFileSync("asked", text.split(" ").slice(0, 2).join(" ") + " " + key + "\n");
      speak(socket, request);
    }
  });
}).listen(0, "127.0.0.1", function () {
  console.log(`listening on http://127.0.0.1:${this.address().port}`);
});

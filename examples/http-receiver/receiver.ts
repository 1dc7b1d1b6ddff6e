/**
 * A receiver for HTTP tasks. It accepts only signed and recent requests, and rejects a call of an older attempt once a newer attempt of the
 * same run has called.
 *
 *   CARILLON_HTTP_SECRET=… node examples/dist/http-receiver/receiver.js [PORT]
 */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";

const secret = process.env.CARILLON_HTTP_SECRET ?? "";
if (secret === "") throw new Error("CARILLON_HTTP_SECRET is not set");
/** Must be `namespace:NAME` if the secret belongs to a namespace. */
const keyId = process.env.CARILLON_HTTP_KEY_ID ?? "cluster";

/** Verifies the signature of a request. `body` must be the received bytes, because parsing and serialising could change them. */
function isGenuine({ method, url = "/", headers }: IncomingMessage, body: Buffer): boolean {
  const { host = "", "signature-input": input, signature } = headers;
  const [path = "", query = ""] = url.split(/\?(.*)/s);
  const told = ["task", "schedule", "run", "slot", "attempt", "fence"]
    .map((name) => `carillon-${name}`)
    .filter((name) => name in headers);
  const parts = [
    ["@method", method],
    ["@authority", host.toLowerCase()],
    ["@path", path],
    ["@query", `?${query}`],
    ["content-digest", `sha-256=:${createHash("sha256").update(body).digest("base64")}:`],
    ...told.map((name) => [name, headers[name]]),
  ];
  // The signature must cover exactly these headers in this order, because only signed headers can be trusted.
  const created = Number(/;created=(\d+);/.exec(String(input))?.[1]);
  const wanted = `(${parts.map(([name]) => `"${name}"`).join(" ")});created=${created};keyid="${keyId}"`;
  const base = [...parts, ["@signature-params", wanted]].map(([name, value]) => `"${name}": ${value}`).join("\n");
  const right = Buffer.from(`carillon=:${createHmac("sha256", secret).update(base).digest("base64")}:`);
  const given = Buffer.from(String(signature));
  const isRecent = Math.abs(Date.now() / 1_000 - created) < 300;
  return isRecent && given.length === right.length && timingSafeEqual(given, right);
}

/**
 * The highest fence with which each run has called. A real receiver stores it in the row that it writes. Fences of different runs must not
 * be compared: a healthy run may call after a run with a higher fence.
 */
const fences = new Map<number, number>();

const server = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks);
  const answer = (status: number, value: unknown) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(value));
  };
  if (!isGenuine(request, body)) return answer(401, { error: "not signed by the scheduler" });
  const { ledger = "main" } = (JSON.parse(body.toString()) ?? {}) as { ledger?: string };
  const [run, fence] = ["run", "fence"].map((name) => Number(request.headers[`carillon-${name}`])) as [number, number];
  // This is a late call of a paused worker. Meanwhile another worker has claimed the run, with a higher fence.
  if (fence < (fences.get(run) ?? 0)) return answer(409, { error: "a newer attempt was here" });
  fences.set(run, fence);
  answer(200, { settled: ledger, run });
});

server.listen(Number(process.argv[2] ?? 0), "127.0.0.1", () => {
  const address = server.address();
  console.log(`listening on ${typeof address === "object" ? address?.port : address}`);
});

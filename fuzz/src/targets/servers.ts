import { randomBytes } from "node:crypto";
import { Agent, createServer, request, type Server } from "node:http";
import fc from "fast-check";
import pg from "pg";
import { Carillon } from "../../../scheduler/src/carillon.ts";
import { errorCodes } from "../../../scheduler/src/errors.ts";
import { type RemoteWorker, worker } from "../../../scheduler/src/remote-worker.ts";
import { defineTask } from "../../../scheduler/src/task.ts";
import { hashOfSecret, keyText, makeSecret, tokenText } from "../../../scheduler/src/worker-key.ts";
import { type PollAnswer, pollAnswer, pollPath, pollRequest } from "../../../scheduler/src/worker-protocol.ts";
import { expectLater, hold } from "../expected.ts";
import { goodValue } from "../good-values.ts";
import { oddJson, spoiltTexts, spoiltValues } from "../mutation.ts";
import { target } from "../target.ts";
import { requests, shapeAt } from "./contract.ts";

const quiet = () => undefined;
const silent = { debug: quiet, info: quiet, warn: quiet, error: quiet };

interface Stage {
  readonly url: URL;
  readonly token: string;
  readonly key: string;
  readonly agent: Agent;
}
let stage: Stage | undefined;

/** A whole server, as users run it, on a schema of its own. */
async function openServer(): Promise<() => Promise<void>> {
  const store = process.env.CARILLON_TEST_POSTGRES_URL;
  if (!store) throw new Error("CARILLON_TEST_POSTGRES_URL is not set: start this as `npm run fuzz`");
  const schema = `fuzz_${randomBytes(4).toString("hex")}`;
  const tower = new Carillon({
    store,
    schema,
    listen: "127.0.0.1:0",
    worker: false,
    handleSignals: false,
    log: silent,
  });
  await tower.start();
  const { store: opened, nowMs } = await tower.open();
  for (const name of ["settle", "5m"]) await tower.save(defineTask(name));
  const change = { author: "fuzz", reason: "", nowMs: nowMs() };
  const secret = makeSecret();
  const user = await opened.access.createUser({ name: "fuzz-admin", hash: "none", role: "admin" }, change);
  const made = await opened.access.createToken(
    { userId: user.userId, name: "fuzz", hash: hashOfSecret(secret), role: "admin", scopes: null, expiresMs: 9e12 },
    change,
  );
  const key = { name: "fuzz", groups: ["default"], hash: hashOfSecret(secret), createdBy: "fuzz" };
  const { keyId } = await opened.workers.createKey(key, nowMs());
  const agent = new Agent({ keepAlive: true });
  stage = {
    url: new URL(`http://${tower.listening}`),
    token: tokenText(made.tokenId, secret),
    key: keyText(keyId, secret),
    agent,
  };
  return async () => {
    agent.destroy();
    await tower.stop();
    const client = new pg.Client({ connectionString: store });
    await client.connect();
    await client.query(`drop schema if exists ${schema} cascade`);
    await client.end();
  };
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** Without what fetch would put right. */
function ask(
  method: string,
  path: string,
  body: string | undefined,
  secret: string,
  headers: Record<string, string>,
): Promise<Answer | undefined> {
  const { url, agent } = stage as Stage;
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        ...{ host: url.hostname, port: url.port, agent, method, path },
        headers: {
          authorization: `Bearer ${secret}`,
          ...(body === undefined
            ? {}
            : { "content-type": "application/json", "content-length": Buffer.byteLength(body) }),
          ...headers,
        },
      },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => {
          text += part;
        });
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
        response.on("error", reject);
      },
    );
    // A body that is not what its encoding says breaks the line that it comes by, where it is large.
    sent.on("error", (error) => ("content-encoding" in headers ? resolve(undefined) : reject(error)));
    sent.end(body);
  });
}

/** An answer that was meant: not one of a bug, and a refusal by its code. */
function judge(answer: Answer | undefined, what: string): void {
  if (!answer) return;
  const { status, text } = answer;
  // 503 is of what this server lacks, and has a code that says what.
  hold(status < 500 || status === 503, () => `${what} answered ${status}: ${text.slice(0, 500)}`);
  if (status < 400) return;
  const { code } = JSON.parse(text) as { code?: string };
  hold(code !== undefined && Object.hasOwn(errorCodes, code), () => `${what} answered ${status} with the code ${code}`);
}

const encoded = (value: unknown): string =>
  encodeURIComponent(
    String(typeof value === "object" ? JSON.stringify(value) : value)
      .toWellFormed()
      .slice(0, 2_000),
  );

function queryOf(query: unknown): string {
  const parts = Object.entries(query as object).flatMap(([name, value]) =>
    [value].flat().map((one) => `${encoded(name)}=${encoded(one)}`),
  );
  return parts.length === 0 ? "" : `?${parts.join("&").slice(0, 6_000)}`;
}

/** A stream of events has no end; its own query is checked as all others are, by the contract's target. */
const asked = requests.filter(({ at }) => shapeAt(at).event === undefined);

const bodies = fc.oneof(
  { weight: 6, arbitrary: fc.constant(undefined) },
  {
    weight: 1,
    arbitrary: spoiltTexts(['{"reason":"x"}', "[1]", '{"a":{"b":[]}}'], ["{", "}", "[", '"', ",", ":", "\0", "1e999"]),
  },
);
const oddHeaders = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Record<string, string>>({}) },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Record<string, string>>(
      ...[
        { "if-match": '"1"' },
        { "if-match": "W/x" },
        { "idempotency-key": "k" },
        { "idempotency-key": "é".repeat(3) },
      ],
      ...[
        { "content-type": "text/xml" },
        { "content-encoding": "gzip" },
        { "content-encoding": "br" },
        { "last-event-id": "x" },
      ],
      ...[
        { cookie: "carillon=%zz; a" },
        { origin: "http://evil.example" },
        { "accept-encoding": "gzip;q=x" },
        { "if-match": "*" },
      ],
    ),
  },
);

const polls = [0, 1, 2, 3].map((variant) => goodValue(pollRequest, variant));
const answers = [0, 1, 2, 3].map((variant) => goodValue(pollAnswer, variant) as PollAnswer);
const joined = (): PollAnswer => ({
  ...{
    session: 7,
    nowMs: Date.now(),
    tookMs: 0,
    sureForMs: 5_000,
    runs: [],
    tasks: [],
    recalls: [],
    refused: [],
    lost: [],
  },
});

let hostile: Server | undefined;
let told: { status: number; texts: string[] } = { status: 200, texts: [] };

export const serverTargets = [
  target({
    name: "http-api",
    share: 0.12,
    // Some of it makes a password's hash, some waits for the store.
    withinMs: 5_000,
    open: openServer,
    inputs: fc.record({ asked, body: bodies, headers: oddHeaders }),
    feed: async ({ asked: { at, params, query, body: given }, body, headers }) => {
      const shape = shapeAt(at);
      const path = shape.path.replace(
        /\{(\w+)\}/g,
        (_, name: string) => encoded((params as Record<string, unknown>)?.[name] ?? "x") || "x",
      );
      if (typeof query !== "object" || query === null) return;
      const text = body ?? (shape.method === "GET" ? undefined : JSON.stringify(given ?? {}));
      const what = `${shape.method} ${path}`;
      judge(await ask(shape.method, `${path}${queryOf(query)}`, text, (stage as Stage).token, headers), what);
    },
  }),
  target({
    name: "worker-polls",
    share: 0.06,
    withinMs: 5_000,
    open: openServer,
    inputs: fc.record({
      poll: spoiltValues(polls, oddJson, ["session", "join", "want", "verdicts", "logs"]),
      headers: oddHeaders,
    }),
    feed: async ({ poll, headers }) => {
      // What may wait is not to wait here.
      const sent = typeof poll === "object" && poll !== null ? { ...poll, waitMs: 0 } : poll;
      judge(await ask("POST", pollPath, JSON.stringify(sent) ?? "null", (stage as Stage).key, headers), "a poll");
    },
  }),
  target({
    name: "worker-client",
    share: 0.004,
    // It is left alone with its server for a moment, and then stops.
    withinMs: 5_000,
    open: async () => {
      const server = createServer((incoming, response) => {
        incoming.resume();
        const text = told.texts.shift() ?? JSON.stringify(joined());
        response.writeHead(told.status, { "content-type": "application/json" });
        response.end(text);
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      hostile = server;
      return async () => {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      };
    },
    inputs: fc.record({
      status: fc.constantFrom(200, 200, 200, 200, 400, 401, 409, 500, 204),
      texts: fc.array(
        fc.oneof(
          {
            weight: 4,
            arbitrary: spoiltValues([...answers, joined()], oddJson, ["session", "runs", "recalls"]).map(
              (value) => JSON.stringify(value) ?? "",
            ),
          },
          {
            weight: 1,
            arbitrary: spoiltTexts(
              [JSON.stringify(joined()), '{"code":"KEY_UNKNOWN","detail":"x"}', "<html>"],
              ["{", "]", "\0"],
            ),
          },
        ),
        { maxLength: 5 },
      ),
    }),
    feed: async ({ status, texts }) => {
      told = { status, texts: [JSON.stringify(joined()), ...texts] };
      const { port } = (hostile as Server).address() as { port: number };
      const own: RemoteWorker = worker({
        ...{ server: `http://127.0.0.1:${port}`, key: keyText(1, makeSecret()), groups: ["default"] },
        ...{ drain: "20ms", sessionTimeout: "1500ms", failFast: true, handleSignals: false, log: silent },
      });
      own.task("settle", () => "done");
      await expectLater(() => Promise.race([own.start(), new Promise((resolve) => setTimeout(resolve, 120))]));
      await expectLater(() => own.stop());
    },
  }),
];

import { createServer, type Server } from "node:http";
import fc from "fast-check";
import { keyText, makeSecret } from "../../../scheduler/src/access/worker-key.ts";
import { type PollAnswer, pollAnswer, pollPath, pollRequest } from "../../../scheduler/src/api/worker-protocol.ts";
import { type RemoteWorker, worker } from "../../../scheduler/src/library/remote-worker.ts";
import { expectLater } from "../expected.ts";
import { goodValue } from "../good-values.ts";
import { oddJson, spoiltTexts, spoiltValues } from "../mutation.ts";
import { ask, encoded, judge, openServer, queryOf, silent, stage } from "../server-stage.ts";
import { target } from "../target.ts";
import { cursors, oddTimes } from "./api-words.ts";
import { requests, shapeAt } from "./contract.ts";

/** Requests of all routes except event streams, whose answers do not end. */
const plain = requests.filter(({ at }) => shapeAt(at).event === undefined);

/** Generates requests; some have a forged cursor, or times that are nearly valid. */
const asked = fc
  .tuple(plain, fc.option(cursors, { freq: 3 }), fc.option(fc.constantFrom(...oddTimes), { freq: 3 }))
  .map(([one, cursor, time]) => {
    const { query } = shapeAt(one.at);
    if (typeof one.query !== "object" || one.query === null || !query) return one;
    const names = Object.keys(query.shape);
    const words = {
      ...(cursor !== null && names.includes("cursor") ? { cursor } : {}),
      ...(time !== null
        ? Object.fromEntries(
            names.filter((name) => /^(since|until|after|from|to)$/.test(name)).map((name) => [name, time]),
          )
        : {}),
    };
    return { ...one, query: { ...one.query, ...words } };
  });

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
      { "if-match": '"1"' },
      { "if-match": "W/x" },
      { "idempotency-key": "k" },
      { "idempotency-key": "é".repeat(3) },
      { "content-type": "text/xml" },
      { "content-encoding": "gzip" },
      { "content-encoding": "br" },
      { "last-event-id": "x" },
      { cookie: "carillon=%zz; a" },
      { origin: "http://evil.example" },
      { "accept-encoding": "gzip;q=x" },
      { "if-match": "*" },
      { traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" },
      { traceparent: "00-x" },
    ),
  },
);

const polls = [0, 1, 2, 3].map((variant) => goodValue(pollRequest, variant));
const answers = [0, 1, 2, 3].map((variant) => goodValue(pollAnswer, variant) as PollAnswer);
const joined = (): PollAnswer => ({
  session: 7,
  nowMs: Date.now(),
  tookMs: 0,
  sureForMs: 5_000,
  runs: [],
  tasks: [],
  recalls: [],
  refused: [],
  lost: [],
});

let hostile: Server | undefined;
let told: { status: number; texts: string[] } = { status: 200, texts: [] };

export const serverTargets = [
  target({
    name: "http-api",
    share: 0.12,
    // Longer than the default, because some requests hash a password and others wait for the store.
    withinMs: 5_000,
    open: () => openServer(),
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
      judge(
        await ask({
          method: shape.method,
          path: `${path}${queryOf(query)}`,
          body: text,
          secret: stage().token,
          headers,
        }),
        what,
      );
    },
  }),
  target({
    name: "worker-polls",
    share: 0.06,
    withinMs: 5_000,
    open: () => openServer(),
    inputs: fc.record({
      poll: spoiltValues(polls, oddJson, ["session", "join", "want", "verdicts", "logs"]),
      headers: oddHeaders,
    }),
    feed: async ({ poll, headers }) => {
      // `waitMs` is 0, because the server would otherwise wait for runs before it answers the poll.
      const sent = typeof poll === "object" && poll !== null ? { ...poll, waitMs: 0 } : poll;
      judge(
        await ask({
          method: "POST",
          path: pollPath,
          body: JSON.stringify(sent) ?? "null",
          secret: stage().key,
          headers,
        }),
        "a poll",
      );
    },
  }),
  target({
    name: "worker-client",
    share: 0.004,
    // Longer than the default, because the worker runs against its server for a moment before it is stopped.
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
        server: `http://127.0.0.1:${port}`,
        key: keyText(1, makeSecret()),
        groups: ["default"],
        drain: "20ms",
        sessionTimeout: "1500ms",
        failFast: true,
        handleSignals: false,
        log: silent,
      });
      own.task("settle", () => "done");
      await expectLater(() => Promise.race([own.start(), new Promise((resolve) => setTimeout(resolve, 120))]));
      await expectLater(() => own.stop());
    },
  }),
];

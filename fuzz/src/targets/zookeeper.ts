import { createServer, type Server, type Socket } from "node:net";
import fc from "fast-check";
import { connect } from "../../../zookeeper/src/client/client.ts";
import { answerChallenge, parseChallenge } from "../../../zookeeper/src/connection/sasl.ts";
import type { Operation } from "../../../zookeeper/src/operations/operations.ts";
import { decodeItems, encodeItems } from "../../../zookeeper/src/recipes/queue/items.ts";
import type { Question } from "../../../zookeeper/src/requests/call.ts";
import { Questions } from "../../../zookeeper/src/requests/questions.ts";
import { Reader } from "../../../zookeeper/src/wire/bytes.ts";
import { FrameReader } from "../../../zookeeper/src/wire/frames.ts";
import { expect, expectLater, hold, same } from "../expected.ts";
import { type Body, bodies, bodyBytes, bodyNames, notification, reply, welcome } from "../frames.ts";
import { spoiltBytes, spoiltTexts } from "../mutation.ts";
import { target } from "../target.ts";

const operations: Operation[] = [
  { type: "create", path: "/a/b" },
  { type: "set", path: "/a", data: "x" },
  { type: "delete", path: "/c" },
  { type: "check", path: "/d", version: 1 },
];
const questions = new Questions("/root");
const asked: Record<Body, Question<unknown>> = {
  create: questions.create("/a/b", "x", {}),
  get: questions.get("/a", false),
  children: questions.children("/a", false),
  exists: questions.exists("/a", false),
  set: questions.set("/a", "x"),
  getAcl: questions.getAcl("/a"),
  none: questions.delete("/a"),
  ephemerals: questions.ephemerals("/"),
  count: questions.descendantCount("/"),
  whoAmI: questions.whoAmI(),
  multi: questions.multi(operations),
  multiFailed: questions.multi(operations),
};

/** Runs `work`. Returns undefined for an error that the client treats as a protocol violation, and rethrows any other error. */
function decoded<T>(work: () => T): { value: T } | undefined {
  try {
    return expect(work);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

const maxBytes = 100_000;

/** Returns the frames in the bytes in hexadecimal form, up to the first invalid frame. */
function framesOf(chunks: readonly Buffer[]): string[] {
  const frames: string[] = [];
  const reader = new FrameReader(maxBytes, {
    frame: (buffer, start, end) => void frames.push(buffer.toString("hex", start, end)),
    oversized: (head, bytes) => void frames.push(`${bytes} bytes, beginning ${head.toString("hex")}`),
  });
  decoded(() => {
    for (const chunk of chunks) reader.push(chunk);
  });
  return frames;
}

const stream = Buffer.concat([
  ...bodyNames.map((name, at) => reply(at + 1, 0, bodies[name])),
  reply(99, -101, () => undefined),
  reply(-2, 0, () => undefined),
  notification(1, "/a/b"),
  welcome(4_000),
]);

const challenges = ['realm="zk-sasl-md5",nonce="abc==",charset=utf-8,algorithm=md5-sess,qop="auth"', "rspauth=0123"];

/** A hostile server's behaviour on one connection: its welcome, and its answers to the requests in order. */
interface Hostility {
  readonly welcome: Buffer;
  readonly replies: readonly {
    readonly body: Buffer;
    readonly code: number;
    readonly event: boolean;
    readonly raw: boolean;
  }[];
  readonly pieces: number;
  readonly end: boolean;
}

class HostileServer {
  readonly #server: Server;
  #plan: Hostility | undefined;
  readonly #sockets = new Set<Socket>();

  constructor() {
    this.#server = createServer((socket) => this.#accept(socket));
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
  }

  get address(): string {
    return `127.0.0.1:${(this.#server.address() as { port: number }).port}`;
  }

  plan(plan: Hostility): void {
    this.#plan = plan;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #accept(socket: Socket): void {
    const plan = this.#plan;
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    // The client may close the connection at any time, for example when it has detected a violation.
    socket.on("error", () => undefined);
    if (!plan) {
      socket.destroy();
      return;
    }
    let greeted = false;
    let at = 0;
    let rest: Buffer = Buffer.alloc(0);
    socket.on("data", (bytes: Buffer) => {
      rest = Buffer.concat([rest, bytes]);
      while (rest.length >= 4 && rest.length >= 4 + rest.readInt32BE(0)) {
        const request = rest.subarray(4, 4 + rest.readInt32BE(0));
        rest = rest.subarray(4 + request.length);
        if (!greeted) {
          greeted = true;
          socket.write(plan.welcome);
          continue;
        }
        const xid = request.readInt32BE(0);
        const next = plan.replies[at++];
        if (!next) {
          if (plan.end) socket.destroy();
          else socket.write(reply(xid, -101, () => undefined));
          continue;
        }
        const answer = next.raw
          ? next.body
          : reply(next.event ? -1 : xid, next.code, (writer) => {
              for (const byte of next.body) writer.bool(byte !== 0);
            });
        // The generated body follows the first 20 bytes of the answer, which are its valid header.
        const whole = next.raw || next.code !== 0 ? answer : Buffer.concat([answer.subarray(0, 20), next.body]);
        for (let from = 0; from < whole.length; from += plan.pieces)
          socket.write(whole.subarray(from, from + plan.pieces));
      }
    });
  }
}

let hostile: HostileServer | undefined;
const patienceMs = 150;

export const zookeeperTargets = [
  target({
    name: "zookeeper-answers",
    share: 3,
    inputs: fc.constantFrom(...bodyNames).chain((name) =>
      fc.record({
        name: fc.constantFrom(name, ...bodyNames),
        bytes: spoiltBytes([bodyBytes(name)]),
      }),
    ),
    feed: ({ name, bytes }) => {
      const reader = new Reader().over(bytes, 0, bytes.length);
      decoded(() => asked[name].read(reader));
      hold(reader.left >= 0, () => `it has read ${-reader.left} bytes that are not there`);
    },
  }),
  target({
    name: "zookeeper-frames",
    share: 2,
    inputs: fc.record({
      bytes: spoiltBytes([stream, stream.subarray(0, 200), welcome(4_000)]),
      cuts: fc.array(fc.nat(2_000), { maxLength: 6 }),
    }),
    feed: ({ bytes, cuts }) => {
      const places = [...new Set([0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])].sort(
        (a, b) => a - b,
      );
      const chunks = places.slice(1).map((end, at) => bytes.subarray(places[at], end));
      same(framesOf(chunks), framesOf([bytes]), "cut otherwise, the frames are others");
    },
  }),
  target({
    name: "zookeeper-data",
    share: 1,
    inputs: fc.record({
      items: spoiltBytes([encodeItems(["one", "", "three"]), encodeItems([])]),
      challenge: spoiltTexts(challenges, ['"', "\\", "=", ",", "nonce=", "qop=auth"]),
    }),
    feed: ({ items, challenge }) => {
      const read = expect(() => decodeItems(items, "/q"))?.value;
      if (read) same(decodeItems(encodeItems(read), "/q"), read, "written and read again, the items are others");
      parseChallenge(challenge);
      expect(() => answerChallenge({ username: "u", password: "p" }, Buffer.from(challenge), "c"));
    },
    grown: { corpus: challenges, most: 100_000, feed: (text) => void parseChallenge(text) },
  }),
  target<Hostility>({
    name: "zookeeper-client",
    share: 0.004,
    // The client stops after its time limit, and then tries for up to a second to close its session.
    withinMs: 3_000,
    inputs: fc.record({
      welcome: fc.oneof(
        { weight: 5, arbitrary: fc.constant(welcome(4_000)) },
        { weight: 1, arbitrary: spoiltBytes([welcome(4_000)], 2) },
      ),
      replies: fc.array(
        fc.record({
          body: fc.oneof(
            spoiltBytes(bodyNames.map(bodyBytes), 2),
            spoiltBytes([notification(3, "/a"), reply(1, 0, bodies.get), stream.subarray(0, 90)], 2),
          ),
          code: fc.constantFrom(0, 0, 0, -101, -110, -112, -4, -127, -999, 5, 2 ** 31 - 1),
          event: fc.integer({ min: 0, max: 5 }).map((one) => one === 0),
          raw: fc.integer({ min: 0, max: 5 }).map((one) => one === 0),
        }),
        { maxLength: 10 },
      ),
      pieces: fc.constantFrom(1, 3, 7, 64, 100_000),
      end: fc.boolean(),
    }),
    open: async () => {
      const server = new HostileServer();
      await server.listen();
      hostile = server;
      return () => server.close();
    },
    feed: async (plan) => {
      const server = hostile as HostileServer;
      server.plan(plan);
      const options = {
        sessionTimeoutMs: 1_000,
        connectTimeoutMs: patienceMs,
        maxReplyBytes: maxBytes,
        random: () => 0.5,
      };
      const opened = await expectLater(() => connect(server.address, options));
      if (!opened) return;
      const zk = opened.value;
      const signal = AbortSignal.timeout(patienceMs);
      const calls: Promise<unknown>[] = [
        zk.get("/a", { signal }),
        zk.children("/a", { signal }),
        zk.exists("/a", { signal }),
        zk.create("/a/b", "x", { signal }),
        zk.getAcl("/a", { signal }),
        zk.multi(operations, { signal }),
        zk.get("/b", { signal }),
        zk.get("/c", { signal }),
      ];
      try {
        await Promise.all(calls.map((call) => expectLater(() => call)));
      } finally {
        await zk.close();
      }
      hold(zk.session.state === "ended", () => `closed, its session is ${zk.session.state}`);
    },
  }),
];

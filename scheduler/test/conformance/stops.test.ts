/**
 * Tests that a stop ends even if one of its steps hangs. These steps hang until the proxy is healed after the stop, so without its own
 * bound the stop would wait for ever. `npm run prove -- timing stops` measures that the bound is `drain` + 500 ms.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Duration, parseDuration } from "../../src/base/duration.ts";
import type { Term } from "../../src/cluster/locks.ts";
import { type Carillon, carillon } from "../../src/library/carillon.ts";
import { RemoteWorker, worker } from "../../src/library/remote-worker.ts";
import { every } from "../../src/schedule/schedule.ts";
import type { CarillonOptions } from "../../src/settings/settings.ts";
import { zooKeeperServer } from "../support/grace-lock-stage.ts";
import { StoreProxy } from "../support/proxy.ts";
import { RemoteStage } from "../support/remote-stage.ts";
import { postgres, redis } from "../support/servers.ts";
import { stopBound } from "../support/stop-bound.ts";
import { type Line, numbers, recordingLog, until } from "../support/store-stage.ts";

const drain = "500ms";
/**
 * Drain time for tests in which two steps hang before the step that reports to the store. That step must have enough time left on a busy
 * machine.
 */
const longDrain = "12s";

/** The steps of a stop in the order of their dependencies; the steps of one inner list run concurrently. */
const phases: readonly (readonly string[])[] = [
  ["the start under way"],
  [
    "elections",
    "the scheduler's services",
    "handing leadership over",
    "the server's answers",
    "alarms",
    "late starts",
    "the export of metrics",
    "changes of tasks",
    "addressing no more runs to this worker",
    "claiming no more runs",
    "handlers and their verdicts",
  ],
  ["locks", "the watch for recalls"],
  ["leaving the cluster"],
  ["the thread that stands in", "the store's signals"],
  ["leaving the coordination service"],
  ["closing the store"],
];

const sql = new pg.Pool({ connectionString: postgres().url, types: numbers, max: 2 });
const schemas: string[] = [];
const towers: Carillon[] = [];
const sockets: Socket[] = [];
let proxy: StoreProxy;
const others: StoreProxy[] = [];

beforeAll(async () => {
  proxy = await StoreProxy.before(postgres().url);
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  proxy.heal();
  for (const other of others.splice(0)) await other.close();
  await Promise.all(towers.splice(0).map((tower) => tower.stop()));
});
afterAll(async () => {
  await proxy.close();
  for (const schema of schemas) await sql.query(`drop schema if exists ${schema} cascade`);
  await sql.end();
});

interface Made {
  tower: Carillon;
  lines: Line[];
  schema: string;
  drain: Duration;
}

function made(options: CarillonOptions = {}): Made {
  const { log, lines } = recordingLog();
  const schema = options.schema ?? `stops_${randomBytes(4).toString("hex")}`;
  schemas.push(schema);
  const given = { drain, ...options };
  const tower = carillon({ store: proxy.url, schema, handleSignals: false, log, ...given });
  towers.push(tower);
  return { tower, lines, schema, drain: given.drain };
}

/** Stops the process. @returns the steps that the stop did not wait for any longer, each once and in the order of `phases` */
async function stops({
  tower,
  lines,
  drain: given,
}: Omit<Made, "tower" | "schema"> & { tower: Pick<Carillon, "stop"> }): Promise<unknown[]> {
  let over = false;
  const beganMs = performance.now();
  const stopped = tower.stop().finally(() => {
    over = true;
    stopBound.look?.(performance.now() - beganMs, parseDuration(given, "drain"));
  });
  await until("the stop to end", () => over);
  await stopped;
  const steps = lines
    .filter(({ message }) => message.startsWith("a step of the stop did not end"))
    .map(({ fields }) => fields.step as string);
  expect(new Set(steps).size, "each is named once").toBe(steps.length);
  const inPhases = steps.map((step) => phases.findIndex((phase) => phase.includes(step)));
  expect(inPhases, `in the order of the stop: ${steps.join(", ")}`).toEqual(inPhases.toSorted((x, y) => x - y));
  expect(inPhases, `known steps: ${steps.join(", ")}`).not.toContain(-1);
  return steps;
}

/** Defines a task whose handler ends when `end` is called; if `listens` is true, it also ends when its signal aborts. */
function held(tower: Pick<Carillon, "task"> | RemoteWorker, listens: boolean) {
  const its = { started: false, aborted: false, end: (): void => undefined };
  const handler = ({ signal }: { signal: AbortSignal }) => {
    its.started = true;
    return new Promise<void>((resolve, reject) => {
      its.end = resolve;
      signal.addEventListener("abort", () => {
        its.aborted = true;
        if (listens) reject(signal.reason);
      });
    });
  };
  if (tower instanceof RemoteWorker) tower.task("held", handler);
  else tower.task("held", {}, handler);
  return its;
}

const faults: ["refused" | "silent", () => void][] = [
  ["refused", () => proxy.cut({ refuse: true })],
  ["silent", () => proxy.hang()],
];

describe.each(faults)("with the store %s", (how, fault) => {
  /**
   * With a silent store, the stop waits until the step's time is over and names the step. A store that refuses connections is not waited
   * for.
   */
  const expectNamed = (steps: unknown[], step: string) => {
    if (how === "silent") expect(steps).toContain(step);
  };

  it("an idle node stops", async () => {
    const one = made();
    one.tower.task("tick", { schedule: every("1h") }, () => undefined);
    await one.tower.start();
    fault();
    expectNamed(await stops(one), "leaving the cluster");
  });

  it("a node with waiting enqueues stops, and rejects them", async () => {
    const one = made();
    one.tower.task("t", {}, () => undefined);
    await one.tower.start();
    await one.tower.enqueue("t");
    fault();
    const pending = Promise.allSettled([1, 2, 3].map((n) => one.tower.enqueue("t", n)));
    expectNamed(await stops(one), "leaving the cluster");
    for (const each of await pending) expect(each).toMatchObject({ status: "rejected", reason: { code: "STOPPED" } });
  });

  it("a node whose verdict cannot be written stops", async () => {
    const one = made();
    const handler = held(one.tower, false);
    await one.tower.start();
    await one.tower.enqueue("held");
    await until("it runs", () => handler.started);
    fault();
    handler.end();
    const steps = await stops(one);
    expectNamed(steps, "leaving the cluster");
    // The worker logs that the store lacks verdicts. If the worker got no processor time, the stop has continued without it, and names the
    // step instead.
    expect([...one.lines.map(({ message }) => message), ...steps]).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^(stopped before the store had all verdicts|handlers and their verdicts)/),
      ]),
    );
  });

  it("a node that has not started yet stops", async () => {
    const one = made();
    fault();
    const started = one.tower.start().catch((error) => error);
    // The start waits for the store.
    await until("it asks", () => proxy.connections > 0);
    expectNamed(await stops(one), "the start under way");
    expect(await started).toBeInstanceOf(Error);
  });

  it("a process that only holds a lock stops, and so does one that waits for it", async () => {
    const options = { scheduler: false, worker: false };
    const holder = made(options);
    const waiter = made({ ...options, schema: holder.schema });
    await holder.tower.lock("one").acquire();
    const waits = waiter.tower
      .lock("one")
      .acquire()
      .catch((error) => error);
    await waiter.tower.open();
    fault();
    for (const steps of await Promise.all([stops(holder), stops(waiter)])) expectNamed(steps, "locks");
    expect(await waits).toMatchObject({ code: "STOPPED" });
  });
});

it("a node stops at any moment after the store becomes unreachable, whatever it is doing", async () => {
  for (let round = 0; round < 12; round++) {
    const one = made({ drain: "100ms" });
    one.tower.task("t", {}, () => undefined);
    one.tower.task("after", { after: "t" }, () => undefined);
    one.tower.task("serial", { overlap: "queue" }, () => undefined);
    await one.tower.start();
    await one.tower.enqueue("t");
    const enqueued: Promise<unknown>[] = [];
    const acts = [
      () => proxy.cut({ refuse: true }),
      ...["t", "serial", "serial"].map((task) => () => void enqueued.push(one.tower.enqueue(task))),
    ];
    for (const act of acts.sort(() => Math.random() - 0.5)) act();
    const told = Promise.allSettled(enqueued);
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 60));
    await stops(one);
    await told;
    proxy.heal();
  }
});

it("a handler that ignores its signal is abandoned, and its run goes to another worker", async () => {
  const one = made();
  const handler = held(one.tower, false);
  await one.tower.start();
  const { runId } = await one.tower.enqueue("held");
  await until("it runs", () => handler.started);
  const steps = await stops(one);
  expect(handler.aborted).toBe(true);
  // The stop ends the session in the store, so that the next worker need not wait for its timeout, unless the stop has named this step as
  // hung.
  const { rows } = await sql.query(`select ended_why from ${one.schema}.session`);
  if (!steps.includes("leaving the cluster")) expect(rows).toEqual([{ ended_why: "stopped" }]);
  const next = made({ schema: one.schema });
  const again = held(next.tower, true);
  await next.tower.start();
  await until("it runs again", () => again.started);
  handler.end();
  again.end();
  const { store } = await next.tower.open();
  await until("it has ended", async () => (await store.runs.find(runId)).endedMs !== null);
});

it("a process whose onLead ignores its signal stops, and the log names it", async () => {
  const one = made();
  const terms: Term[] = [];
  one.tower.elect("exporter", { onLead: (term) => new Promise(() => void terms.push(term)) });
  await until("it leads", () => terms.length > 0);
  await stops(one);
  expect(terms.map(({ leads, signal }) => [leads, signal.aborted])).toEqual([[false, true]]);
  expect(one.lines.filter(({ message }) => message.startsWith("onLead did not end in time"))).toMatchObject([
    { level: "warn", fields: { election: "exporter", fence: String(terms[0]?.fence) } },
  ]);
});

it("handlers have the whole `drain` time to end", async () => {
  const one = made({ drain: "60s" });
  const handler = held(one.tower, true);
  await one.tower.start();
  const { runId } = await one.tower.enqueue("held");
  await until("it runs", () => handler.started);
  const stopped = one.tower.stop();
  await until("it leads no more", () => one.tower.term === null);
  handler.end();
  await stopped;
  expect(handler.aborted).toBe(false);
  const { rows } = await sql.query(`select outcome from ${one.schema}.run_history where id = $1`, [runId]);
  expect(rows).toEqual([{ outcome: 0 }]);
});

it("leadership is handed over before handlers have ended", async () => {
  const one = made({ drain: "120s" });
  const handler = held(one.tower, true);
  await one.tower.start();
  await until("it leads", () => one.tower.term !== null);
  await one.tower.enqueue("held");
  await until("it runs", () => handler.started);
  const next = made({ schema: one.schema, worker: false });
  await next.tower.start();
  const stopped = one.tower.stop();
  await until("the other leads", () => next.tower.term !== null);
  expect(one.tower.term).toBeNull();
  handler.end();
  await stopped;
  expect(handler.aborted).toBe(false);
});

describe.each([
  ["ZooKeeper", () => `tcp://${zooKeeperServer()}`, (via: URL, id: string) => `zookeeper://${via.host}/${id}`],
  ["Redis", () => redis().url, (via: URL, id: string) => `redis://${via.host}?prefix=${id}`],
])("with %s", (_, target, url) => {
  it.each(["refused", "silent"])("%s, a node that leads and holds a lock stops", async (how) => {
    const service = await StoreProxy.before(target());
    others.push(service);
    const id = `stops-${randomBytes(4).toString("hex")}`;
    const one = made({ coordination: url(new URL(service.url), id), drain: longDrain });
    one.tower.task("t", {}, () => undefined);
    await one.tower.start();
    await one.tower.lock("one").acquire();
    await until("it leads", () => one.tower.term !== null);
    if (how === "refused") service.cut({ refuse: true });
    else service.hang();
    await stops(one);
    // The store was reachable, so the node has ended its session there.
    const { rows } = await sql.query(`select from ${one.schema}.session where ended_ms is null`);
    expect(rows).toHaveLength(0);
  });
});

it("a server stops despite clients that pipeline and read nothing, follow events, and wait", async () => {
  const one = made({ listen: "127.0.0.1:0" });
  await one.tower.start();
  const [host = "", port] = String(one.tower.listening).split(":");
  const connected = async (text: string) => {
    const socket = connect({ host, port: Number(port) }).pause();
    socket.on("error", () => undefined);
    sockets.push(socket);
    await once(socket, "connect");
    socket.write(text);
  };
  const page = "GET /v1/openapi.json HTTP/1.1\r\nhost: tower\r\n\r\n";
  await connected(page.repeat(2_000));
  await connected("GET /v1/events HTTP/1.1\r\nhost: tower\r\n\r\n");
  await connected("");
  // The stop must also end if requests to the server wait for the store.
  proxy.hang();
  await connected("GET /v1/tasks HTTP/1.1\r\nhost: tower\r\n\r\n");
  expect(await stops(one)).toContain("leaving the cluster");
  await until("all are closed", () => {
    for (const socket of sockets) socket.resume();
    return sockets.every((socket) => socket.destroyed || socket.readableEnded);
  });
});

describe.each(["refused", "silent"])("a remote worker whose server is %s", (how) => {
  const stage = new RemoteStage();
  beforeAll(async () => {
    await stage.serve();
    await stage.task("held");
  });
  afterAll(() => stage.close());

  it.each(["does nothing", "cannot deliver a verdict", "has a handler that ignores its signal", "has not started"])(
    "stops: it %s",
    async (what) => {
      const line = await StoreProxy.before(stage.urlOf());
      others.push(line);
      const { log, lines } = recordingLog();
      const name = `far-${randomBytes(4).toString("hex")}`;
      const one = worker({ server: line.url, key: await stage.key(name), name, drain, handleSignals: false, log });
      const handler = held(one, false);
      const fault = () => (how === "refused" ? line.cut({ refuse: true }) : line.hang());
      if (what === "has not started") fault();
      const start = Promise.allSettled([one.start()]);
      if (what === "has not started") await until("it asks", () => line.connections > 0);
      else {
        await start;
        if (what !== "does nothing") {
          await stage.server.enqueue("held");
          await until("it runs", () => handler.started);
        }
        fault();
        if (what === "cannot deliver a verdict") handler.end();
      }
      const steps = await stops({ tower: one, lines, drain });
      if (how === "silent" && what !== "has not started") expect(steps).toContain("leaving the cluster");
      handler.end();
      await start;
    },
  );
});

/**
 * Many members in one process, each with its own session or connection: scheduler nodes with full membership but without the engine, and
 * registered workers. The process executes orders of the measuring process and reports when each is done.
 */
import { setMaxListeners } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import {
  joinCluster,
  openPostgres,
  openRedisProvider,
  openZooKeeper,
  StoreClock,
  silentLog,
  systemClock,
} from "../measure/internals.ts";

export interface Order {
  driver: "zookeeper" | "redis";
  coordination: string;
  store: string;
  schema: string;
  /** The prefix of the names of this process's members. */
  crowd: string;
  sessionTimeoutMs: number;
  beatMs: number;
}

export type Change = "node joins" | "node leaves" | "worker joins" | "worker leaves" | "leader resigns";
export type Asked = { change: Change; times: number } | { change: "leads" };
export type Told = { done: true; leads: number } | { failed: string };

const order = JSON.parse(process.argv[2] ?? "{}") as Order;
const { sessionTimeoutMs, beatMs } = order;
const atOnce = 25;
const store = await openPostgres({ url: order.store, schema: order.schema, connectionsMax: 8 });
const { clusterId } = await store.sessions.cluster();
const storeClock = new StoreClock(systemClock);
const none = new AbortController();
setMaxListeners(0, none.signal); // Each member adds its own listener.
let made = 0;

type MembershipProvider = Awaited<ReturnType<typeof openRedisProvider>>;
type Membership = Awaited<ReturnType<typeof joinCluster>>;
const nodes: { membership: Membership; provider: MembershipProvider }[] = [];
const workers: { sessionId: number; provider: MembershipProvider }[] = [];

const openProvider = (): Promise<MembershipProvider> =>
  (order.driver === "zookeeper" ? openZooKeeper : openRedisProvider)({
    url: order.coordination,
    clusterId,
    sessionTimeoutMs,
    clock: systemClock,
    signal: none.signal,
    failFast: true,
    log: (line: string) => console.error(line),
  });

const identity = (role: "node" | "worker") => ({
  node: `${order.crowd}-${++made}`,
  role,
  host: "bench",
  pid: process.pid,
  version: "0",
  timeoutMs: sessionTimeoutMs,
});

async function nodeJoins(): Promise<void> {
  const provider = await openProvider();
  const options = { store, provider, clock: systemClock, storeClock, beatMs, shownBeatMs: beatMs, log: silentLog };
  const membership = await joinCluster({ ...options, identity: identity("node") });
  nodes.push({ membership, provider });
  await shown(provider);
}

/**
 * Registers a worker and marks its row as relying on the coordination service. A worker in its own process sends a heartbeat to the store
 * every 5 s; this worker sends a single heartbeat.
 */
async function workerJoins(): Promise<void> {
  const provider = await openProvider();
  const who = identity("worker");
  const opened = await store.sessions.open(who, storeClock.now());
  if (!("sessionId" in opened)) throw new Error(`the name ${who.node} is taken`);
  const { sessionId } = opened;
  provider.announce({ ...who, sessionId, groups: ["default"], labels: {}, capacity: 1 });
  await shown(provider);
  await store.sessions.beat(sessionId, storeClock.now(), { witnessed: true });
  workers.push({ sessionId, provider });
}

async function shown(provider: MembershipProvider): Promise<void> {
  for (const began = performance.now(); provider.shownUntil() === 0; await pause(20))
    if (performance.now() - began > 60_000) throw new Error("a member is not shown");
}

async function workerLeaves(): Promise<void> {
  const one = workers.pop();
  if (!one) throw new Error("no worker is left");
  await store.sessions.end(one.sessionId, null, storeClock.now(), "left");
  await one.provider.leave();
}

/** Removes a node that does not lead, because a change of leaders is measured separately. */
async function nodeLeaves(): Promise<void> {
  const one = nodes.findLast(({ membership }) => membership.term() === null);
  if (!one) throw new Error("no follower is left");
  nodes.splice(nodes.indexOf(one), 1);
  await one.membership.leave("left");
}

const leads = () => nodes.filter(({ membership }) => membership.term() !== null);

async function change({ change, times }: Extract<Asked, { times: number }>): Promise<void> {
  if (change === "leader resigns") return leads()[0]?.provider.stepDown();
  const does = {
    "node joins": nodeJoins,
    "node leaves": nodeLeaves,
    "worker joins": workerJoins,
    "worker leaves": workerLeaves,
  };
  for (let left = times; left > 0; left -= atOnce)
    await Promise.all(Array.from({ length: Math.min(left, atOnce) }, () => does[change]()));
}

const tell = (told: Told) => process.send?.(told);
process.on("message", (asked: Asked) => {
  const done = asked.change === "leads" ? Promise.resolve() : change(asked);
  done.then(
    () => tell({ done: true, leads: leads().length }),
    (error: unknown) => tell({ failed: String(error) }),
  );
});
process.on("disconnect", () => process.exit()); // The parent process measures; when it has gone, this process exits too.
tell({ done: true, leads: 0 });

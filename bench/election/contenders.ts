/**
 * Many contenders for one lock, each with a session of its own, in one process. On the command `go` all request the lock, and each releases
 * the lock as soon as it is granted. Then the process prints the results as one line of JSON.
 */
import { createInterface } from "node:readline";
import { connect, Mutex, type Session, type ZooKeeper } from "@carillon/zookeeper";

export interface Contention {
  url: string;
  path: string;
  count: number;
}

export interface Contended {
  /** One entry for each time that a contender held the lock, with its begin and end on the monotonic clock. */
  holds: { fence: string; fromNs: string; toNs: string }[];
  /** Paths of the nodes whose deletion woke a waiter; a path appears once for each wake-up. */
  woke: string[];
}

const connectAtOnce = 50;
const { url, path, count } = JSON.parse(process.argv[2] ?? "{}") as Contention;
const contended: Contended = { holds: [], woke: [] };
const clients: ZooKeeper[] = [];

async function contend(zk: ZooKeeper): Promise<void> {
  const held = await new Mutex(counting(zk), path).acquire();
  const fromNs = process.hrtime.bigint();
  const released = held.release();
  contended.holds.push({ fence: String(held.fence), fromNs: String(fromNs), toNs: String(process.hrtime.bigint()) });
  await released;
}

/**
 * Wraps `zk` so that its sessions record in `contended.woke` each watched node that is deleted, except nodes that this client created.
 */
function counting(zk: ZooKeeper): ZooKeeper {
  const own = new Set<string>();
  const over = new Map<Session, Session>();
  const session = (real: Session): Session => {
    const known = over.get(real);
    if (known) return known;
    const counted: Partial<Session> = {
      create: async (...args) => {
        const created = await real.create(...args);
        own.add(created.path);
        return created;
      },
      get: (at, { watch, ...options } = {}) => {
        if (!watch) return real.get(at, options);
        return real.get(at, {
          ...options,
          watch: (event) => {
            if (event.type === "deleted" && !own.has(at)) contended.woke.push(at);
            watch(event);
          },
        });
      },
    };
    const face = wrapped(real, counted);
    over.set(real, face);
    return face;
  };
  return wrapped(zk, { established: async (signal) => session(await zk.established(signal)) });
}

/** `real` with some of its methods replaced. */
function wrapped<T extends object>(real: T, replaced: Partial<T>): T {
  return new Proxy(real, {
    get: (_, name) => {
      if (name in replaced) return replaced[name as keyof T];
      const value = Reflect.get(real, name, real);
      return typeof value === "function" ? value.bind(real) : value;
    },
  });
}

for (let first = 0; first < count; first += connectAtOnce) {
  const some = Math.min(connectAtOnce, count - first);
  const connected = await Promise.all(
    Array.from({ length: some }, () => connect(url, { sessionTimeoutMs: 60_000, connectTimeoutMs: 120_000 })),
  );
  clients.push(...connected);
}
const lines = createInterface({ input: process.stdin });
lines.on("close", () => process.exit());
lines.once("line", async () => {
  await Promise.all(clients.map(contend));
  process.stdout.write(`${JSON.stringify(contended)}\n`);
  await Promise.all(clients.map((zk) => zk.close()));
  process.exit();
});
process.stdout.write("ready\n");

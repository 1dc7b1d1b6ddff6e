/**
 * Two machines share nightly work of five batches that take a while; each night one machine executes them. In the second night
 * the machine at work is killed. The other machine waits for the grace, in case the first is only briefly disconnected; then it
 * takes the lock, reads which batch was the last one done, and executes the remaining batches. The third night is undisturbed
 * again.
 *
 *   node examples/dist/zookeeper/nightly.js HOST:PORT,HOST:PORT,… [PATH]
 */
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { connect, graceLock, isZooKeeperError } from "@carillon/zookeeper";

const batches = 5;
const graceMs = 1_000;

/** A message of a machine: a batch is done (`batch` is set), or the whole night is done. */
interface Told {
  machine: string;
  night: number;
  batch?: number;
  fence: string;
}

/** The program of one machine. A message starts the night; a real machine would use the clock. */
async function machine(name: string, hosts: string, path: string): Promise<void> {
  let tonight = 0;
  const client = await connect(hosts, { sessionTimeoutMs: 2_000 });
  const lock = graceLock(client, path, {
    owner: name,
    graceMs,
    // Called when this machine has taken the lock from a vanished holder, whose work may be unfinished.
    onTakenOver: () => void work(),
    onLost: (why) => console.log(`${name}: ${why.message}`),
  });

  async function work(): Promise<void> {
    await using use = await lock.tryLock().catch((error: unknown) => {
      if (isZooKeeperError(error, "CLOSED")) return undefined; // The client is closed, because the program ends.
      throw error;
    });
    if (!use) return; // The other machine has the lock and does the work.
    let from = 1;
    const cutOff = use.takenOver?.use;
    if (use.takenOver) {
      console.log(`${name}: took over from ${use.takenOver.owner}`);
      if (!cutOff || cutOff.endedMs !== null) return; // The vanished holder had not started, or had finished.
      const [night = 0, batch = 0] = (cutOff.note ?? "").split(" ").map(Number);
      if (night === tonight) from = batch + 1;
    }
    for (let batch = from; batch <= batches; batch++) {
      // Real work would use use.signal, and pass use.fence to a store that rejects older fences.
      await new Promise((resolve) => setTimeout(resolve, 60));
      if (use.signal.aborted) return;
      await use.note(`${tonight} ${batch}`);
      process.send?.({ machine: name, night: tonight, batch, fence: String(use.fence) } satisfies Told);
    }
    await use.end();
    process.send?.({ machine: name, night: tonight, fence: String(use.fence) } satisfies Told);
  }

  process.on("message", (night: number) => {
    tonight = night;
    void work();
  });
  process.on("disconnect", () => void lock.close().then(() => client.close()));
  process.send?.("awake");
}

async function night(): Promise<void> {
  const [hosts = "127.0.0.1:2181", path = "/nightly"] = process.argv.slice(2);
  const machines = new Map<string, ChildProcess>();
  const told: Told[] = [];
  let wake: () => void = () => undefined;
  for (const name of ["anna", "bert"]) {
    const child = fork(fileURLToPath(import.meta.url), ["machine", name, hosts, path]);
    machines.set(name, child);
    await new Promise((resolve) => child.once("message", resolve));
    child.on("message", (message) => {
      told.push(message as Told);
      wake();
    });
  }
  const until = async (happened: (one: Told) => boolean): Promise<Told> => {
    for (;;) {
      const found = told.find(happened);
      if (found) return found;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };

  for (const night of [1, 2, 3]) {
    for (const child of machines.values()) child.send(night);
    if (night === 2) {
      const { machine } = await until((one) => one.night === 2 && one.batch === 2);
      console.log(`kill -9 ${machine}, in the middle of night 2`);
      machines.get(machine)?.kill("SIGKILL");
      machines.delete(machine);
    }
    const { machine, fence } = await until((one) => one.night === night && one.batch === undefined);
    const done = told.filter((one) => one.night === night && one.batch !== undefined);
    const missing = batches - new Set(done.map(({ batch }) => batch)).size;
    console.log(`night ${night}: finished by ${machine}, fence ${fence}, ${missing} of ${batches} batches missing`);
  }
  for (const child of machines.values()) child.disconnect();
}

if (process.argv[2] === "machine") await machine(...(process.argv.slice(3) as [string, string, string]));
else await night();

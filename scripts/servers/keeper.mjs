/**
 * Starts the throw-away servers that its argument names, for the process that started this keeper, and prints their URLs and
 * their folder as one line of JSON. When the keeper's standard input ends, it stops the servers and removes the folder. Only the
 * other process has the other end of this pipe, so the input ends in any case when that process ends (normal end, interruption,
 * crash, kill -9). The keeper runs in its own session, so Ctrl-C reaches the tests but not the servers.
 */
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { say, Trouble } from "../ready.mjs";
import { kinds } from "../servers.mjs";
import { serverUser } from "./server.mjs";

/** @typedef {{ servers: { name: string, place: import("./server.mjs").Place }[], durable: boolean }} Order */

const patienceMs = 5_000;

/** @type {Order} */
const order = JSON.parse(process.argv[2] ?? "{}");
const folder = mkdtempSync(join(tmpdir(), "carillon-servers-"));

/** @type {import("./server.mjs").Started[]} */
const started = [];
/** @type {Promise<void> | undefined} */
let stopping;

/** @param {import("node:child_process").ChildProcess} child @param {NodeJS.Signals[]} signals */
async function end(child, signals) {
  const gone = new Promise((resolve) => child.once("exit", resolve));
  for (const signal of signals) {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill(signal);
    const late = new Promise((resolve) => setTimeout(resolve, patienceMs, "late").unref());
    if ((await Promise.race([gone, late])) !== "late") return;
  }
}

function stop() {
  stopping ??= (async () => {
    await starting;
    await Promise.all(started.flatMap(({ children, signals }) => children.map((child) => end(child, signals))));
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    process.exit();
  })();
  return stopping;
}

async function start() {
  chmodSync(folder, 0o711); // the servers' user can pass through the folder, but read only its own files
  const user = serverUser();
  /** @type {Record<string, string>} */
  const urls = {};
  const results = await Promise.allSettled(
    order.servers.map(async ({ name, place }) => {
      const kind = kinds[name];
      if (!kind) throw new Trouble(`there is no server called ${name}`);
      const home = join(folder, name);
      mkdirSync(home, { mode: 0o711 });
      const server = await kind.start(place, home, { user, durable: order.durable });
      started.push(server);
      urls[name] = server.url;
      for (const child of server.children) {
        child.on("exit", (code, signal) => {
          if (!stopping) say(`✗ ${kind.title} (${name}) ended by itself with ${code ?? signal}`);
        });
      }
    }),
  );
  for (const result of results) if (result.status === "rejected") throw result.reason;
  process.stdout.write(`${JSON.stringify({ urls, folder })}\n`);
}

for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"])) process.on(signal, stop);
process.stdin.on("end", stop).on("error", stop).resume();
// If the other process has ended, nothing reads these streams, and a write fails.
for (const output of [process.stdout, process.stderr]) output.on("error", stop);
process.on("uncaughtException", (error) => {
  process.exitCode = 1;
  say(String(error.stack));
  void stop();
});

/** Never rejects, so that a stop during the start can wait for it and then stops all servers that were started. */
const starting = start().catch((error) => {
  const problem = error instanceof Trouble ? error.message : String(error?.stack ?? error);
  process.stdout.write(`${JSON.stringify({ problem })}\n`);
});

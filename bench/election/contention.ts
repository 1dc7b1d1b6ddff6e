/** Many contenders for one lock, each with its own session: how many sessions does a release wake, how many requests is an acquisition? */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Mutex, type ZooKeeper } from "@carillon/zookeeper";
import type { Figures } from "../measure/figures.ts";
import { counters, sum } from "../zookeeper/server.ts";
import type { Contended, Contention } from "./contenders.ts";

const program = fileURLToPath(new URL("./contenders.js", import.meta.url));
const processes = 2;
const patienceMs = 300_000;

/**
 * Holds the lock until all contenders wait for it, then releases it; each contender releases the lock as soon as it is granted.
 * @param faults receives a text for each fault
 */
export async function contention(zk: ZooKeeper, url: string, count: number, faults: string[]): Promise<Figures> {
  const path = `/bench-${process.pid}-lock-${count}`;
  const problem = (what: string) => faults.push(`${count} contenders: ${what}`);
  const mutex = new Mutex(zk, path);
  const held = await mutex.acquire();
  const shares = Array.from({ length: processes }, (_, i) => Math.floor((count + i) / processes));
  const groups = shares.map((share) => start({ url, path, count: share }));
  try {
    await Promise.all(groups.map(({ line }) => line()));
    const packets = async () => sum(await counters(url), "packets_received");
    // Two readings in a row show how many requests a reading itself adds.
    const [quiet, before] = [await packets(), await packets()];
    for (const { go } of groups) go();
    let looks = 0;
    for (let there = 0; there < count + 1; looks++) {
      await pause(200);
      there = (await zk.exists(path))?.childCount ?? 0;
    }
    const began = performance.now();
    await held.release();
    const told = await Promise.all(groups.map(async ({ line }) => JSON.parse(await line()) as Contended));
    const seconds = (performance.now() - began) / 1_000;
    const asked = (await packets()) - before - (before - quiet) - looks - 1;
    const holds = told.flatMap((one) => one.holds).toSorted((a, b) => Number(BigInt(a.fromNs) - BigInt(b.fromNs)));
    if (holds.length !== count) problem(`${holds.length} holds`);
    let doubled = 0;
    holds.forEach(({ fence, fromNs }, i) => {
      const previous = holds[i - 1];
      if (!previous) return;
      if (BigInt(fromNs) < BigInt(previous.toNs)) doubled++;
      if (BigInt(fence) <= BigInt(previous.fence)) problem(`fence ${fence} after ${previous.fence}`);
    });
    if (doubled > 0) problem(`${doubled} times two had it at once`);
    const woken = new Map<string, number>();
    for (const node of told.flatMap(({ woke }) => woke)) woken.set(node, (woken.get(node) ?? 0) + 1);
    // Every release except the last wakes a waiter. The bench itself releases once and each contender once, so `count` releases wake a
    // waiter.
    if (woken.size !== count) problem(`${woken.size} releases woke someone`);
    return {
      doubled,
      waiters_woken_per_release: [...woken.values()].reduce((a, b) => a + b, 0) / count,
      waiters_woken_max: Math.max(...woken.values()),
      requests_per_acquisition: asked / count,
      acquisitions_per_s: count / seconds,
    };
  } finally {
    for (const { child } of groups) child.kill("SIGKILL");
  }
}

function start(order: Contention) {
  const child = spawn(process.execPath, [program, JSON.stringify(order)], { stdio: ["pipe", "pipe", "inherit"] });
  child.stdin.on("error", () => undefined); // A write fails only when the process has ended; then its output ends too.
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    child,
    go: () => child.stdin.write("go\n"),
    line: async (): Promise<string> => {
      const late = setTimeout(() => child.kill("SIGKILL"), patienceMs);
      const { value, done } = await lines.next();
      clearTimeout(late);
      if (done) throw new Error("the contenders ended before they said what was asked");
      return value;
    },
  };
}

/**
 * Feeds whatever reads what others wrote with good inputs spoilt: docs/fuzzing.md.
 *
 *   npm run fuzz -- [TARGET…] [--inputs N] [--seed S] [--processes P] [--json]
 *   npm run fuzz -- TARGET --seed S --path P        one input again, as a failure told it
 */
import { type ChildProcess, fork } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { mix } from "../../scheduler/src/random.ts";
import { type Fed, type Found, replay } from "./campaign.ts";
import type { Order, Said } from "./feeder.ts";
import { waitedMs } from "./processor.ts";
import type { Target } from "./target.ts";
import { targets } from "./targets.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    inputs: { type: "string", default: "1000000" },
    seed: { type: "string" },
    path: { type: "string" },
    processes: { type: "string", default: String(availableParallelism()) },
    json: { type: "boolean", default: false },
  },
});
/** Silent for so long, and not for want of a processor, a process hangs: an input that takes over a second is told by itself. */
const silentMs = 45_000;
const seed = Number(values.seed ?? Date.now() % 1_000_000_000);
const inputs = Number(values.inputs);
const say = (line: string) => {
  if (!values.json) process.stdout.write(`${line}\n`);
};

const strangers = positionals.filter((name) => !targets.some((target) => target.name === name));
if (strangers.length > 0)
  throw new Error(`there is no target ${strangers}: ${targets.map(({ name }) => name).join(", ")}`);
const chosen = positionals.length === 0 ? targets : targets.filter(({ name }) => positionals.includes(name));

if (values.path !== undefined) await again(chosen[0] as Target, values.path);
else await campaign();

async function again(target: Target, path: string): Promise<void> {
  const found = await replay(target, seed, path, 1);
  if (found) tell(found);
  else say("it holds now");
  process.stdout.write(`${JSON.stringify({ targets: 1, inputs: 1, found: found ? 1 : 0, seed, path })}\n`);
  process.exit(found ? 1 : 0);
}

async function campaign(): Promise<void> {
  say(`${inputs} inputs, seed ${seed}`);
  const whole = chosen.reduce((sum, { share }) => sum + share, 0);
  const queue = chosen
    .map((target) => ({ target, inputs: Math.ceil((inputs * target.share) / whole) }))
    .toSorted((a, b) => b.inputs - a.inputs);
  const fed: Fed[] = [];
  const began = performance.now();
  const work = async () => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      const one = await feedBeside({
        target: next.target.name,
        seed: mix(seed, nameNumber(next.target.name)) >>> 1,
        inputs: next.inputs,
      });
      fed.push(one);
      const { target, inputs: count, ms, slowestMs, waitedMs: waited, found } = one;
      say(
        `${found.length === 0 ? "✓" : "✗"} ${target.padEnd(20)} ${String(count).padStart(8)} inputs ${(ms / 1_000).toFixed(1).padStart(7)} s, the slowest ${Math.round(slowestMs)} ms, without a processor for ${(waited / 1_000).toFixed(1)} s`,
      );
      for (const bug of found) tell(bug);
    }
  };
  await Promise.all(Array.from({ length: Math.min(Number(values.processes), queue.length) }, work));
  const found = fed.flatMap((one) => one.found);
  const line = {
    ...{ targets: fed.length, inputs: fed.reduce((sum, one) => sum + one.inputs, 0), found: found.length, seed },
    ...{
      seconds: Math.round((performance.now() - began) / 1_000),
      slowest_ms: Math.round(Math.max(0, ...fed.map((one) => one.slowestMs))),
      waited_s: Math.round(fed.reduce((sum, one) => sum + one.waitedMs, 0) / 1_000),
    },
    inputs_per_target: Object.fromEntries(fed.map((one) => [one.target, one.inputs])),
    ...(found.length > 0 ? { bugs: found } : {}),
  };
  process.stdout.write(`${JSON.stringify(line)}\n`);
  process.exit(found.length > 0 ? 1 : 0);
}

function tell({ target, what, input, command }: Found): void {
  say(`\n${target}: ${what}\n  input: ${input}\n  again: ${command}\n`);
}

/** In a process of its own, which is ended when it falls silent. */
async function feedBeside(order: Order): Promise<Fed> {
  const { fed, hung, trouble } = await watch(order);
  if (fed) return fed;
  const base = { target: order.target, inputs: 0, ms: 0, slowestMs: silentMs, waitedMs: 0 };
  const bug = (what: string, input: string): Fed => ({
    ...base,
    found: [{ target: order.target, what, input, command: `npm run fuzz -- ${order.target} --seed ${order.seed}` }],
  });
  if (hung === undefined) return bug(trouble ?? "the process ended", "");
  // Again, a line for each input: the last one is the one.
  const trace = join(tmpdir(), `carillon-fuzz-${process.pid}-${order.target}`);
  try {
    await watch({ ...order, trace });
    return bug(trouble ?? "it hangs", existsSync(trace) ? readFileSync(trace, "utf8") : "none was fed");
  } finally {
    rmSync(trace, { force: true });
  }
}

function watch(order: Order): Promise<{ fed?: Fed; hung?: number; trouble?: string }> {
  return new Promise((resolve) => {
    const child: ChildProcess = fork(new URL("./feeder.js", import.meta.url), {
      stdio: ["ignore", 2, 2, "ipc"],
      execArgv: ["--max-old-space-size=1024"],
    });
    let part = order.seed;
    let late: NodeJS.Timeout;
    const done = (answer: { fed?: Fed; hung?: number; trouble?: string }) => {
      clearTimeout(late);
      child.removeAllListeners();
      child.kill("SIGKILL");
      resolve(answer);
    };
    const silentFor = (ms: number) => {
      const waited = waitedMs(child.pid);
      clearTimeout(late);
      late = setTimeout(() => {
        const without = waitedMs(child.pid) - waited;
        // A moment's wait is no reason to give it another.
        if (without > 1_000) silentFor(without);
        else done({ hung: part, trouble: `it hangs: nothing for ${silentMs} ms` });
      }, ms);
    };
    const alive = () => silentFor(silentMs);
    child.on("message", (said: Said) => {
      if ("fed" in said) return done({ fed: said.fed });
      if ("failed" in said) return done({ trouble: said.failed });
      part = said.part;
      alive();
    });
    child.on("exit", (code, signal) => done({ hung: part, trouble: `the process ended with ${signal ?? code}` }));
    alive();
    child.send(order);
  });
}

/** The same inputs for a target whichever others are fed. */
function nameNumber(name: string): number {
  return [...name].reduce((sum, letter) => mix(sum, letter.charCodeAt(0)), 0);
}

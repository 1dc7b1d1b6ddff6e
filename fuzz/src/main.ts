/**
 * Feeds mutated valid inputs to all code that reads input from outside: docs/contributing/fuzzing.md.
 *
 *   npm run prove -- fuzz [TARGET…] [--inputs N] [--seed S] [--processes P] [--json]
 *   npm run prove -- fuzz TARGET --seed S --path P  feeds one input again, with the options that a failure printed
 *
 * The closing line lists the number of inputs fed. If a target was cut short (a bug was found, an input hung, or the run was interrupted by
 * SIGINT or SIGTERM), the line shows how many inputs the target was fed, and the run does not pass.
 */
import { type ChildProcess, fork } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Fed, replay } from "./campaign.ts";
import { closing, lineOf } from "./closing.ts";
import type { Order, Said } from "./feeder.ts";
import { type Found, told } from "./found.ts";
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
/**
 * A feeding process that sends no message for this many ms of available CPU time counts as hung. A shorter hang, of more than a second, is
 * reported by the process itself.
 */
const silentMs = 45_000;
const seed = Number(values.seed ?? Date.now() % 1_000_000_000);
const [inputs, processes] = [Number(values.inputs), Number(values.processes)];
for (const [option, value] of Object.entries({ inputs, processes, seed }))
  if (!Number.isSafeInteger(value) || value < (option === "seed" ? 0 : 1))
    throw new Error(
      `--${option} is a whole number${option === "seed" ? "" : " above 0"}, not ${values[option as keyof typeof values]}`,
    );
/** Aborted when the run is interrupted; the signal's name is the reason. */
const interrupted = new AbortController();
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
  const found = await replay(target, seed, path);
  if (found) tell(found);
  else say("it holds now");
  process.stdout.write(`${JSON.stringify({ targets: 1, inputs: 1, found: found ? 1 : 0, seed, path })}\n`);
  process.exit(found ? 1 : 0);
}

async function campaign(): Promise<void> {
  say(`${inputs} inputs, seed ${seed}`);
  const whole = chosen.reduce((sum, { share }) => sum + share, 0);
  const asked: Order[] = chosen
    .map(({ name, share }) => ({ target: name, seed, inputs: Math.ceil((inputs * share) / whole) }))
    .toSorted((a, b) => b.inputs - a.inputs);
  const queue = [...asked];
  const fed: Fed[] = [];
  const began = performance.now();
  const work = async () => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      const one = await feedBeside(next);
      fed.push(one);
      say(lineOf(one));
      for (const bug of one.found) tell(bug);
    }
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => {
      queue.length = 0;
      interrupted.abort(signal);
    });
  await Promise.all(Array.from({ length: Math.min(processes, queue.length) }, work));
  const { line, passes } = closing(fed, asked, { seed, ms: performance.now() - began });
  const by: unknown = interrupted.signal.reason;
  process.stdout.write(`${JSON.stringify({ ...line, ...(by === undefined ? {} : { interrupted: by }) })}\n`);
  process.exit(passes ? 0 : 1);
}

function tell({ target, what, input, command }: Found): void {
  say(`\n${target}: ${what}\n  input: ${input}\n  again: ${command}\n`);
}

/** Feeds a target in a process of its own. If an input seems to hang or to kill that process, runs it again to find this input. */
async function feedBeside(order: Order): Promise<Fed> {
  const began = performance.now();
  const { fed, inputs: count, waitedMs: waited, trouble, hung } = await watch(order);
  if (fed) return fed;
  const base = { target: order.target, inputs: count, asked: order.inputs, ms: performance.now() - began };
  const ended = (found: Found[], slowestMs = 0): Fed => ({ ...base, slowestMs, waitedMs: waited, found });
  if (trouble === undefined) return ended([]);
  const bug = (input: string) =>
    ended([told({ name: order.target }, trouble, input, `--seed ${seed} --inputs ${order.inputs}`)], silentMs);
  if (!hung) return bug("");
  // Run again with each input written to a file: the last one written is the one that hangs.
  const trace = join(tmpdir(), `carillon-fuzz-${process.pid}-${order.target}`);
  try {
    await watch({ ...order, trace });
    return bug(existsSync(trace) ? readFileSync(trace, "utf8") : "none was fed");
  } finally {
    rmSync(trace, { force: true });
  }
}

interface Watched {
  readonly fed?: Fed;
  /** Number of inputs fed, according to the last message of the process. */
  readonly inputs: number;
  /** The time in ms in which the process waited for a CPU. */
  readonly waitedMs: number;
  /** The reason why the process did not finish; undefined if it finished or was interrupted. */
  readonly trouble?: string;
  /** True if an input seems to hang or to kill the process; the caller then runs the process again to find this input. */
  readonly hung?: boolean;
}

function watch(order: Order): Promise<Watched> {
  return new Promise((resolve) => {
    if (interrupted.signal.aborted) return resolve({ inputs: 0, waitedMs: 0 });
    const child: ChildProcess = fork(new URL("./feeder.js", import.meta.url), {
      stdio: ["ignore", 2, 2, "ipc"],
      // Collect garbage in the main thread, because other threads may wait for a CPU, and the main thread would wait for them, which is
      // not measured.
      execArgv: ["--max-old-space-size=1024", "--single-threaded-gc"],
    });
    let count = 0;
    let late: NodeJS.Timeout;
    const done = (answer: Partial<Watched>) => {
      clearTimeout(late);
      interrupted.signal.removeEventListener("abort", stop);
      child.removeAllListeners();
      const waited = waitedMs(child.pid);
      child.kill("SIGKILL");
      resolve({ inputs: count, waitedMs: waited, ...answer });
    };
    const stop = () => done({});
    interrupted.signal.addEventListener("abort", stop);
    const silentFor = (ms: number) => {
      const waited = waitedMs(child.pid);
      clearTimeout(late);
      late = setTimeout(() => {
        const without = waitedMs(child.pid) - waited;
        // The process waited for a CPU, so extend the limit by that time; less than a second is ignored.
        if (without > 1_000) silentFor(without);
        else done({ hung: true, trouble: `it hangs: nothing for ${silentMs} ms` });
      }, ms);
    };
    const alive = () => silentFor(silentMs);
    child.on("message", (said: Said) => {
      if ("fed" in said) return done({ fed: said.fed });
      if ("failed" in said) return done({ trouble: said.failed });
      count = said.inputs;
      alive();
    });
    child.on("exit", (code, signal) => done({ hung: true, trouble: `the process ended with ${signal ?? code}` }));
    alive();
    child.send(order);
  });
}

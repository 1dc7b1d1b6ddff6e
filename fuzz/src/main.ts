/**
 * Feeds damaged versions of good inputs to all code that reads foreign data: docs/fuzzing.md.
 *
 *   npm run prove -- fuzz [TARGET…] [--inputs N] [--seed S] [--processes P] [--json]
 *   npm run prove -- fuzz TARGET --seed S --path P  one input again, as a failure printed it
 *
 * The closing line lists the inputs that were really fed. A target that was cut short (something was found, it hung, or the run was
 * interrupted by SIGINT or SIGTERM) is listed with the number of inputs that it was fed, and the run does not pass.
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
/** A process that is silent for this long, and not for lack of a processor, hangs: it reports an input that takes over a second itself. */
const silentMs = 45_000;
const seed = Number(values.seed ?? Date.now() % 1_000_000_000);
const [inputs, processes] = [Number(values.inputs), Number(values.processes)];
for (const [option, value] of Object.entries({ inputs, processes, seed }))
  if (!Number.isSafeInteger(value) || value < (option === "seed" ? 0 : 1))
    throw new Error(
      `--${option} is a whole number${option === "seed" ? "" : " above 0"}, not ${values[option as keyof typeof values]}`,
    );
/** Aborted by a signal, which is its reason. */
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

/** Feeds a target in a process of its own, which is ended when it falls silent. */
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
  // Repeats the run and records each input: the last one recorded is the one that hangs.
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
  /** Number of inputs fed, as far as known. */
  readonly inputs: number;
  /** The wait for a processor, until it was ended. */
  readonly waitedMs: number;
  /** The reason why it did not finish, other than an interruption. */
  readonly trouble?: string;
  /** An input seems to hang: which one can be found out. */
  readonly hung?: boolean;
}

function watch(order: Order): Promise<Watched> {
  return new Promise((resolve) => {
    if (interrupted.signal.aborted) return resolve({ inputs: 0, waitedMs: 0 });
    const child: ChildProcess = fork(new URL("./feeder.js", import.meta.url), {
      stdio: ["ignore", 2, 2, "ipc"],
      // Otherwise it waits for threads that collect its garbage, and how long those had no processor is unknown.
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
        // A wait shorter than a second is no reason to extend the limit.
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

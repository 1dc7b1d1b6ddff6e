/**
 * Feeds inputs to one target, in parts of up to `partInputs`, until a bug is found or the requested number is reached. The
 * input of a bug that `search` finds is shrunk within a time limit. An unhandled error that occurs during a part is reported too,
 * with the input that was current.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { mix } from "../../scheduler/src/base/random.ts";
import { Broken } from "./expected.ts";
import { type Found, shown, stackOf, told } from "./found.ts";
import { superlinear } from "./growth.ts";
import { waitedMs, watch } from "./processor.ts";
import type { Target } from "./target.ts";

export interface Fed {
  readonly target: string;
  /** Number of inputs fed, including the one that failed, but not those fed for shrinking. */
  readonly inputs: number;
  /** Number of inputs requested. Fewer were fed if a bug was found or the feeding process was ended. */
  readonly asked: number;
  readonly ms: number;
  /** The time of the slowest input in ms, without the time in which this thread waited for a CPU. */
  readonly slowestMs: number;
  /** The time in ms in which this thread waited for a CPU, over all inputs. */
  readonly waitedMs: number;
  readonly found: Found[];
}

export interface Feeding {
  /** The seed of the call. Each target derives its own inputs from it, independent of the other targets. */
  readonly seed: number;
  readonly inputs: number;
  /** The longest time for shrinking a bug, in ms; default two minutes. */
  readonly shrinkMs?: number;
  /** Called about every 2 s with the number of inputs fed, so that a watching process sees progress and detects a hang. */
  onFed?(inputs: number): void;
  /** Called before each input, to find the input that hangs. */
  onInput?(input: unknown): void;
}

/** An input that takes longer than this many ms counts as a hang. */
const hangMs = 1_000;
const sayAfterMs = 2_000;
const partInputs = 1_000;
/** The heap may grow by at most this many bytes after the first quarter of the inputs, in which caches fill up. */
const keptBytesMax = 48 * 1024 * 1024;
/** Only long runs check the growth of the heap, and whether the time grows faster than the length of the input. */
const isLong = (inputs: number) => inputs >= 4_000;
/** The default time limit for shrinking, in ms; generous, because each try of a hang takes long. */
const defaultShrinkMs = 120_000;

const collectGarbage = ((): (() => void) => {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc") as () => void;
})();

export async function feed(
  target: Target,
  { seed, inputs, shrinkMs = defaultShrinkMs, onFed, onInput }: Feeding,
): Promise<Fed> {
  const close = await target.open?.();
  const began = performance.now();
  const waited = waitedMs();
  const own = mix(seed, nameNumber(target.name)) >>> 1;
  const again = `--seed ${seed} --inputs ${inputs}`;
  const found: Found[] = [];
  let slowestMs = 0;
  let fed = 0;
  let saidMs = began;
  let present: unknown;
  const alive = () => {
    if (performance.now() - saidMs < sayAfterMs) return;
    saidMs = performance.now();
    onFed?.(fed);
  };
  const timed = async (input: unknown): Promise<void> => {
    alive();
    onInput?.(input);
    present = input;
    const answer = await inTime(() => target.feed(input), target.withinMs);
    slowestMs = Math.max(slowestMs, answer);
  };
  const counted = (input: unknown): Promise<void> => {
    fed++;
    return timed(input);
  };
  try {
    let keptBytes: number | undefined;
    for (let part = 0; fed < inputs && found.length === 0; part++) {
      const numRuns = Math.min(partInputs, inputs - fed);
      const partSeed = mix(own, part) >>> 1;
      alive();
      const escaped: { error: unknown; input: unknown }[] = [];
      const bug = await unhandled(
        async () => {
          const failure = await search(target, counted, { seed: partSeed, numRuns });
          return failure && toldAs(target, await smaller(target, timed, failure, shrinkMs));
        },
        (error) => escaped.push({ error, input: present }),
      );
      if (bug) found.push(bug);
      // The error is reported with the current input. An earlier input may be the cause, because an unhandled rejection can occur
      // later.
      for (const { error, input } of escaped.slice(0, 1)) found.push(told(target, stackOf(error), shown(input), again));
      if (keptBytes === undefined && isLong(inputs) && fed >= inputs / 4) keptBytes = heapBytes();
    }
    if (found.length === 0) {
      const grew = keptBytes === undefined ? 0 : heapBytes() - keptBytes;
      if (grew > keptBytesMax) found.push(told(target, `keeps ${Math.round(grew / 1e6)} MB of its inputs`, "", again));
      const slow = isLong(inputs) ? superlinear(target, own, alive) : undefined;
      if (slow) found.push(told(target, slow.what, slow.input, again));
    }
  } finally {
    await close?.();
  }
  return {
    target: target.name,
    inputs: fed,
    asked: inputs,
    ms: performance.now() - began,
    slowestMs,
    waitedMs: waitedMs() - waited,
    found,
  };
}

/**
 * Feeds again the input that its part's seed and `path` identify. Returns the bug, or undefined if the input reveals none now.
 */
export async function replay(target: Target, seed: number, path: string): Promise<Found | undefined> {
  const close = await target.open?.();
  const timed = async (input: unknown) => void (await inTime(() => target.feed(input), target.withinMs));
  try {
    const failure = await search(target, timed, { seed, numRuns: 1, path });
    return failure && toldAs(target, failure);
  } finally {
    await close?.();
  }
}

interface Failure {
  readonly seed: number;
  readonly path: string;
  readonly input: unknown;
  readonly error: unknown;
}
type FeedOne = (input: unknown) => Promise<void>;

/** Feeds inputs until the first failure. There is no time limit, because a limit would skip inputs without notice. */
async function search(
  target: Target,
  feedOne: FeedOne,
  options: { seed: number; numRuns: number; path?: string },
): Promise<Failure | undefined> {
  return failureOf(await fc.check(property(target, feedOne), { ...options, endOnFailure: true, verbose: 0 }));
}

/** Shrinks the failing input. If the failure does not occur again, it is returned unchanged. */
async function smaller(target: Target, feedOne: FeedOne, failure: Failure, shrinkMs: number): Promise<Failure> {
  const { seed, path } = failure;
  const run = await fc.check(property(target, feedOne), {
    seed,
    path,
    numRuns: 1,
    verbose: 0,
    interruptAfterTimeLimit: shrinkMs,
    markInterruptAsFailure: false,
  });
  return failureOf(run) ?? failure;
}

const property = (target: Target, feedOne: FeedOne) => fc.asyncProperty(target.inputs, feedOne);

function failureOf(run: fc.RunDetails<[unknown]>): Failure | undefined {
  const { failed, seed, counterexample, counterexamplePath, errorInstance: error } = run;
  if (!failed || counterexample === null || counterexamplePath === null) return undefined;
  return { seed, path: counterexamplePath, input: counterexample[0], error };
}

const toldAs = (target: Target, { seed, path, input, error }: Failure): Found =>
  told(target, stackOf(error), shown(input), `--seed ${seed} --path ${path}`);

/**
 * Measures how long `work` takes, without the time in which this thread waited for a CPU. A call that is too slow is repeated,
 * up to three calls in all, because a process that `work` calls, such as the store, may have waited for a CPU, which is not
 * measured here.
 * @returns the shortest time in ms @throws Broken if every call is too slow
 */
async function inTime(work: () => void | Promise<void>, withinMs = hangMs): Promise<number> {
  let leastMs = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < 3; attempt++) {
    const tookMs = watch();
    const pending = work();
    if (pending) await pending;
    leastMs = Math.min(leastMs, tookMs());
    if (leastMs <= withinMs) return leastMs;
  }
  throw new Broken(`it took ${Math.round(leastMs)} ms`);
}

/** Runs `work`. @param onEscaped receives unhandled rejections and uncaught exceptions, which are bugs of the target */
async function unhandled<T>(work: () => Promise<T>, onEscaped: (error: unknown) => void): Promise<T> {
  process.on("unhandledRejection", onEscaped);
  process.on("uncaughtException", onEscaped);
  try {
    const value = await work();
    await new Promise(setImmediate);
    return value;
  } finally {
    process.off("unhandledRejection", onEscaped);
    process.off("uncaughtException", onEscaped);
  }
}

function heapBytes(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Derives a number from the target's name, so that its inputs do not depend on which other targets are fed. */
function nameNumber(name: string): number {
  return [...name].reduce((sum, letter) => mix(sum, letter.charCodeAt(0)), 0);
}

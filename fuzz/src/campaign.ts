/** Feeds one target a number of inputs, and reports the first bug, shrunk as far as possible. */
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
  /** Number of inputs fed, including the one that failed, without those of the shrinking. */
  readonly inputs: number;
  /** Number of inputs requested: fewer were fed if a bug was found, or the feeding process was ended. */
  readonly asked: number;
  readonly ms: number;
  /** The slowest input, without its wait for a processor. */
  readonly slowestMs: number;
  /** The wait for a processor, of all inputs. */
  readonly waitedMs: number;
  readonly found: Found[];
}

export interface Feeding {
  /** The run's seed: each target's inputs are its own, whichever other targets are fed. */
  readonly seed: number;
  readonly inputs: number;
  /** The most time for shrinking a bug; default two minutes. */
  readonly shrinkMs?: number;
  /** Called every 2 s, and between parts: so the watching process sees progress, and the number of inputs fed before a hang. */
  onFed?(inputs: number): void;
  /** Called before each input, if wanted, to find out which input hangs. */
  onInput?(input: unknown): void;
}

/** No input from a person or another program may take longer. */
const hangMs = 1_000;
const sayAfterMs = 2_000;
const partInputs = 1_000;
/** The most memory that a target may keep after its first inputs; until then its caches fill up. */
const keptBytesMax = 48 * 1024 * 1024;
/** Only a long run is worth a check of the memory that it keeps, and of the cost of longer texts. */
const isLong = (inputs: number) => inputs >= 4_000;
/** The default time for shrinking a bug; a hang shrinks slowly. */
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
      // Caused by this input, or by one before it: a rejection that is not awaited may come later.
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

/** Feeds one input of one part again. */
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

/** Every input up to the first that fails: a time limit here would leave inputs out unnoticed. */
async function search(
  target: Target,
  feedOne: FeedOne,
  options: { seed: number; numRuns: number; path?: string },
): Promise<Failure | undefined> {
  return failureOf(await fc.check(property(target, feedOne), { ...options, endOnFailure: true, verbose: 0 }));
}

/** An intermittent failure may not occur again, and is reported as it was. */
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
 * Times an answer without the time in which this thread had no processor. A slow input is fed again: the store, or another process that it
 * waits for, may have had no processor either, and that time is not measured here.
 * @returns ms @throws Broken when it is slow each time
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

/** @param onEscaped receives errors that nothing awaited: bugs of the target that was being fed */
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

/** Gives a target the same inputs whichever other targets are fed. */
function nameNumber(name: string): number {
  return [...name].reduce((sum, letter) => mix(sum, letter.charCodeAt(0)), 0);
}

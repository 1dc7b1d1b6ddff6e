/** Feeds one target so many inputs, and tells of the first that is a bug, made as small as it gets. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { mix } from "../../scheduler/src/random.ts";
import { Broken } from "./expected.ts";
import { waitedMs, watch } from "./processor.ts";
import type { Target } from "./target.ts";

export interface Found {
  readonly target: string;
  readonly what: string;
  readonly input: string;
  /** What replays it. */
  readonly command: string;
}

export interface Fed {
  readonly target: string;
  readonly inputs: number;
  readonly ms: number;
  /** Of one input, without what it waited for a processor. */
  readonly slowestMs: number;
  /** For a processor, of all. */
  readonly waitedMs: number;
  readonly found: Found[];
}

export interface Feeding {
  readonly seed: number;
  readonly inputs: number;
  /** Told before each part: the one who watches knows by it where a feed hangs. */
  onPart?(seed: number): void;
  /** Told before each input, where it is wanted to know which one hangs. */
  onInput?(input: unknown): void;
}

/** Nothing that a person or another program sends may take longer. */
const hangMs = 1_000;
/** Of the longest text that is made. */
const longHangMs = 10_000;
const sayAfterMs = 2_000;
const partInputs = 1_000;
/** Kept for good by a target after its first inputs: caches fill, and are then full. */
const keptBytesMax = 48 * 1024 * 1024;
/** Only then is it worth its time to see what memory it keeps, and what longer texts cost. */
const isLong = (inputs: number) => inputs >= 4_000;
const growths = 40;

const collectGarbage = ((): (() => void) => {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc") as () => void;
})();

export async function feed(target: Target, { seed, inputs, onPart, onInput }: Feeding): Promise<Fed> {
  const close = await target.open?.();
  const began = performance.now();
  const waited = waitedMs();
  const found: Found[] = [];
  let slowestMs = 0;
  let fed = 0;
  let partNow = seed;
  let saidMs = began;
  let present: unknown;
  const alive = () => {
    if (performance.now() - saidMs < sayAfterMs) return;
    saidMs = performance.now();
    onPart?.(partNow);
  };
  const timed = async (input: unknown): Promise<void> => {
    alive();
    onInput?.(input);
    present = input;
    const answer = await inTime(() => target.feed(input), target.withinMs);
    slowestMs = Math.max(slowestMs, answer);
  };
  try {
    let keptBytes: number | undefined;
    for (let part = 0; fed < inputs && found.length === 0; part++) {
      const numRuns = Math.min(partInputs, inputs - fed);
      const partSeed = mix(seed, part) >>> 1;
      partNow = partSeed;
      alive();
      const escaped: { error: unknown; input: unknown }[] = [];
      const bug = await unhandled(
        () => search(target, timed, { seed: partSeed, numRuns }),
        (error) => escaped.push({ error, input: present }),
      );
      fed += numRuns;
      if (bug) found.push(bug);
      // Of this input, or of one before it: what nobody waits for may come later.
      for (const { error, input } of escaped.slice(0, 1))
        found.push(told(target, stackOf(error), shown(input), `--seed ${seed} --inputs ${inputs}`));
      if (keptBytes === undefined && isLong(inputs) && fed >= inputs / 4) keptBytes = heapBytes();
    }
    if (found.length === 0) {
      const grew = keptBytes === undefined ? 0 : heapBytes() - keptBytes;
      if (grew > keptBytesMax)
        found.push(
          told(target, `keeps ${Math.round(grew / 1e6)} MB of its inputs`, "", `--seed ${seed} --inputs ${inputs}`),
        );
      const slow = isLong(inputs) ? superlinear(target, seed, inputs, alive) : undefined;
      if (slow) found.push(slow);
    }
  } finally {
    await close?.();
  }
  return {
    ...{ target: target.name, inputs: fed, ms: performance.now() - began },
    ...{ slowestMs, waitedMs: waitedMs() - waited, found },
  };
}

/** One seed of one part again, or one path of it. */
export async function replay(
  target: Target,
  seed: number,
  path: string | undefined,
  inputs: number,
): Promise<Found | undefined> {
  const close = await target.open?.();
  const timed = async (input: unknown) => void (await inTime(() => target.feed(input), target.withinMs));
  try {
    return await search(target, timed, {
      seed,
      numRuns: path === undefined ? inputs : 1,
      ...(path === undefined ? {} : { path }),
    });
  } finally {
    await close?.();
  }
}

async function search(
  target: Target,
  feedOne: (input: unknown) => Promise<void>,
  options: { seed: number; numRuns: number; path?: string },
): Promise<Found | undefined> {
  const property = fc.asyncProperty(target.inputs, feedOne);
  const { failed, counterexample, counterexamplePath, errorInstance } = await fc.check(property, {
    ...{ ...options, endOnFailure: options.path !== undefined, verbose: 0 },
    // Found, it is small within this; and a hang shrinks slowly.
    interruptAfterTimeLimit: 120_000,
    markInterruptAsFailure: false,
  });
  if (!failed || counterexample === null) return undefined;
  return told(
    target,
    stackOf(errorInstance),
    shown(counterexample[0]),
    `--seed ${options.seed} --path ${counterexamplePath}`,
  );
}

function told(target: Target, what: string, input: string, how: string): Found {
  return { target: target.name, what, input, command: `npm run fuzz -- ${target.name} ${how}` };
}

/**
 * What an answer takes is counted without the time that this thread had no processor. One that took too long is asked again: the
 * store, or whoever else it waits for, may have had none either, and that is counted nowhere here.
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

/** @param onEscaped told of what nobody waited for: a bug of whatever was being fed */
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

/** A part of a good text, many times over: four times as long may take some more than four times as long, not sixteen. */
function superlinear(target: Target, seed: number, inputs: number, alive: () => void): Found | undefined {
  const { grown } = target;
  if (!grown) return undefined;
  const pumps = fc.sample(
    fc.record({ text: fc.constantFrom(...grown.corpus), at: fc.nat(100_000), length: fc.integer({ min: 1, max: 20 }) }),
    { seed, numRuns: growths },
  );
  for (const { text, at: anywhere, length } of pumps) {
    alive();
    const at = anywhere % (text.length + 1);
    const piece = text.slice(at, at + length) || " ";
    const pumped = (size: number) =>
      text.slice(0, at) +
      piece.repeat(Math.ceil(Math.max(0, size - text.length) / piece.length)) +
      text.slice(at + length);
    const [quarter, whole] = [pumped(grown.most / 4), pumped(grown.most)];
    const input = `${JSON.stringify(text.slice(0, at))} + ${JSON.stringify(piece)}, again and again + ${JSON.stringify(text.slice(at + length))}`;
    const how = `--seed ${seed} --inputs ${inputs}`;
    let wholeMs: number;
    let quarterMs: number;
    try {
      wholeMs = leastMs(() => grown.feed(whole));
      if (wholeMs < 60) continue;
      quarterMs = leastMs(() => grown.feed(quarter));
    } catch (error) {
      return told(target, stackOf(error), input, how);
    }
    if (wholeMs > longHangMs || wholeMs > 10 * quarterMs)
      return told(
        target,
        `takes ${Math.round(quarterMs)} ms for ${quarter.length} characters and ${Math.round(wholeMs)} ms for ${whole.length}`,
        ...[input, how],
      );
  }
  return undefined;
}

function leastMs(work: () => void): number {
  let least = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < 3; attempt++) {
    const tookMs = watch();
    work();
    least = Math.min(least, tookMs());
    if (least < 60) break;
  }
  return least;
}

const stackOf = (error: unknown): string => (error instanceof Error ? (error.stack ?? error.message) : String(error));

const shownLength = 4_000;

/** As it can be pasted into a test. */
export function shown(input: unknown): string {
  let text: string;
  try {
    text = fc.stringify(input);
  } catch (error) {
    // It is nested too deep to be shown; the command makes it again.
    if (!(error instanceof RangeError)) throw error;
    text = "something deep";
  }
  return text.length <= shownLength ? text : `${text.slice(0, shownLength)}… (${text.length} characters)`;
}

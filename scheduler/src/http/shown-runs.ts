import { deflateRawSync, inflateRawSync } from "node:zlib";

/** The limit of the memory's text: the request line with the cursor must fit in the 8 KiB that proxies accept. */
const textMost = 5_000;
/** Runs that a text can name: numbers one after the other take next to no room, and reading them takes time. */
const runsMost = 100_000;

/**
 * The runs that a walk through the list has shown while they were live. Such a run appears again further on when it ends, or when
 * it waits for a retry; its number shows that the walk has shown it already. The cursor carries this memory, so any server can
 * continue the walk.
 */
export class ShownRuns {
  readonly #runs: Set<number>;

  constructor(runs: Iterable<number> = []) {
    this.#runs = new Set(runs);
  }

  has(runId: number): boolean {
    return this.#runs.has(runId);
  }

  add(runId: number): void {
    this.#runs.add(runId);
  }

  /** Where there are more than have room in a cursor, the oldest are forgotten. */
  text(): string {
    let runs = [...this.#runs].sort((a, b) => a - b).slice(-runsMost);
    let text = packed(runs);
    while (text.length > textMost) {
      runs = runs.slice(Math.ceil(runs.length / 8));
      text = packed(runs);
    }
    return text;
  }

  /** @returns null where `text` is not such a text */
  static read(text: string): ShownRuns | null {
    try {
      return new ShownRuns(unpacked(text));
    } catch {
      // Not from `text()`: the caller refuses the cursor.
      return null;
    }
  }
}

/** The differences between numbers that rise, in bytes of seven bits, the last of each below 128. */
function packed(runs: readonly number[]): string {
  const bytes: number[] = [];
  let before = 0;
  for (const run of runs) {
    let left = run - before;
    for (; left > 127; left = Math.floor(left / 128)) bytes.push(128 + (left % 128));
    bytes.push(left);
    before = run;
  }
  return deflateRawSync(Uint8Array.from(bytes)).toString("base64url");
}

/** @throws anything */
function unpacked(text: string): number[] {
  const runs: number[] = [];
  let [run, left, unit] = [0, 0, 1];
  for (const byte of inflateRawSync(Buffer.from(text, "base64url"), { maxOutputLength: 8 * runsMost })) {
    left += (byte % 128) * unit;
    unit *= 128;
    if (byte > 127) continue;
    run += left;
    if (!Number.isSafeInteger(run)) throw new RangeError("no run has such a number");
    runs.push(run);
    [left, unit] = [0, 1];
  }
  if (unit !== 1 || runs.length > runsMost) throw new RangeError("the text is cut, or names too many runs");
  return runs;
}

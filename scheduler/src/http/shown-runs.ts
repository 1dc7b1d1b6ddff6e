import { deflateRawSync, inflateRawSync } from "node:zlib";

/** The maximum length of the encoded text, in characters: proxies accept request lines up to 8 KiB, which include the cursor. */
const textMost = 5_000;
/** The maximum number of runs in the text. Consecutive ids take almost no space in it, but decoding them takes time. */
const runsMost = 100_000;

/**
 * The unfinished runs that earlier pages of a list have shown. When such a run ends or waits for a retry, it moves to a later place in the
 * list; the later page leaves it out. The cursor contains the ids of these runs, so that any server can return the next page.
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

  /** Encodes the ids for a cursor. If the text would be too long, runs with the lowest ids are left out. */
  text(): string {
    let runs = [...this.#runs].sort((a, b) => a - b).slice(-runsMost);
    let text = packed(runs);
    while (text.length > textMost) {
      runs = runs.slice(Math.ceil(runs.length / 8));
      text = packed(runs);
    }
    return text;
  }

  /** Decodes a text of `text()`. @returns null if it is malformed */
  static read(text: string): ShownRuns | null {
    try {
      return new ShownRuns(unpacked(text));
    } catch {
      // A malformed text; the caller refuses the cursor.
      return null;
    }
  }
}

/** Encodes differences between ascending numbers in groups of seven bits; the last byte of each number is below 128. */
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

/** Decodes `packed`. @throws an error of any kind if the text is malformed */
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

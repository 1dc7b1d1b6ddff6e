import { deflateRawSync, inflateRawSync } from "node:zlib";

/** The limit of the memory's text: the request line with the cursor must fit in the 8 KiB that proxies accept. */
const textMost = 5_000;
/** The most runs that the text can name. Consecutive numbers take almost no space, but parsing them takes time. */
const runsMost = 100_000;

/**
 * The runs that a client's walk through the pages of a list has seen while they were live. Such a run appears on a later page again when it
 * ends or waits for a retry; its number shows that the walk has seen it already. The cursor carries these numbers, so any server can
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

  /** Drops the runs with the lowest numbers if the text would be too long for a cursor. */
  text(): string {
    let runs = [...this.#runs].sort((a, b) => a - b).slice(-runsMost);
    let text = packed(runs);
    while (text.length > textMost) {
      runs = runs.slice(Math.ceil(runs.length / 8));
      text = packed(runs);
    }
    return text;
  }

  /** @returns null if `text()` did not make `text` */
  static read(text: string): ShownRuns | null {
    try {
      return new ShownRuns(unpacked(text));
    } catch {
      // `text()` did not make this text: the caller refuses the cursor.
      return null;
    }
  }
}

/** Encodes the differences between ascending numbers as bytes of seven bits; the last byte of each number is below 128. */
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

/** @throws an error of any kind if the text is malformed */
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

import type { Database } from "./database.ts";

/**
 * A draw writes the sequence's number to the log of changes, and so waits for the disk, only with more than the 32 that the
 * server has logged beforehand: then what is drawn is safe, and a server that crashes never gives it to another.
 */
const least = 64;
const most = 4_000;
/** Older ones are let go, so that numbers go on rising with time. */
const keptMs = 10_000;

/**
 * Numbers for runs, drawn ahead: an enqueue that draws its own waits for two answers, one after the other. In the order of the
 * calls, so that runs are numbered in it though several statements make them. In one row: as rows of their own the numbers
 * would cost as much as the runs that are made of them.
 *
 * An operation takes what is numbered up to its beginning. So that it never takes what was enqueued after it, whoever
 * writes runs asks whether an open one bounds these numbers, and takes `fresh` ones if so.
 */
export class RunIds {
  readonly #database: Database;
  #ahead: number[] = [];
  #drawnMono = Number.NEGATIVE_INFINITY;
  #size = least;
  #drawing: Promise<void> | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(database: Database) {
    this.#database = database;
  }

  take(count: number): Promise<number[]> {
    return this.#inTurn(() => this.#take(count));
  }

  /** None that was drawn before. */
  fresh(count: number): Promise<number[]> {
    return this.#inTurn(async () => {
      await this.#drawing;
      this.#ahead = [];
      return this.#take(count);
    });
  }

  #inTurn(take: () => Promise<number[]>): Promise<number[]> {
    const taken = this.#turn.then(take);
    // Whoever asked hears of a failure; the next one draws all the same.
    this.#turn = taken.catch(() => undefined);
    return taken;
  }

  async #take(count: number): Promise<number[]> {
    this.#size = Math.min(most, Math.max(least, this.#size >> 1, 2 * count));
    if (this.#database.clock.monotonic() - this.#drawnMono > keptMs) this.#ahead = [];
    if (this.#ahead.length < count) await this.#drawing;
    while (this.#ahead.length < count)
      await this.#database.persist(() => this.#draw(this.#size + count - this.#ahead.length));
    const taken = this.#ahead.splice(0, count);
    if (this.#ahead.length < this.#size / 2) this.#drawing ??= this.#drawAhead();
    return taken;
  }

  async #drawAhead(): Promise<void> {
    try {
      await this.#draw(this.#size);
    } catch {
      // Nobody waits for it: who finds too few draws again, and hears of what is wrong.
    } finally {
      this.#drawing = undefined;
    }
  }

  async #draw(count: number): Promise<void> {
    const [row] = await this.#database.query<{ ids: number[] }>(
      "run-ids",
      `select array_agg(nextval('${this.#database.schema}.run_id')) as ids from generate_series(1, $1)`,
      [count],
    );
    this.#ahead.push(...(row?.ids ?? []));
    this.#drawnMono = this.#database.clock.monotonic();
  }
}

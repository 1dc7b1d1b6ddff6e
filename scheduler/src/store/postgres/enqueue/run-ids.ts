import type { Database } from "../database.ts";

/**
 * The fewest numbers of one draw. A draw is written to PostgreSQL's log, and so waits for the disk, only if it takes more than the 32
 * numbers that the server has logged in advance. Because it waits, the server never issues the drawn numbers again after a crash.
 */
const least = 64;
const most = 4_000;
/** If the last draw was longer ago than this, in ms, the remaining numbers are discarded, so that run numbers rise with time. */
const keptMs = 10_000;

/**
 * Draws run numbers in advance, because an enqueue that draws its own numbers waits for two replies, one after the other. Numbers are
 * issued in the order of the calls, so that runs are numbered in that order even if several statements insert them. A draw returns one row,
 * because as separate rows the numbers would cost as much as the runs.
 *
 * An operation acts on runs with numbers up to the highest one at its start. It must never act on a run enqueued later. So each statement
 * that inserts runs checks whether an open operation covers their numbers, and if so the caller takes `fresh` ones.
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

  /** Returns numbers, drawn in advance if possible. @param signal ends the retries while the store is unavailable */
  take(count: number, signal?: AbortSignal): Promise<number[]> {
    return this.#inTurn(() => this.#take(count, signal));
  }

  /** Returns numbers that are drawn after the call. */
  fresh(count: number): Promise<number[]> {
    return this.#inTurn(async () => {
      await this.#drawing;
      this.#ahead = [];
      return this.#take(count);
    });
  }

  #inTurn(take: () => Promise<number[]>): Promise<number[]> {
    const taken = this.#turn.then(take);
    // The caller of a failed draw receives its error. The next caller draws again.
    this.#turn = taken.catch(() => undefined);
    return taken;
  }

  async #take(count: number, signal?: AbortSignal): Promise<number[]> {
    this.#size = Math.min(most, Math.max(least, this.#size >> 1, 2 * count));
    if (this.#database.clock.monotonic() - this.#drawnMono > keptMs) this.#ahead = [];
    if (this.#ahead.length < count) await this.#drawing;
    while (this.#ahead.length < count)
      await this.#database.persist(() => this.#draw(this.#size + count - this.#ahead.length), signal);
    const taken = this.#ahead.splice(0, count);
    if (this.#ahead.length < this.#size / 2) this.#drawing ??= this.#drawAhead();
    return taken;
  }

  async #drawAhead(): Promise<void> {
    try {
      await this.#draw(this.#size);
    } catch {
      // No caller waits for this draw. A later caller that finds too few numbers draws again, and receives the error if its draw fails.
    } finally {
      this.#drawing = undefined;
    }
  }

  async #draw(count: number): Promise<void> {
    const { schema: s, memory, recovery, clock } = this.#database;
    const before = memory.highs.runId;
    const [row] = await this.#database.query<{ ids: number[]; whole: boolean; recovery: number; relaxed: boolean }>(
      "run-ids",
      `select array_agg(nextval('${s}.run_id')) as ids, ${s}.whole() as whole, (select recovery from ${s}.cluster) as recovery,
         (select relaxed from ${s}.cluster) as relaxed
       from generate_series(1, $1)`,
      [count],
    );
    if (!row) throw new Error("an aggregate gave no row");
    memory.relaxes(row.relaxed);
    recovery?.found(row.whole, row.recovery);
    if (row.whole && (row.ids[0] as number) <= before) await recovery?.wentBack("run numbers were given out again");
    if (recovery && (!row.whole || (row.ids[0] as number) <= before)) {
      await recovery.join();
      return this.#draw(count);
    }
    memory.raise({ runId: row.ids.at(-1) as number });
    this.#ahead.push(...row.ids);
    this.#drawnMono = clock.monotonic();
  }
}

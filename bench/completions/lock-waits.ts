import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";

const everyMs = 5;

/**
 * Measures the longest wait for a lock by reading pg_locks, with 5 ms between two readings. A row of pg_locks holds the start of its wait,
 * so a measured wait is too short only by the time between the last reading and the wait's end.
 */
export class LockWaits {
  readonly #client: pg.Client;
  #over = false;
  #looking: Promise<void> | undefined;
  longestMs = 0;
  /** The kind of lock and the waiting session's statement, for the longest wait. */
  longest = "";
  looks = 0;

  private constructor(client: pg.Client) {
    this.#client = client;
  }

  static async on(url: string): Promise<LockWaits> {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    const waits = new LockWaits(client);
    waits.#looking = waits.#look();
    return waits;
  }

  async end(): Promise<void> {
    this.#over = true;
    await this.#looking;
    await this.#client.end();
  }

  async #look(): Promise<void> {
    while (!this.#over) {
      const { rows } = await this.#client.query({
        name: "waits",
        text: `select extract(epoch from clock_timestamp() - l.waitstart) * 1000 as ms, l.locktype, a.query
               from pg_locks l join pg_stat_activity a using (pid)
               where not l.granted and l.waitstart is not null order by l.waitstart limit 1`,
      });
      this.looks++;
      const [first] = rows;
      if (first && Number(first.ms) > this.longestMs) {
        this.longestMs = Number(first.ms);
        this.longest = `${first.locktype}: ${String(first.query).replace(/\s+/g, " ").trim().slice(0, 160)}`;
      }
      await pause(everyMs);
    }
  }
}

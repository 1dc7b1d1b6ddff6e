import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { type Carillon, carillon } from "../../src/library/carillon.ts";
import { every } from "../../src/schedule/schedule.ts";
import { Programs, readSeen, type Seen } from "./programs.ts";
import { postgres } from "./servers.ts";
import { until } from "./store-stage.ts";

/** Longer than a test, so that no new leader is elected during the test. */
const sessionTimeout = "60s";
/**
 * How far ahead slots are planned, in ms. The option `horizon` has to be at least twice the session timeout; this horizon is shorter, so
 * that slots that the dead leader did not plan come due during the test.
 */
const horizonMs = 4_000;
/** Heartbeat interval in ms: about the same part of the horizon as by default. */
const beatMs = 1_000;
export const tasks = 40;
/** Names of the tasks that get slots only after the kill. Every second one of these tasks has a fixed delay between its runs. */
export const woken = Array.from({ length: 8 }, (_, i) => (i % 2 === 0 ? `woken-${i}` : `delayed-${i}`));
/** The time after the kill whose slots are checked, in ms. */
const watchedMs = 9_000;
export interface Slot {
  task: string;
  slot: number;
  outcome: number;
  term: number | null;
  /** Name of the process that has claimed the slot's run and not ended it; null: none. */
  holder: string | null;
  ends: number;
}

/**
 * Three processes whose leader is killed with SIGKILL. The session timeout is so long that there is no new leader while they are watched.
 */
export class Leaderless {
  readonly schema: string;
  readonly #folder = mkdtempSync(join(tmpdir(), "carillon-leader-"));
  readonly #log = join(this.#folder, "seen.log");
  readonly #programs = new Programs();
  readonly #coordination: string | undefined;
  readonly #database: pg.Client;
  #operator: Carillon | undefined;
  killed = "";
  killedAt = 0;
  endedAt = 0;
  /** When each task that was edited after the kill got its new definition, in ms. */
  readonly changedAt = new Map<string, number>();
  starts: Seen[] = [];
  stalls: Seen[] = [];
  slots: Slot[] = [];

  constructor(database: pg.Client, schema: string, coordination: string | undefined) {
    this.#database = database;
    this.schema = schema;
    this.#coordination = coordination;
  }

  async start(): Promise<void> {
    const options = { sessionTimeout, ...(this.#coordination ? { coordination: this.#coordination } : {}) };
    const { schema } = this;
    const start = (name: string) =>
      this.#programs.start({
        store: postgres().url,
        schema,
        name,
        tasks,
        manual: woken,
        log: this.#log,
        handlerMs: 100,
        options,
        stalls: true,
        settings: { horizonMs, beatMs },
      });
    await Promise.all(["a", "b", "c"].map(start));
    this.#operator = carillon({ store: postgres().url, schema, name: "operator" });
  }

  /** Waits for a leader and returns its name. With a coordination service, a node becomes the leader only a moment after its start. */
  #leader(): Promise<string> {
    return until("one to lead", async () => {
      const { rows } = await this.#database.query(
        `select o.node from ${this.schema}.leadership l join ${this.schema}.session o on o.id = l.session_id`,
      );
      return rows[0]?.node as string | undefined;
    });
  }

  async killLeader(): Promise<void> {
    this.killed = await this.#leader();
    this.killedAt = Date.now();
    await this.#programs.end(this.killed, "SIGKILL");
  }

  /**
   * Gives the tasks in `woken` schedules that no process has planned for. The edits are 330 ms apart, so that they fall into
   * different moments of a second.
   */
  async edit(): Promise<void> {
    const operator = this.#operator as Carillon;
    const { store } = await operator.open();
    for (const name of woken) {
      const { definition, version } = await store.tasks.byName(name);
      const schedule = name.startsWith("delayed") ? every("500ms", { mode: "delay" }) : every("1s");
      await operator.save({ ...definition, schedule }, { expectedVersion: version });
      this.changedAt.set(name, Date.now());
      await sleep(330);
    }
  }

  /** True for a slot of the checked time that the dead process had not claimed. */
  isOver({ slot, holder }: Slot): boolean {
    return slot < this.endedAt && holder !== this.killed;
  }

  /** Waits until all slots of the checked time have been planned and have ended, except those that the dead process had claimed. */
  async read(): Promise<void> {
    this.endedAt = this.killedAt + watchedMs;
    await until("every task to be planned to the end", async () => {
      await this.#look();
      const newest = new Map<string, number>();
      for (const { task, slot } of this.slots) newest.set(task, Math.max(slot, newest.get(task) ?? 0));
      return newest.size === tasks + woken.length && [...newest.values()].every((slot) => slot > this.endedAt - 1_000);
    });
    await until("what came due to end", async () => {
      await this.#look();
      return this.slots.every((slot) => !this.isOver(slot) || slot.ends > 0);
    });
    const { rows: terms } = await this.#database.query(`select * from ${this.schema}.term`);
    if (terms.length !== 1) throw new Error("another was elected: the scene shows nothing");
  }

  async #look(): Promise<void> {
    const { schema } = this;
    const { rows } = await this.#database.query(
      `select t.name as task, l.slot_ms::float8 as slot, l.outcome, l.term::float8, o.node as holder,
              (select count(*) from ${schema}.run_history h where h.task_id = l.task_id and h.slot_ms = l.slot_ms)::int as ends
       from ${schema}.slot l join ${schema}.task t on t.id = l.task_id
       left join ${schema}.run r on r.id = l.run_id and r.state = 3 left join ${schema}.session o on o.id = r.session_id`,
    );
    this.slots = rows;
    const seen = readSeen(this.#log);
    this.starts = seen.filter(({ kind }) => kind === "start");
    this.stalls = seen.filter(({ kind }) => kind === "stalled");
  }

  async close(): Promise<void> {
    await this.#programs.endAll();
    await this.#operator?.stop();
    await this.#database.query(`drop schema if exists ${this.schema} cascade`);
    rmSync(this.#folder, { recursive: true });
  }
}

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { median } from "../../../zookeeper/test/support/median.ts";
import { ownPath, sharedServer } from "../../../zookeeper/test/support/servers.ts";
import { type Carillon, carillon } from "../../src/library/carillon.ts";
import { every } from "../../src/schedule/schedule.ts";
import { Programs, readSeen, type Seen, stalledMs } from "../support/programs.ts";
import { postgres } from "../support/servers.ts";

const ways = [
  { by: "the store alone", coordination: () => undefined },
  { by: "ZooKeeper", coordination: () => `zookeeper://${sharedServer()}${ownPath("leader-killed")}` },
];
/** Nobody can be elected while this test looks. */
const sessionTimeout = "60s";
/** Much shorter than such a timeout allows, so that what the dead leader had planned runs out while the test looks. */
const horizonMs = 4_000;
/** In the same proportion to it as they are by default. */
const beatMs = 1_000;
const tasks = 40;
/** Tasks that begin to have slots after the kill, every other one with a fixed delay. */
const woken = Array.from({ length: 8 }, (_, i) => (i % 2 === 0 ? `woken-${i}` : `delayed-${i}`));
const watchedMs = 9_000;
/**
 * A slot that no dead process had claimed starts within this: whoever waited for a leader would wait for most of a minute. Six
 * processes and their store share the machine with the start of others, so half are to be as good as on time, and each is near it.
 */
const latestMs = 1_000;
const mostlyMs = 100;
const clockErrorMs = 5;

interface Slot {
  task: string;
  slot: number;
  outcome: number;
  term: number | null;
  /** Who has claimed it and not ended it. */
  holder: string | null;
  ends: number;
}

/** Three processes, their leader killed with -9 at some time, and nobody to follow it for as long as it is watched. */
class Cluster {
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
  /** When each task that was edited after the kill became what it is. */
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

  /** With a service the first of its line leads a moment after it has begun. */
  async #leader(): Promise<string> {
    for (;;) {
      const { rows } = await this.#database.query(
        `select o.node from ${this.schema}.leadership l join ${this.schema}.session o on o.id = l.session_id`,
      );
      if (rows[0]) return rows[0].node;
      await sleep(20);
    }
  }

  async killLeader(): Promise<void> {
    this.killed = await this.#leader();
    this.killedAt = Date.now();
    await this.#programs.end(this.killed, "SIGKILL");
  }

  /** What nobody has planned for, at moments of its own within a second. */
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

  async read(): Promise<void> {
    const { schema } = this;
    this.endedAt = Date.now();
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
    const { rows: terms } = await this.#database.query(`select * from ${schema}.term`);
    expect(terms, "another was elected: the test proved nothing").toHaveLength(1);
  }

  async close(): Promise<void> {
    await this.#programs.endAll();
    await this.#operator?.stop();
    await this.#database.query(`drop schema if exists ${this.schema} cascade`);
    rmSync(this.#folder, { recursive: true });
  }
}

describe.each(ways)("the leader killed with -9 at a session timeout of 60 s, coordinated by $by", (way) => {
  const database = new pg.Client({ connectionString: postgres().url });
  const schema = (when: string) => `leader_killed_${when}_${way.by.length}_${process.pid}`;
  const moments = ["at its start", "after a while"] as const;
  const clusters = new Map<string, Cluster>();

  beforeAll(async () => {
    await database.connect();
    const [early, late] = moments.map((moment, i) => {
      const cluster = new Cluster(database, schema(`${i}`), way.coordination());
      clusters.set(moment, cluster);
      return cluster;
    }) as [Cluster, Cluster];
    await late.start();
    await early.start();
    await early.killLeader();
    await early.edit();
    await late.killLeader();
    await late.edit();
    await sleep(Math.max(0, late.killedAt + watchedMs - Date.now()));
    for (const cluster of clusters.values()) await cluster.read();
  }, 120_000);

  afterAll(async () => {
    for (const cluster of clusters.values()) await cluster.close();
    await database.end();
  });

  describe.each(moments)("%s:", (moment) => {
    const here = () => clusters.get(moment) as Cluster;
    const keyOf = ({ task, slot }: { task: string; slot: number }) => `${task} ${slot}`;
    /** Over, unless a dead process has them. */
    const over = () =>
      here().slots.filter(({ slot, holder }) => slot < here().endedAt - 2_000 && holder !== here().killed);

    test("slots came due that it had planned, and slots that it had not", () => {
      const after = over().filter(({ slot }) => slot > here().killedAt);
      const rescued = after.filter(({ term }) => term === null);
      // At its start it may have planned nothing yet.
      if (moment !== "at its start") expect(after.length - rescued.length).toBeGreaterThanOrEqual(tasks / 2);
      expect(rescued.filter(({ task }) => task.startsWith("again")).length).toBeGreaterThanOrEqual(tasks / 2);
      for (const task of woken) expect(rescued.filter((slot) => slot.task === task).length, task).toBeGreaterThan(1);
    });

    test("nothing is lost: every second of every task is in the ledger, and what came due has ended", () => {
      const regular = here().slots.filter(({ task }) => !task.startsWith("delayed"));
      const names = new Set(regular.map(({ task }) => task));
      expect(names.size).toBe(tasks + woken.length / 2);
      for (const task of names) {
        const times = regular.flatMap((one) => (one.task === task ? [one.slot] : [])).sort((a, b) => a - b);
        const [first, last] = [times[0] as number, times.at(-1) as number];
        expect(last, task).toBeGreaterThan(here().endedAt - 1_000);
        expect(times, task).toEqual(Array.from({ length: (last - first) / 1_000 + 1 }, (_, i) => first + i * 1_000));
      }
      expect(over().filter(({ outcome, ends }) => outcome !== 1 || ends !== 1)).toEqual([]);
    });

    test("nothing is doubled: no slot started twice", () => {
      expect(here().starts.map(keyOf).sort()).toEqual([...new Set(here().starts.map(keyOf))].sort());
    });

    test(`nothing is late: all that the dead one had not claimed started within ${latestMs} ms`, () => {
      const started = new Map(here().starts.map((seen) => [keyOf(seen), seen]));
      const seen = over().flatMap((slot) => {
        if (slot.slot < here().killedAt) return [];
        const from = Math.max(slot.slot, here().changedAt.get(slot.task) ?? 0);
        const start = started.get(keyOf(slot));
        const lateMs = start ? start.at - from - stalledMs(here().stalls, start) : Number.POSITIVE_INFINITY;
        return [{ slot: `${keyOf(slot)}, ${slot.slot - here().killedAt} ms after`, lateMs }];
      });
      expect(seen.filter(({ lateMs }) => lateMs > latestMs)).toEqual([]);
      expect(median(seen.map(({ lateMs }) => lateMs))).toBeLessThanOrEqual(mostlyMs);
      expect(here().starts.filter(({ at, slot }) => at < slot - clockErrorMs)).toEqual([]);
    });
  });
});

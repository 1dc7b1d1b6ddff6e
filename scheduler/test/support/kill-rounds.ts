import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { Random } from "../../src/base/random.ts";
import { Programs, readSeen, type Seen } from "./programs.ts";
import { postgres } from "./servers.ts";
import { until } from "./store-stage.ts";

export interface Ended {
  task: string;
  slot: number;
  outcome: number;
  attempt: number;
  code: string | null;
}

export function groupBy<T>(items: T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group) group.push(item);
    else groups.set(keyOf(item), [item]);
  }
  return groups;
}

export const slotKey = ({ task, slot }: { task: string; slot: number }) => `${task} ${slot}`;

/**
 * Two processes, of which one is killed with SIGKILL and replaced, round after round. Then planning stops, and the test waits until all
 * planned runs have ended.
 */
export class KillRounds {
  readonly schema: string;
  readonly tasks: number;
  readonly database = new pg.Client({ connectionString: postgres().url });
  readonly #rounds: number;
  readonly #random: Random;
  readonly #options: Record<string, unknown>;
  readonly #folder = mkdtempSync(join(tmpdir(), "carillon-crash-"));
  readonly #log = join(this.#folder, "seen.log");
  readonly #programs = new Programs();
  readonly killedAt = new Map<string, number>();
  /** The starts of runs, by `slotKey`. */
  starts = new Map<string, Seen[]>();
  stalls: Seen[] = [];
  ended: Ended[] = [];
  ledger: { task: string; slot: number; outcome: number; reason: string | null }[] = [];
  /** By `slotKey`: the names of the nodes that lost the slot's run. */
  lost = new Map<string, string[]>();
  /**
   * When the first process was ready. A slot that came due earlier may be late because of the start, so it does not count as late because
   * of a kill.
   */
  readyAt = 0;
  pausedAt = 0;
  lastVictim = "";

  constructor(
    schema: string,
    how: { rounds: number; tasks: number; coordination: string | undefined; random: Random },
  ) {
    this.schema = schema;
    this.tasks = how.tasks;
    this.#rounds = how.rounds;
    this.#random = how.random;
    this.#options = { coordination: how.coordination };
  }

  async play(): Promise<void> {
    await this.database.connect();
    await this.#start("node-0");
    this.readyAt = Date.now();
    await this.#start("node-1");
    const alive = ["node-0", "node-1"];
    for (let round = 0; round < this.#rounds; round++) {
      await sleep(1_000 + this.#random.next() * 1_500);
      // The victim is chosen at random, so about every other time it is the leader. In the last round it is a process with claims, so that
      // the test can check when their runs start again.
      const place =
        round === this.#rounds - 1 ? alive.indexOf(await this.#claimant(alive)) : this.#random.next() < 0.5 ? 0 : 1;
      const [victim] = alive.splice(place, 1) as [string];
      this.killedAt.set(victim, Date.now());
      await this.#programs.end(victim, "SIGKILL");
      const next = `node-${round + 2}`;
      await this.#start(next);
      alive.push(next);
    }
    // After the last kill the survivors live on, so they take back the claims within the time that the settings promise. In earlier rounds
    // a survivor may be killed before it has detected the death of another process.
    this.lastVictim = [...this.killedAt.keys()].at(-1) as string;
    const killed = this.killedAt.get(this.lastVictim) as number;
    const survived = () => readSeen(this.#log).some(({ kind, slot }) => kind === "start" && slot > killed + 1_000);
    await until("the survivors to start what came due after the kill", survived);
    this.pausedAt = Date.now();
    await this.database.query(`update ${this.schema}.plan set next_slot_ms = null`);
    await until("what dead processes had claimed to end as its task says", async () => {
      const { rows } = await this.database.query(`select count(*)::int as left from ${this.schema}.run`);
      return rows[0].left === 0;
    });
    await this.#read();
  }

  async close(): Promise<void> {
    await this.#programs.endAll();
    await this.database.query(`drop schema if exists ${this.schema} cascade`);
    await this.database.end();
    rmSync(this.#folder, { recursive: true });
  }

  #start(name: string): Promise<void> {
    const { schema, tasks } = this;
    const given = { store: postgres().url, schema, name, tasks, log: this.#log, handlerMs: 300, stalls: true };
    return this.#programs.start({ ...given, options: this.#options });
  }

  #claimant(alive: string[]): Promise<string> {
    return until("one of the two to have claims", async () => {
      const { rows } = await this.database.query(
        `select o.node from ${this.schema}.run r join ${this.schema}.session o on o.id = r.session_id
         where r.state = 3 and o.node = any($1) group by o.node order by count(*) desc limit 1`,
        [alive],
      );
      return rows[0]?.node as string | undefined;
    });
  }

  async #read(): Promise<void> {
    const { schema } = this;
    const seen = readSeen(this.#log);
    this.starts = groupBy(
      seen.filter(({ kind }) => kind === "start"),
      slotKey,
    );
    this.stalls = seen.filter(({ kind }) => kind === "stalled");
    const query = async <Row>(text: string) => (await this.database.query(text)).rows as Row[];
    this.ended = await query(
      `select t.name as task, h.slot_ms::float8 as slot, h.outcome, h.attempt, h.error->>'code' as code
       from ${schema}.run_history h join ${schema}.task t on t.id = h.task_id`,
    );
    this.ledger = await query(
      `select t.name as task, l.slot_ms::float8 as slot, l.outcome, l.reason from ${schema}.slot l join ${schema}.task t on t.id = l.task_id`,
    );
    const attempts = await query<{ task: string; slot: number; node: string }>(
      `select t.name as task, h.slot_ms::float8 as slot, o.node from ${schema}.attempt a join ${schema}.run_history h on h.id = a.run_id
       join ${schema}.task t on t.id = h.task_id join ${schema}.session o on o.id = a.session_id where a.outcome = 'lost'`,
    );
    this.lost = new Map([...groupBy(attempts, slotKey)].map(([key, rows]) => [key, rows.map(({ node }) => node)]));
  }
}

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type pg from "pg";
import { BenchNode } from "./node.ts";
import type { TaskOrder } from "./order.ts";
import { StartLog } from "./start-log.ts";

export interface ClusterPlan {
  client: pg.Client;
  storeUrl: string;
  schema: string;
  /** URL of the coordination service; undefined if the nodes coordinate through the store alone. */
  coordinationUrl?: string;
  nodes: number;
  tasks: TaskOrder[];
  sessionTimeoutMs: number;
}

/** A term as recorded in the store; its times are in ms on the clock of the store, which runs on this machine. */
export interface Term {
  term: number;
  node: string;
  electedMs: number;
  endedMs: number | null;
  endedWhy: string | null;
}

const lookMs = 50;

/** Starts nodes that share one store, and queries the rows that the store holds about them. */
export class Cluster {
  readonly nodes = new Map<string, BenchNode>();
  readonly starts: StartLog;
  readonly #plan: ClusterPlan;
  readonly #s: string;
  readonly #folder = mkdtempSync(join(tmpdir(), "carillon-bench-starts-"));
  #made = 0;

  constructor(plan: ClusterPlan) {
    this.#plan = plan;
    this.#s = `"${plan.schema}"`;
    this.starts = new StartLog(join(this.#folder, "starts"));
  }

  async begin(): Promise<void> {
    await this.#plan.client.query(`drop schema if exists ${this.#s} cascade`);
    await this.add();
    await Promise.all(Array.from({ length: this.#plan.nodes - 1 }, () => this.add()));
  }

  async add(): Promise<BenchNode> {
    const { storeUrl, schema, coordinationUrl, sessionTimeoutMs, tasks } = this.#plan;
    const log = this.starts.path;
    const name = `node-${++this.#made}`;
    const node = await BenchNode.start({ storeUrl, coordinationUrl, schema, name, sessionTimeoutMs, tasks, log });
    this.nodes.set(name, node);
    return node;
  }

  /** Kills the node if it still runs, and removes it from the cluster. */
  async remove(node: BenchNode): Promise<void> {
    this.nodes.delete(node.name);
    await node.close();
  }

  async end(): Promise<void> {
    await Promise.all([...this.nodes.values()].map((node) => node.close()));
    await this.#plan.client.query(`drop schema if exists ${this.#s} cascade`);
    this.starts.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Returns the terms whose number is above `since`, the newest first. */
  async terms(since = 0): Promise<Term[]> {
    return this.#ask<Term>(
      `select term::float8, node, elected_ms::float8 as "electedMs", ended_ms::float8 as "endedMs", ended_why as "endedWhy"
       from ${this.#s}.term where term > $1 order by term desc`,
      [since],
    );
  }

  /**
   * Returns the node that leads according to the store, with its session and term; undefined if no node leads, or if the leader has
   * been removed from this cluster.
   */
  async leader(): Promise<{ node: BenchNode; sessionId: number; term: number } | undefined> {
    const [row] = await this.#ask<{ node: string; session_id: number; term: number }>(
      `select o.node, o.id::float8 as session_id, l.term::float8 from ${this.#s}.leadership l
       join ${this.#s}.session o on o.id = l.session_id and o.ended_ms is null`,
    );
    const node = row && this.nodes.get(row.node);
    return node && { node, sessionId: row.session_id, term: row.term };
  }

  /** Returns the slots that the session has claimed and not completed, as `task slot` with the task's position in the plan. */
  async claimedBy(sessionId: number): Promise<Set<string>> {
    const rows = await this.#ask<{ name: string; slot: string }>(
      `select t.name, r.slot_ms::text as slot from ${this.#s}.run r join ${this.#s}.task t on t.id = r.task_id
       where r.session_id = $1 and r.state = 3`,
      [sessionId],
    );
    const places = new Map(this.#plan.tasks.map(({ name }, place) => [name, place]));
    return new Set(rows.map(({ name, slot }) => `${places.get(name)} ${slot}`));
  }

  /**
   * Waits until the store lists every node as a member, a node leads, the coordination service (if there is one) shows all members, and no
   * run whose slot was more than 1.5 s ago is unfinished.
   */
  async whole(withinMs: number): Promise<void> {
    const names = [...this.nodes.keys()].sort().join();
    await this.until("the cluster to be whole", withinMs, async () => {
      const [row] = await this.#ask<{ members: string; witnessed: boolean; behind: number }>(
        `select coalesce(string_agg(node, ',' order by node collate "C"), '') as members, coalesce(bool_and(witnessed), false) as witnessed,
                (select count(*)::int from ${this.#s}.run where slot_ms < extract(epoch from clock_timestamp()) * 1000 - 1500) as behind
         from ${this.#s}.session where ended_ms is null`,
      );
      const shown = this.#plan.coordinationUrl === undefined || row?.witnessed === true;
      return row?.members === names && shown && row.behind === 0 && (await this.leader()) !== undefined;
    });
  }

  async until(what: string, withinMs: number, condition: () => Promise<boolean>): Promise<void> {
    const deadline = performance.now() + withinMs;
    while (!(await condition())) {
      if (performance.now() > deadline) throw new Error(`waited ${withinMs} ms in vain for ${what}`);
      await pause(lookMs);
    }
  }

  async #ask<Row extends object>(text: string, values: unknown[] = []): Promise<Row[]> {
    return (await this.#plan.client.query<Row>(text, values)).rows;
  }
}

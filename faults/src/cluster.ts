import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { freePort } from "@carillon/zookeeper/testing";
import pg from "pg";
import { hashOfSecret, keyText, makeSecret } from "../../scheduler/src/access/worker-key.ts";
import { silentLog } from "../../scheduler/src/base/log.ts";
import { types } from "../../scheduler/src/store/postgres/columns.ts";
import { openPostgres } from "../../scheduler/src/store/postgres/postgres.ts";
import type { Happening, History, Operation } from "../../simulation/src/history.ts";
import { Dice } from "../../simulation/src/plan/dice.ts";
import { linesTo, urlBy } from "./coordination.ts";
import { Line } from "./line.ts";
import { Member, type MemberOptions } from "./member.ts";
import { type Act, monotonicMs, type Role } from "./order.ts";
import { historyOf, type StandStill } from "./recorded.ts";
import { watchStore } from "./seen.ts";
import type { Servers } from "./servers.ts";
import { armStore } from "./store-troubles.ts";
import { taskNames, Workload } from "./workload.ts";

export interface ClusterOptions {
  readonly servers: Servers;
  readonly seed: number;
  /** Number of members of each role; default: three nodes, three workers on the store, three workers that reach the nodes by HTTP. */
  readonly roles?: Partial<Record<Role, number>>;
  readonly sessionTimeoutMs: number;
  readonly folder: string;
}

const concurrency = 20;
const lookMs = 50;
/** A ready run or an unplanned slot counts as overdue after this many ms: time for a worker's next poll and the catch-up planner. */
const behindMs = 3_000;
const opsEndMs = 10_000;
let clusters = 0;

/** One cluster of processes with its own schema, from its start until its history has been collected. */
export class Cluster {
  readonly servers: Servers;
  readonly seed: number;
  readonly schema: string;
  readonly sessionTimeoutMs: number;
  readonly members: Member[] = [];
  readonly happenings: Happening[] = [];
  readonly surprises: Happening[] = [];
  readonly operations: Operation[] = [];
  readonly standStills: StandStill[] = [];
  readonly log: string;
  key = "";
  /** The largest error in ms of a process's estimate of the store's time; faults that delay its connections raise it. */
  clockErrorMs = 100;
  readonly #roles: Required<NonNullable<ClusterOptions["roles"]>>;
  readonly #workload: Workload;
  readonly #dice: Dice;
  readonly #pool: pg.Pool;
  readonly #beganMono = monotonicMs();
  #epochMs = 0;
  #working = false;
  #work: Promise<void> = Promise.resolve();
  readonly #open = new Set<Promise<void>>();
  #healedMs = 0;
  #recoveredMs = 0;
  #numbered = 0;

  constructor({ servers, seed, roles, sessionTimeoutMs, folder }: ClusterOptions) {
    this.servers = servers;
    this.seed = seed;
    this.sessionTimeoutMs = sessionTimeoutMs;
    this.schema = `faults_${process.pid}_${++clusters}`;
    this.log = join(folder, `${this.schema}.log`);
    this.#roles = { node: 3, worker: 3, "remote worker": 3, ...roles };
    this.#dice = new Dice(seed);
    this.#workload = new Workload(new Dice(seed + 1));
    this.#pool = new pg.Pool({ connectionString: servers.postgres.url, max: 3, types });
    // An idle connection was lost; the next query reports the failure.
    this.#pool.on("error", () => undefined);
  }

  /** Returns the ms since the start of this cluster, on the monotonic clock. */
  now(): number {
    return monotonicMs() - this.#beganMono;
  }

  happened(what: string): void {
    this.happenings.push({ atMs: this.now(), what });
  }

  unexpected(what: string): void {
    this.happened(`unexpected: ${what}`);
    this.surprises.push({ atMs: this.now(), what });
  }

  async ask<Row extends pg.QueryResultRow>(text: string, values: unknown[] = []): Promise<Row[]> {
    return (await this.#pool.query<Row>(text.replaceAll("S.", `${this.schema}.`), values)).rows;
  }

  /** Opens a new connection; the caller ends it. */
  async connection(): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: this.servers.postgres.url, types });
    client.on("error", () => undefined); // The next query fails with this error.
    await client.connect();
    return client;
  }

  /** Starts the processes, waits until all have joined, defines tasks, and begins to send operations. */
  async begin(): Promise<void> {
    const store = await openPostgres({ url: this.servers.postgres.url, schema: this.schema, log: silentLog });
    const secret = makeSecret();
    const key = { name: "faults", groups: ["default"], hash: hashOfSecret(secret), createdBy: "faults" };
    this.key = keyText((await store.workers.createKey(key, 0)).keyId, secret);
    await store.close();
    const client = await this.connection();
    await watchStore(client, this.schema);
    await armStore(client, this.schema);
    await client.end();
    this.#epochMs = await this.#epoch();
    const listens = await Promise.all(Array.from({ length: this.#roles.node }, freePort));
    for (let i = 0; i < this.#roles.node; i++) await this.#add("node", `n${i + 1}`, listens, listens[i]);
    for (let i = 0; i < this.#roles.worker; i++) await this.#add("worker", `w${i + 1}`, listens);
    for (let i = 0; i < this.#roles["remote worker"]; i++) await this.#add("remote worker", `r${i + 1}`, listens);
    for (const member of this.members) member.begin();
    await Promise.all(this.members.map((member) => member.joined()));
    for (const act of this.#workload.first()) this.operate(act);
    this.#working = true;
    this.#work = this.#operateOn();
  }

  of(...roles: Role[]): Member[] {
    return this.members.filter(({ role }) => roles.includes(role));
  }

  /** Returns the member that leads according to the store; the first node if there is no leader. */
  async leader(): Promise<Member> {
    const [row] = await this.ask<{ node: string }>(
      "select o.node from S.leadership l join S.session o on o.id = l.session_id and o.ended_ms is null",
    );
    return this.members.find(({ name }) => name === row?.node) ?? (this.of("node")[0] as Member);
  }

  /**
   * Stops a member with SIGSTOP. The returned function continues it and records the interval, because a start that was decided before the
   * interval counts as made at the interval's beginning: see executionsOf.
   */
  async stand(member: Member, forMs: number): Promise<() => void> {
    const fromMs = this.now();
    await member.stand(forMs);
    return () => {
      this.standStills.push({ node: member.name, fromMs, toMs: this.now() });
      member.goOn();
    };
  }

  healed(): void {
    this.#healedMs = this.now();
    this.happened("healed");
  }

  /** Waits until the cluster has recovered. @returns the ms since the end of the faults; undefined after the time limit */
  async recovered(withinMs: number): Promise<number | undefined> {
    const deadline = this.#healedMs + withinMs;
    let missing = "";
    do {
      // The query fails while the store itself is restarting; then the loop tries again.
      missing = await this.#missing().catch((error: Error) => error.message);
      if (missing === "") {
        this.#recoveredMs = this.now();
        const tookMs = this.#recoveredMs - this.#healedMs;
        this.happened(`recovered after ${Math.round(tookMs)} ms`);
        return tookMs;
      }
      await pause(lookMs);
    } while (this.now() < deadline);
    this.unexpected(`not recovered within ${withinMs} ms: ${missing}`);
    return undefined;
  }

  /** Sends the operation to a random node or worker that can execute it, and records the result; does nothing if there is none. */
  operate(act: Act): void {
    const able = this.of("node", "worker").filter(
      (member) => member.able && (!member.paused || this.#dice.chance(0.2)),
    );
    const member = able.length > 0 ? this.#dice.one(able) : undefined;
    if (!member) return;
    const nowMs = this.now();
    const operation: Operation = {
      id: `op${++this.#numbered}`,
      kind: act.kind,
      node: member.name,
      task: act.task,
      invokedMs: nowMs,
      invokedStoreMs: this.#epochMs + nowMs,
      endedMs: null,
      endedStoreMs: null,
      outcome: "unknown",
      ...(act.kind === "save" ? { definition: act.definition } : {}),
      ...(act.kind === "enqueue" ? { dueMs: act.dueMs, key: act.key } : {}),
      ...(act.kind === "cancel" ? { run: act.run } : {}),
    };
    this.operations.push(operation);
    const answered = member.do(operation.id, act).then((done) => {
      if (!done) return;
      const { kind: _, id: __, ...told } = done;
      Object.assign(operation, told, { endedMs: this.now(), endedStoreMs: this.#epochMs + this.now() });
      if (act.kind === "enqueue" && told.run !== undefined) this.#workload.enqueued(told.run);
    });
    this.#open.add(answered);
    answered.finally(() => this.#open.delete(answered)).catch(() => undefined); // `do` never rejects.
  }

  /**
   * Sends the workload's last operations, waits for the open operations and then `watchedMs` more, kills all processes at once, and
   * collects the records of the processes and of the store.
   */
  async end(watchedMs: number): Promise<History> {
    this.#working = false;
    await this.#work;
    for (const act of this.#workload.last()) this.operate(act);
    await Promise.race([Promise.all(this.#open), pause(opsEndMs)]);
    await pause(watchedMs);
    const endMs = this.now();
    await Promise.all(this.members.map((member) => member.end()));
    // The store may still commit transactions of the killed processes, so wait until no connection is active.
    await this.#until(async () => {
      const rows = await this.ask(
        "select from pg_stat_activity where application_name like 'carillon%' and state = 'active'",
      );
      return rows.length === 0;
    });
    const driftMs = Math.abs((await this.#epoch()) - this.#epochMs);
    const client = await this.connection();
    try {
      return await historyOf(client, {
        schema: this.schema,
        log: this.log,
        beganMono: this.#beganMono,
        epochMs: this.#epochMs,
        endMs,
        healMs: this.#healedMs,
        recoveredMs: this.#recoveredMs,
        standStills: this.standStills,
        concurrency,
        happenings: this.happenings,
        operations: this.operations,
        sessionTimeoutMs: this.sessionTimeoutMs,
        nodes: this.members.map(({ name }) => name),
        coordination: this.servers.service.kind !== "postgres",
        clockErrorMs: this.clockErrorMs + driftMs,
      });
    } finally {
      await client.end();
    }
  }

  async close(): Promise<void> {
    this.#working = false;
    await Promise.all(this.members.map((member) => member.close()));
    await this.#work;
    await this.#pool.query(`drop schema if exists ${this.schema} cascade`);
    await this.#pool.end();
  }

  async #add(role: Role, name: string, listens: readonly number[], listen?: number): Promise<void> {
    const { postgres, service } = this.servers;
    const isRemote = role === "remote worker";
    const { host } = new URL(postgres.url);
    const store = isRemote ? undefined : await Line.to(host);
    const coordination = isRemote ? [] : await linesTo(service);
    const servers = isRemote ? await Promise.all(listens.map((port) => Line.to(`127.0.0.1:${port}`))) : [];
    const order: MemberOptions["order"] = {
      name,
      role,
      schema: this.schema,
      key: this.key,
      concurrency,
      tasks: taskNames,
      seed: this.seed,
      log: this.log,
      store: store?.url(postgres.url) ?? "",
      coordination: urlBy(service, coordination, this.schema),
      listen: listen === undefined ? undefined : `127.0.0.1:${listen}`,
      servers: servers.map(({ at }) => `http://${at}`),
      sessionTimeoutMs: this.sessionTimeoutMs,
    };
    const happened = (what: string) => this.happened(what);
    const unexpected = (what: string) => this.unexpected(what);
    this.members.push(new Member({ order, store, coordination, servers, happened, unexpected }));
  }

  async #operateOn(): Promise<void> {
    while (this.#working) {
      await pause(this.#dice.between(50, 800));
      if (this.#working) this.operate(this.#workload.next(this.#epochMs + this.now()));
    }
  }

  /**
   * Describes what has not recovered yet; "" if everything has. A process counts as recovered once it has sent a heartbeat after the end of
   * the faults.
   */
  async #missing(): Promise<string> {
    const away = this.members.find(({ able }) => !able);
    if (away) return `${away.name} has not joined`;
    const [row] = await this.ask<Record<"leaders" | "orphans" | "late" | "unplanned", number> & { members: string[] }>(
      `select (select coalesce(array_agg(node), '{}') from S.session where ended_ms is null and seen_ms >= $3
                and (not $2 or witnessed or key_id is not null)) as members,
              (select count(*)::int from S.leadership l join S.session o on o.id = l.session_id and o.ended_ms is null) as leaders,
              (select count(*)::int from S.run r where state = 3 and not exists
                 (select from S.session o where o.id = r.session_id and o.ended_ms is null)) as orphans,
              (select count(*)::int from S.run where state = 2 and due_ms < $1) as late,
              (select count(*)::int from S.plan where not paused and next_slot_ms < $1) as unplanned`,
      [
        Math.round(this.#epochMs + this.now() - behindMs),
        this.servers.service.kind !== "postgres",
        Math.round(this.#epochMs + this.#healedMs - this.clockErrorMs),
      ],
    );
    if (!row) return "nothing";
    const absent = this.members.filter(({ name }) => !row.members.includes(name)).map(({ name }) => name);
    if (absent.length > 0) return `${absent.join(", ")} has not shown that it lives`;
    if (row.leaders === 0) return "nobody leads";
    if (row.orphans > 0) return `${row.orphans} runs are claimed by sessions that are over`;
    if (row.late > 0) return `${row.late} runs are ready and were due ${behindMs} ms ago`;
    return row.unplanned > 0 ? `${row.unplanned} slots are unplanned ${behindMs} ms after their time` : "";
  }

  /** Returns the store's clock at the start of this cluster, in epoch ms, from the fastest of eight queries. */
  async #epoch(): Promise<number> {
    let best = { tookMs: Number.POSITIVE_INFINITY, epochMs: 0 };
    for (let i = 0; i < 8; i++) {
      const began = this.now();
      const [row] = await this.ask<{ ms: number }>(
        "select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms",
      );
      const tookMs = this.now() - began;
      if (row && tookMs < best.tookMs) best = { tookMs, epochMs: row.ms - began - tookMs / 2 };
    }
    return best.epochMs;
  }

  async #until(condition: () => Promise<boolean>): Promise<void> {
    while (!(await condition())) await pause(lookMs);
  }
}

import { randomBytes } from "node:crypto";
import pg from "pg";
import type { Clock } from "../../src/base/clock.ts";
import type { Log } from "../../src/base/log.ts";
import type { ClaimedRun, Settlement, Verdict } from "../../src/run/claim-store.ts";
import type { Onward } from "../../src/run/flow.ts";
import type { EnqueueWrite } from "../../src/run/run-record.ts";
import { planTask } from "../../src/slots/plan.ts";
import type { PlanWrite } from "../../src/slots/plan-store.ts";
import { scheduleOf } from "../../src/slots/upcoming-slots.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import type { Store } from "../../src/store/store.ts";
import { isPaced } from "../../src/task/policies.ts";
import { releaseOf } from "../../src/task/release.ts";
import { defineTask, type TaskOptions } from "../../src/task/task.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import type { BroughtBy } from "../../src/task/task-store.ts";
import type { TestServer } from "./servers.ts";

export { until } from "../../../zookeeper/test/support/until.ts";

export const dayMs = 86_400_000;
/** The release for definitions that a test stores as if they came from code. */
export const asCode: BroughtBy = { release: releaseOf("1", []), graceMs: 60_000 };
export const change = (nowMs: number) => ({ author: "test", reason: "", nowMs });

const int8 = 20;
/** Parses the type bigint as a number, because all values in Carillon's tables are below 2^53. */
export const numbers: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: "text") =>
    oid === int8 ? Number : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
};

export interface Line {
  level: keyof Log;
  fields: Record<string, unknown>;
  message: string;
}

/** Returns a log that collects its lines. @param lines receives the lines */
export function recordingLog(lines: Line[] = []): { log: Log; lines: Line[] } {
  const at = (level: keyof Log) => (fields: object, message: string) =>
    void lines.push({ level, fields: { ...fields }, message });
  return { log: { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") }, lines };
}

/** Returns the warnings and errors, except those about an event loop that the machine delayed. */
export const complaints = <Said extends { level: string; message: string }>(lines: readonly Said[]): Said[] =>
  lines.filter(
    ({ level, message }) => (level === "warn" || level === "error") && !message.includes("event loop stood still"),
  );

export interface StageOptions {
  clock?: Clock;
  connectionsMax?: number;
  log?: Log;
  standby?: boolean;
}

/**
 * A store in a new schema on a real server, with methods for frequent steps of tests. `nowMs` is a fixed time: the server's time
 * at the beginning, or the hour that the test chose. The store takes the time as an argument, so a test lets time pass by adding
 * to `nowMs`.
 */
export class Stage {
  readonly server: TestServer;
  readonly schema: string;
  readonly store: Store;
  /** Direct connections to the server, for checks and disturbances by SQL. Statements have to name the schema (`schema`). */
  readonly sql: pg.Pool;
  readonly nowMs: number;
  readonly #others: Store[] = [];
  #nodes = 0;

  constructor(server: TestServer, schema: string, store: Store, nowMs: number) {
    this.server = server;
    this.schema = schema;
    this.store = store;
    this.nowMs = nowMs;
    this.sql = new pg.Pool({ connectionString: server.direct, types: numbers, max: 8 });
    // A test may end these connections on purpose; a query on an ended connection rejects.
    this.sql.on("error", () => undefined);
  }

  /** Opens the same store with separate connections, as another process would. */
  async another(options: StageOptions = {}): Promise<Store> {
    const store = await openPostgres({ url: this.server.url, schema: this.schema, ...options });
    this.#others.push(store);
    return store;
  }

  async rows<Row = Record<string, number>>(text: string, values: unknown[] = []): Promise<Row[]> {
    const { rows } = await this.sql.query(text.replaceAll("$s", this.schema), values);
    return rows as Row[];
  }

  async one<Row = Record<string, number>>(text: string, values: unknown[] = []): Promise<Row> {
    const [row] = await this.rows<Row>(text, values);
    if (!row) throw new Error(`no row: ${text}`);
    return row;
  }

  async session(role: "node" | "worker" = "node", store = this.store): Promise<number> {
    const node = `${role}-${++this.#nodes}-${randomBytes(2).toString("hex")}`;
    const identity = { node, role, host: "here", pid: 1, version: "0", timeoutMs: 6_000 };
    const opened = await store.sessions.open(identity, this.nowMs);
    if ("taken" in opened) throw new Error(`the name ${node} is taken`);
    return opened.sessionId;
  }

  /** Makes the session the leader, in place of any other. @returns the term */
  async lead(sessionId: number): Promise<number> {
    const { leadership } = await this.store.sessions.members();
    if (leadership.sessionId !== null)
      await this.store.sessions.end(leadership.sessionId, null, this.nowMs, "made room");
    const term = await this.store.sessions.campaign(sessionId, `node of ${sessionId}`, leadership, this.nowMs);
    if (term === null) throw new Error("the campaign was lost");
    return term;
  }

  async task(name: string, options: TaskOptions = {}, nowMs = this.nowMs): Promise<TaskRecord> {
    return (await this.store.tasks.save(defineTask(name, options), null, change(nowMs))).record;
  }

  async enqueue(task: TaskRecord, write: Partial<EnqueueWrite> = {}, nowMs = this.nowMs): Promise<number> {
    const [made] = await this.store.runs.enqueue([this.write(task, write)], nowMs);
    return (made as { runId: number }).runId;
  }

  write(task: TaskRecord, write: Partial<EnqueueWrite> = {}): EnqueueWrite {
    const plain = { payload: null, dueMs: this.nowMs, key: null, priority: null, source: "enqueue" as const };
    return { taskId: task.taskId, ...plain, ...write };
  }

  /** Plans the slots of these tasks up to `untilMs`, without storing them. @returns what a planner would write */
  async steps(tasks: TaskRecord[], untilMs: number, nowMs = this.nowMs): Promise<PlanWrite[]> {
    const records = await this.store.tasks.byIds(tasks.map(({ taskId }) => taskId));
    return records.flatMap((record) => {
      if (record.nextSlotMs === null) return [];
      return [stepOf(record, record.nextSlotMs, nowMs, untilMs)];
    });
  }

  /** Plans and stores slots as a follower does that stands in for the leader. @returns the number of accepted slots */
  async plan(tasks: TaskRecord[], sessionId: number, untilMs: number, nowMs = this.nowMs): Promise<number> {
    const writes = await this.steps(tasks, untilMs, nowMs);
    return (await this.store.plans.accept({ sessionId, term: null }, writes, nowMs)).accepted;
  }

  async claim(sessionId: number, tasks: TaskRecord[], untilMs = this.nowMs, limit = 1_000): Promise<ClaimedRun[]> {
    const groupIds = [...new Set(tasks.map(({ groupId }) => groupId))];
    const request = { sessionId, groupIds, exceptTaskIds: [], untilMs, limit, nowMs: untilMs };
    return (await this.store.claims.claim(request)).runs;
  }

  /** Closes the stores and drops the schema. */
  async close(): Promise<void> {
    await Promise.all([this.store, ...this.#others].map((store) => store.close()));
    await this.sql.query(`drop schema if exists ${this.schema} cascade`);
    await this.sql.end();
  }
}

export function stepOf(record: TaskRecord, nextSlotMs: number, nowMs: number, untilMs: number): PlanWrite {
  const { taskId, version, definition } = record;
  const step = planTask(definition, scheduleOf(record), taskId, { nextSlotMs, nowMs, untilMs });
  const gated = definition.overlap.limit !== null || isPaced(definition);
  return { taskId, version, nextSlotMs, newNextSlotMs: step.nextSlotMs, slots: step.slots, missed: step.missed, gated };
}

/**
 * @param hour the stage's time as an hour of today, UTC, for tests whose results would otherwise depend on the time of day; default: the
 * present time
 */
export async function openStage(
  server: TestServer,
  { hour, ...options }: StageOptions & { hour?: number } = {},
): Promise<Stage> {
  const schema = `conformance_${randomBytes(5).toString("hex")}`;
  const store = await openPostgres({ url: server.url, schema, ...options });
  const nowMs = Math.floor((await store.clock()).ms);
  return new Stage(server, schema, store, hour === undefined ? nowMs : nowMs - (nowMs % dayMs) + hour * 3_600_000);
}

export const succeededVerdict: Verdict = { kind: "ended", outcome: "succeeded", result: null, error: null };

/** The verdict of a run that succeeds and begins further runs. */
export const onward = (next: Onward): Verdict => ({
  kind: "ended",
  outcome: "succeeded",
  result: null,
  error: null,
  onward: next,
});

export const failing = (message: string, code?: string): Verdict => ({
  kind: "ended",
  outcome: "failed",
  result: null,
  error: JSON.stringify({ message, ...(code ? { code } : {}) }),
});

export function settlement(run: ClaimedRun, verdict: Verdict, endedMs: number): Settlement {
  const { runId, fence, attempt, taskId, linked } = run;
  return { runId, fence, attempt, taskId, linked, startedMs: endedMs, endedMs, verdict };
}

import type { AlarmStore } from "../../src/alarms/alarm-store.ts";
import type { RuleContent } from "../../src/alarms/stored-rules.ts";
import { systemClock } from "../../src/base/clock.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { change, openStage, type Stage, settlement } from "./store-stage.ts";

/** The interval between two messages of a rule in these tests, in ms. */
export const summaryMs = 60_000;

/** A store with a session that leads, and helpers that bring tasks into states that rules detect. */
export class Rules {
  stage!: Stage;
  sessionId!: number;

  async open(server: Parameters<typeof openStage>[0]): Promise<void> {
    // Counts of queues take almost no time by this clock, so that each look counts again, however slow the machine is.
    const clock = { ...systemClock, monotonic: () => systemClock.monotonic() / 1e6 };
    this.stage = await openStage(server, { hour: 12, clock });
    this.sessionId = await this.stage.session();
    await this.stage.lead(this.sessionId);
  }

  get alarms(): AlarmStore {
    return this.stage.store.alarms;
  }

  get t(): number {
    return this.stage.nowMs;
  }

  look = (atMs: number) => this.alarms.follow(summaryMs, atMs);

  open_ = async () => (await this.alarms.open()).map(({ rule, subject }) => `${rule} ${subject}`);

  sent = async (rule: string) => {
    const rows = await this.stage.rows<{ channel: string; kind: string }>(
      "select channel, kind from $s.alarm_outbox where rule = $1 order by id",
      [rule],
    );
    return rows.map(({ channel, kind }) => `${channel} ${kind}`);
  };

  create = (name: string, content: RuleContent) => this.alarms.createRule(name, content, change(this.t));

  async ended(task: TaskRecord, outcome: "failed" | "succeeded", atMs: number, tookMs = 0): Promise<void> {
    await this.stage.enqueue(task, { dueMs: atMs });
    const [run] = await this.stage.claim(this.sessionId, [task], atMs);
    if (!run) throw new Error("no run was claimed");
    const error = outcome === "failed" ? '{"message":"no route to bank"}' : null;
    const ended = settlement(run, { kind: "ended", outcome, result: null, error }, atMs);
    await this.stage.store.claims.settle(this.sessionId, [{ ...ended, startedMs: atMs - tookMs }], atMs);
  }

  /** Creates a run of the task and claims it. @param startedMs when the run started; null: it has not started */
  async claimed(task: TaskRecord, startedMs: number | null, atMs = this.t): Promise<void> {
    await this.stage.enqueue(task, { dueMs: atMs });
    const [run] = await this.stage.claim(this.sessionId, [task], atMs);
    await this.stage.rows("update $s.run set started_ms = $2 where id = $1", [run?.runId, startedMs]);
  }

  /** Removes all rules, all runs that have not ended, and all tasks. */
  async clean(): Promise<void> {
    for (const { name } of await this.alarms.rules()) await this.alarms.removeRule(name, change(this.t), null);
    await this.stage.rows("delete from $s.run");
    for (const { name } of await this.stage.rows<{ name: string }>("select name from $s.task where deleted_ms is null"))
      await this.stage.store.tasks.remove(name, change(this.t));
  }

  gone = (task: TaskRecord) => this.stage.rows("delete from $s.run where task_id = $1", [task.taskId]);

  /** Registers a live worker of the group. */
  serves = (group: string) => {
    const worker = { node: `worker-${group}`, role: "worker", host: "here", pid: 1, version: "0" } as const;
    return this.stage.store.sessions.open({ ...worker, timeoutMs: 6_000, groups: [group], capacity: 1 }, this.t);
  };
}

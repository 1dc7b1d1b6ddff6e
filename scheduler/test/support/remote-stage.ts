import { randomBytes } from "node:crypto";
import pg from "pg";
import { expect } from "vitest";
import { hashOfSecret, keyText, makeSecret } from "../../src/access/worker-key.ts";
import type { GivenRun, PollAnswer, Problem } from "../../src/api/worker-protocol.ts";
import { limits } from "../../src/base/limits.ts";
import { type Carillon, carillon } from "../../src/library/carillon.ts";
import type { CarillonOptions } from "../../src/settings/settings.ts";
import type { Store } from "../../src/store/store.ts";
import { defineTask, type TaskOptions } from "../../src/task/task.ts";
import { postgres } from "./servers.ts";
import { type Line, numbers, recordingLog } from "./store-stage.ts";
import "./cheap-passwords.ts";

/** The password of the user `admin`, whom the first server creates. */
export const firstPassword = "nine herons at the weir";

export type Answer = { status: number; body: PollAnswer & Problem };

/** Servers that listen, on a new schema, and methods that send the requests of a worker. */
export class RemoteStage {
  readonly schema: string;
  readonly sql = new pg.Pool({ connectionString: postgres().url, types: numbers, max: 4 });
  /** The log lines of all its servers. */
  readonly lines: Line[] = [];
  readonly servers: Carillon[] = [];
  store: Store = undefined as unknown as Store;

  constructor(schema = `remote_${randomBytes(5).toString("hex")}`) {
    this.schema = schema;
  }

  /** Starts the first server, or a further one of the same cluster. */
  async serve(
    options: Pick<
      CarillonOptions,
      | "sessionTimeout"
      | "alarms"
      | "behindProxy"
      | "trustedProxies"
      | "basePath"
      | "frameAncestors"
      | "listen"
      | "provider"
      | "signInLasts"
      | "signInIdle"
      | "breachedPasswords"
      | "requireSecondFactor"
      | "secretKeys"
    > = {},
  ): Promise<Carillon> {
    const { log } = recordingLog(this.lines);
    const server = carillon({
      store: postgres().url,
      schema: this.schema,
      worker: false,
      listen: "127.0.0.1:0",
      adminPassword: firstPassword,
      handleSignals: false,
      log,
      ...options,
    });
    this.servers.push(server);
    await server.start();
    this.store = (await (this.servers[0] as Carillon).open()).store;
    return server;
  }

  get server(): Carillon {
    return this.servers[0] as Carillon;
  }

  get second(): Carillon {
    return this.servers[1] as Carillon;
  }

  urlOf(server = this.server): string {
    return `http://${server.listening}`;
  }

  async key(name: string, groups = ["default"]): Promise<string> {
    const secret = makeSecret();
    const made = await this.store.workers.createKey({ name, groups, hash: hashOfSecret(secret), createdBy: "test" }, 1);
    return keyText(made.keyId, secret);
  }

  async task(name: string, options: TaskOptions = {}): Promise<void> {
    await this.server.save(defineTask(name, options));
  }

  async post(
    key: string,
    body: unknown,
    { server = this.server, signal }: { server?: Carillon; signal?: AbortSignal } = {},
  ) {
    const response = await fetch(`${this.urlOf(server)}/v1/worker/poll`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: typeof body === "string" ? body : JSON.stringify(body),
      ...(signal ? { signal } : {}),
    });
    return { status: response.status, body: (await response.json()) as Answer["body"] };
  }

  /** Sends a poll of a worker. @throws if the server refuses the poll */
  async poll(key: string, body: object, server = this.server): Promise<PollAnswer> {
    const { status, body: answer } = await this.post(key, body, { server });
    if (status !== 200) throw new Error(`${status} ${answer.code}: ${answer.detail}`);
    return answer;
  }

  /** Joins a worker with the longest session timeout, because on a busy machine a test may take longer than the usual 6 s between polls. */
  async join(key: string, join: object = {}): Promise<number> {
    const name = `w-${randomBytes(4).toString("hex")}`;
    return (await this.poll(key, { join: { name, timeoutMs: limits.workerTimeoutMs, ...join } })).session;
  }

  /** Enqueues a run and claims it in the session. */
  async claimed(key: string, session: number, task = "echo", payload: unknown = null): Promise<GivenRun> {
    await this.server.enqueue(task, payload);
    const { runs } = await this.poll(key, { session, want: 1, waitMs: 20_000 });
    return runs[0] as GivenRun;
  }

  /** Claims a run for this session, as a server does whose reply to the worker is lost. @returns the run's id */
  async claimedUnheard(session: number): Promise<number> {
    const { runId } = await this.server.enqueue("echo", null, { in: 60_000 });
    const { taskId } = await this.store.tasks.byName("echo");
    const { groupId } = (await this.store.tasks.byIds([taskId]))[0] as { groupId: number };
    const nowMs = Date.now() + 120_000;
    const request = { sessionId: session, groupIds: [groupId], exceptTaskIds: [], untilMs: nowMs, limit: 1, nowMs };
    expect((await this.store.claims.claim(request)).runs.map((run) => run.runId)).toEqual([runId]);
    return runId;
  }

  async stateOf(runId: number) {
    return (await this.store.runs.find(runId)).state;
  }

  async rows<Row = Record<string, unknown>>(text: string, values: unknown[] = []): Promise<Row[]> {
    return (await this.sql.query(text.replaceAll("$s", this.schema), values)).rows as Row[];
  }

  async close(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.stop()));
    await this.sql.query(`drop schema if exists ${this.schema} cascade`);
    await this.sql.end();
  }
}

export const said = ({ runId, fence }: GivenRun, verdict: object = { outcome: "succeeded" }) => ({
  runId,
  fence,
  ...verdict,
});

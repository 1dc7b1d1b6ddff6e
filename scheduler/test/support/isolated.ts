import { randomBytes } from "node:crypto";
import { type Carillon, type CarillonOptions, carillon } from "carillon";
import pg from "pg";
import { postgres } from "./servers.ts";
import { numbers, recordingLog, until } from "./store-stage.ts";

const programs = new URL("programs/", import.meta.url);
/** Returns the URL of a module with a handler: `isolated` followed by `name`, such as ".mjs". */
export const handlerFile = (name: string) => new URL(`isolated${name}`, programs);

// biome-ignore lint/suspicious/noExplicitAny: what a line holds is for its test to say
type Fields = Record<string, any>;

export interface Row {
  outcome: string;
  result: unknown;
  error: { code?: string; message: string; stack?: string; thrown?: string } | null;
  attempt: number;
  startedMs: number;
  endedMs: number;
}
const outcomes = ["succeeded", "failed", "cancelled"];

/** A new schema, and processes of the built library that use it. Threads and child processes need the built code. */
export class IsolatedStage {
  readonly schema = `isolate_${randomBytes(5).toString("hex")}`;
  readonly url = postgres().url;
  readonly sql = new pg.Pool({ connectionString: this.url, types: numbers, max: 4 });
  readonly recorded = recordingLog();
  readonly opened: { stop(): Promise<void> }[] = [];

  make(options: CarillonOptions = {}): Carillon {
    const { schema, url } = this;
    const { log } = this.recorded;
    const tower = carillon({ store: url, schema, handleSignals: false, log, drain: "1s", ...options });
    this.opened.push(tower);
    return tower;
  }

  async rows<Found>(text: string, values: unknown[] = []): Promise<Found[]> {
    return (await this.sql.query(text.replaceAll("$s", this.schema), values)).rows;
  }

  async ended(runId: number): Promise<Row> {
    const find = async () =>
      (
        await this.rows<Omit<Row, "outcome"> & { outcome: number }>(
          `select outcome, result, error, attempt, started_ms as "startedMs", ended_ms as "endedMs" from $s.run_history where id = $1`,
          [runId],
        )
      )[0];
    await until(`run ${runId} to end`, async () => (await find()) !== undefined, 120_000);
    const row = await find();
    return { ...(row as unknown as Row), outcome: outcomes[row?.outcome ?? -1] ?? "" };
  }

  logs(runId: number): Promise<{ message: string; level: number; fields: Fields }[]> {
    return this.rows("select message, level, fields from $s.run_log where run_id = $1 order by at_ms, ctid", [runId]);
  }

  /** Waits until the run has logged this message. @returns the fields of that log line */
  async said(runId: number, message: string): Promise<Fields> {
    const find = async () => (await this.logs(runId)).find((line) => line.message === message);
    await until(`run ${runId} to say ${message}`, async () => (await find()) !== undefined, 120_000);
    return (await find())?.fields ?? {};
  }

  async close(): Promise<void> {
    await Promise.all(this.opened.map((one) => one.stop()));
    await this.sql.query(`drop schema if exists ${this.schema} cascade`);
    await this.sql.end();
  }
}

export const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false; // no process has this id
  }
};

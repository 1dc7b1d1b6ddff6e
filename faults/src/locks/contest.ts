import { fork } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { types } from "../../../scheduler/src/store/columns.ts";
import type { Violation } from "../../../simulation/src/history.ts";
import { mortal } from "../../../zookeeper/test/support/afterlife.ts";
import { linesTo, urlBy } from "../coordination.ts";
import type { Servers } from "../servers.ts";
import type { WriterOrder } from "./writer.ts";
import { type AcceptedWrite, staleWrite } from "./writes.ts";

export interface LockFigures {
  readonly writes: number;
  readonly holders: number;
  /** Writes that came too late, and were not taken. */
  readonly refused: number;
  readonly violation: Violation | undefined;
}

const program = fileURLToPath(new URL("writer.js", import.meta.url));
const writers = 3;
const sessionTimeoutMs = 1_500;
/** A holder is stopped for so long that another has the lock, and writes. */
const stoppedMs = 3_000;
const patienceMs = 60_000;
/** Of ten stops about nine come between looking and acting. */
const mostStops = 8;

/**
 * Processes pass a lock around and write while they have it; whoever has it is stopped for longer than its session, until
 * what comes of that was seen: a write that came too late was refused, or was taken.
 */
export async function contest(servers: Servers, fenced: boolean): Promise<LockFigures> {
  const schema = `locks_${process.pid}_${fenced ? "fenced" : "unfenced"}`;
  const { url } = servers.postgres;
  const sql = new pg.Pool({ connectionString: url, max: 2, types });
  sql.on("error", () => undefined); // its next question tells
  const lines = await linesTo(servers.service);
  const coordination = urlBy(servers.service, lines, schema);
  await sql.query(`create schema ${schema}
    create table guard (highest bigint not null)
    create table accepted (seq bigint generated always as identity primary key, fence bigint not null, writer text not null)
    create table refused (fence bigint not null, writer text not null)`);
  await sql.query(`insert into ${schema}.guard values (0)`);
  const children = new Map(
    Array.from({ length: writers }, (_, i) => {
      const order: WriterOrder = {
        ...{ store: url, coordination, schema, fenced, sessionTimeoutMs },
        name: `writer-${i + 1}`,
      };
      return [order.name, mortal(fork(program, [JSON.stringify(order)], { stdio: ["ignore", 2, 2, "ipc"] }))];
    }),
  );
  const rows = async <Row extends pg.QueryResultRow>(text: string) =>
    (await sql.query<Row>(text.replaceAll("S.", `${schema}.`))).rows;
  const writes = () => rows<AcceptedWrite>("select seq, fence, writer from S.accepted order by seq");
  const refused = async () => (await rows<{ n: number }>("select count(*)::int as n from S.refused"))[0]?.n ?? 0;
  const last = async () =>
    (await rows<AcceptedWrite>("select seq, fence, writer from S.accepted order by seq desc limit 1"))[0];
  try {
    for (let stops = 0; stops < mostStops; stops++) {
      const seq = (await last())?.seq ?? 0;
      await until("somebody to write", async () => ((await last())?.seq ?? 0) > seq);
      const holder = (await last()) as AcceptedWrite;
      const child = children.get(holder.writer);
      child?.kill("SIGSTOP");
      await pause(stoppedMs);
      await until("another to write", async () => ((await last())?.fence ?? 0) > holder.fence);
      child?.kill("SIGCONT");
      // It acts with its next breath, and it is back in the line before its next turn.
      const at = (await last())?.seq ?? 0;
      await until("the others to go on", async () => ((await last())?.seq ?? 0) > at + writers);
      if ((await refused()) > 0 || staleWrite(await writes())) break;
    }
    const all = await writes();
    const holders = new Set(all.map(({ fence }) => fence)).size;
    return { writes: all.length, holders, refused: await refused(), violation: staleWrite(all) };
  } finally {
    for (const child of children.values()) child.kill("SIGKILL");
    await Promise.all(lines.map((line) => line.close()));
    await sql.query(`drop schema if exists ${schema} cascade`);
    await sql.end();
  }
}

async function until(what: string, condition: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + patienceMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`waited ${patienceMs} ms in vain for ${what}`);
    await pause(20);
  }
}

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { mortal } from "@carillon/zookeeper/testing";
import pg from "pg";
import { types } from "../../../scheduler/src/store/postgres/columns.ts";
import { firstLockViolation } from "../../../simulation/src/check/locks/checkers.ts";
import { lockFigures } from "../../../simulation/src/check/locks/figures.ts";
import type { Violation } from "../../../simulation/src/history.ts";
import type { LockHistory, LockWrite } from "../../../simulation/src/lock-history.ts";
import { linesTo, urlBy } from "../coordination.ts";
import { Line } from "../line.ts";
import type { Servers } from "../servers.ts";
import { machineMs, readNotes } from "./notes.ts";
import { readStoreLocks, watchStoreLocks } from "./store-watch.ts";
import { lockHistoryOf } from "./told.ts";
import type { WriterOrder } from "./writer.ts";
import { ZooKeeperWatch } from "./zookeeper-watch.ts";

export interface ContestFigures extends ReturnType<typeof lockFigures> {
  readonly violation: Violation | undefined;
  /** How often the next holder of a grace lock, after a holder that vanished, was the same owner (`taken_back`) or another. */
  readonly taken_back: number;
  readonly taken_over: number;
}

interface Contestant {
  readonly name: string;
  life: number;
  child: ChildProcess;
  /** The proxied connections that a cut affects: to the service, or to the store if there is no service. */
  readonly lines: readonly Line[];
  readonly order: Omit<WriterOrder, "life">;
}

interface Written extends LockWrite {
  readonly seq: number;
}

const program = fileURLToPath(new URL("writer.js", import.meta.url));
const writers = 3;
const sessionTimeoutMs = 1_500;
const graceMs = 2_000;
/** A holder is stopped for this many ms, long enough for another process to acquire the lock and write. */
const stoppedMs = 3_000;
const patienceMs = 60_000;
/** The largest number of faults, unless `rounds` requires more. Most stops fall between a check and the next write, so few are needed. */
const mostTurns = 8;
/** Tolerance in ms for a machine with fewer cores than processes; smaller than the margins under test. */
const slackMs = 150;
/** The faults, applied to a holder of the plain lock `ledger` or of the grace lock `nightly`; see `docs/explain/reliability.md`. */
const turns = ["stop", "stop nightly", "cut nightly", "kill"] as const;

/**
 * Lets processes acquire locks in turn and write while they hold one. Holders are stopped for longer than their session, cut off
 * or killed, one after the other, until a write under an outdated fence was refused (`fenced`) or accepted (otherwise).
 * @param rounds the minimum number of rounds, each with all faults
 */
export async function contest(servers: Servers, fenced: boolean, rounds = 0): Promise<ContestFigures> {
  const schema = `locks_${process.pid}_${fenced ? "fenced" : "unfenced"}`;
  const { url } = servers.postgres;
  const { service } = servers;
  const graced = fenced && service.kind !== "redis";
  const sql = new pg.Pool({ connectionString: url, max: 2, types });
  sql.on("error", () => undefined); // The next query fails with this error.
  const folder = mkdtempSync(join(tmpdir(), "carillon-locks-"));
  const log = join(folder, "notes");
  await sql.query(`create schema ${schema}
    create sequence written
    create table guard (lock text primary key, highest bigint not null)
    create table accepted (seq bigint default nextval('${schema}.written'), lock text not null, fence bigint not null,
      writer text not null, at_ms float8 default extract(epoch from clock_timestamp()) * 1000)
    create table refused (seq bigint default nextval('${schema}.written'), lock text not null, fence bigint not null,
      writer text not null, at_ms float8 default extract(epoch from clock_timestamp()) * 1000)`);
  await sql.query(`insert into ${schema}.guard values ('ledger', 0), ('nightly', 0)`);
  const writes = async (): Promise<Written[]> =>
    (
      await sql.query<Written>(`
        select seq, lock, fence, writer as process, at_ms as "atMs", true as accepted from ${schema}.accepted
        union all select seq, lock, fence, writer, at_ms, false from ${schema}.refused order by seq`)
    ).rows;
  const last = async (lock: string) =>
    (
      await sql.query<{ seq: number; fence: number; writer: string }>(
        `select seq, fence, writer from ${schema}.accepted where lock = $1 order by seq desc limit 1`,
        [lock],
      )
    ).rows[0];
  const contestants: Contestant[] = [];
  let watch: ZooKeeperWatch | undefined;
  const forgotMs: number[] = [];
  const history = async (): Promise<LockHistory> => {
    const shown = service.kind === "postgres" ? await readStoreLocks(sql, schema) : await watch?.close();
    const gapMs = watch ? watch.longestGapMs : 0;
    return lockHistoryOf({
      notes: readNotes(log),
      nodes: shown,
      writes: await writes(),
      graceMs,
      endMs: machineMs(),
      slackMs: slackMs + gapMs,
      forgotMs,
    });
  };
  try {
    for (let i = 1; i <= writers; i++) {
      const name = `writer-${i}`;
      const toService = await linesTo(service);
      const toStore = await Line.to(new URL(url).host);
      const order = {
        store: toStore.url(url),
        coordination: urlBy(service, toService, schema),
        place: url,
        schema,
        name,
        fenced,
        sessionTimeoutMs,
        graceMs: graced ? graceMs : null,
        log,
      };
      // With a service, the holder learns from the store that it was replaced; so only the service is cut off, and the store stays
      // reachable.
      const lines = service.kind === "postgres" ? [toStore] : toService;
      contestants.push({ name, life: 1, child: begun(order, 1), lines, order });
    }
    await Promise.all(contestants.map(({ child }) => ready(child)));
    if (service.kind === "postgres") await watchStoreLocks(sql, schema);
    if (service.kind === "zookeeper") watch = await ZooKeeperWatch.open(service.ensemble.connectString(), `/${schema}`);
    for (const { child } of contestants) child.send("go");
    for (let turn = 0; turn < Math.max(mostTurns, rounds * turns.length); turn++) {
      const what = fenced ? (turns[turn % turns.length] as (typeof turns)[number]) : "stop";
      if (!graced && what.endsWith("nightly")) continue;
      const lock = what.endsWith("nightly") ? "nightly" : "ledger";
      const seq = (await last(lock))?.seq ?? 0;
      await until(`somebody to write under ${lock}`, async () => ((await last(lock))?.seq ?? 0) > seq);
      const holder = (await last(lock)) as { fence: number; writer: string };
      const one = contestants.find(({ name }) => holder.writer.startsWith(`${name} `)) as Contestant;
      const another = () =>
        until(`another to write under ${lock}`, async () => ((await last(lock))?.fence ?? 0) > holder.fence);
      if (what === "stop" || what === "stop nightly") {
        one.child.kill("SIGSTOP");
        await pause(what === "stop" ? stoppedMs : stoppedMs + graceMs);
        await another();
        one.child.kill("SIGCONT");
      } else if (what === "cut nightly") {
        const mend = one.lines.map((line) => line.trouble({ kind: "cut" }));
        await pause(sessionTimeoutMs + graceMs / 2);
        for (const mended of mend) mended();
        await another();
      } else {
        one.child.kill("SIGKILL");
        await another();
        one.life++;
        one.child = begun(one.order, one.life);
        await ready(one.child);
        one.child.send("go");
      }
      // Wait for more writes than there are processes, so that the stopped or replaced process has had its turn again.
      const at = (await last("ledger"))?.seq ?? 0;
      await until("the others to go on", async () => ((await last("ledger"))?.seq ?? 0) > at + writers);
      if (turn + 1 < rounds * turns.length) continue;
      const all = await writes();
      const isSeen = fenced ? all.some(({ accepted }) => !accepted) : lockFigures(outOf(all)).unfenced !== undefined;
      if (isSeen && (!graced || turn > 0)) break;
    }
    for (const { child } of contestants) child.kill("SIGSTOP");
    const all = await history();
    return { ...lockFigures(all), ...passages(all), violation: firstLockViolation(all) };
  } finally {
    for (const { child } of contestants) child.kill("SIGKILL");
    await Promise.all(contestants.flatMap(({ lines }) => lines.map((line) => line.close())));
    await sql.query(`drop schema if exists ${schema} cascade`);
    await sql.end();
    rmSync(folder, { recursive: true, force: true });
  }
}

const begun = (order: Omit<WriterOrder, "life">, life: number): ChildProcess =>
  mortal(fork(program, [JSON.stringify({ ...order, life })], { stdio: ["ignore", 2, 2, "ipc"] }));

async function ready(child: ChildProcess): Promise<void> {
  const [said] = await Promise.race([once(child, "message"), once(child, "exit").then(() => ["exit"])]);
  if (said !== "ready") throw new Error("a process that was to use locks ended before it did");
}

const outOf = (writes: readonly LockWrite[]): LockHistory => ({
  grants: [],
  giveUps: [],
  looks: [],
  acts: [],
  writes,
  attempts: [],
  forgotMs: [],
  calmFromMs: Number.POSITIVE_INFINITY,
  endMs: 0,
  slackMs: 0,
});

function passages({ grants }: LockHistory): Pick<ContestFigures, "taken_back" | "taken_over"> {
  const graced = grants.filter(({ graceMs: grace }) => grace !== null);
  const passed = graced.flatMap((next, i) => {
    const before = graced[i - 1];
    return before?.ended === "vanished" ? [before.owner === next.owner] : [];
  });
  return {
    taken_back: passed.filter((isSame) => isSame).length,
    taken_over: passed.filter((isSame) => !isSame).length,
  };
}

async function until(what: string, condition: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + patienceMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`waited ${patienceMs} ms in vain for ${what}`);
    await pause(20);
  }
}
